"""`LONGEST(*)`: the events of one longest trend by group and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.trends.kernels.arguments import ADDED, EACH, Links, Tasks, Weights
from trendlake.cep_core.trends.kernels.arguments import Guards as KernelGuards
from trendlake.cep_core.trends.kernels.witness import Walk, longest_trends
from trendlake.cep_core.trends.run.events import Events
from trendlake.cep_core.trends.run.kernel_pass import Pass, check_memory
from trendlake.cep_core.trends.run.kernel_tables import layout
from trendlake.cep_core.trends.run.ranks import Guarded
from trendlake.cep_core.trends.run.scoped_equivalence import Run
from trendlake.cep_core.trends.run.sorted_rows import Slice, check_alarm, make_predicates


@dataclass(frozen=True)
class LongestTrends:
    """The events of the longest trend of cell c: rows[first[c] : first[c] + length[c]] of `events`, in order of time,
    each with its place in the total order and its variable."""

    events: Events
    first: Int64s
    length: Int64s
    rows: Int64s
    order: Int64s
    variable: Int64s

    def ids(self, cells: Int64s) -> pa.Array:
        """The event ids of some cells' longest trends, a list each."""
        length = self.length[cells]
        ends = np.cumsum(length)
        inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - length, length)
        places = np.repeat(self.first[cells], length) + inside
        offsets = np.append(0, ends).astype(np.int32)
        values = self.events.group_value(self.events.plan.schema.event_id)
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return pa.ListArray.from_arrays(arrow(offsets), values.take(arrow(self.rows[places])))

    def of(self, cell: int) -> tuple[Any, list[Any]]:
        """The order of a cell's trend among those of other runs, the least first; and its event ids."""
        places = slice(int(self.first[cell]), int(self.first[cell] + self.length[cell]))
        back = tuple(zip(self.order[places][::-1].tolist(), self.variable[places][::-1].tolist(), strict=True))
        return (-int(self.length[cell]), back), self.ids(np.array([cell]))[0].as_py()


def longest_trends_of(
    run: Run, slice_: Slice, guards: Guarded, kernel: Pass, tasks: Tasks, cell: Int64s
) -> LongestTrends:
    """The longest trends by cell; `tasks` each have a trend, and do not overlap; `cell` (T): which cell each is of."""
    n, states = slice_.length, len(run.automaton.states)
    weights = Weights(np.full(1, -1), np.zeros((1, n)), np.full(1, EACH), np.ones((1, n)), np.full(1, ADDED))
    most = int((tasks.hi - tasks.lo).max(initial=0))
    check_memory(tasks, 8 * states * (n + most))
    reach = np.full((n, states), -np.inf)
    kernel.run(tasks, weights, "F", reach=reach)
    arrays = layout(slice_.events.plan, run.automaton, linked=kernel.linked, pairwise=True)
    predicates = make_predicates(slice_, arrays.tried)
    bounds, _, after = guards
    order = slice_.events.order()[slice_.rows]
    path, variable, length = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(len(tasks.lo), np.int64)
    longest_trends(
        tasks,
        slice_.in_kernels,
        arrays.nfa,
        KernelGuards(arrays.guards, bounds, after),
        Links(kernel.following, arrays.link_of, arrays.link, arrays.link_lists),
        predicates,
        kernel.linking,
        Walk(
            reach,
            order,
            np.zeros(most + 1, np.int64),
            np.zeros(most * states, np.int64),
            np.zeros(states, np.bool_),
            path,
            variable,
            length,
        ),
    )
    check_alarm(predicates)
    last = order[path[tasks.lo + length - 1]]
    best = np.lexsort([last, -length, cell])
    chosen = best[np.append(True, cell[best][1:] != cell[best][:-1])]
    return LongestTrends(slice_.events, tasks.lo[chosen], length[chosen], slice_.rows[path], order[path], variable)
