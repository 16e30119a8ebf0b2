"""The rows of a pattern that hold a changed event, where a row is of two events: all others stay as they are.

The changed events are read as they are now, with the events that may be in a row with one of them: few, of all that are
within reach in time. The rows of both are computed, and those that hold a changed event are what the results should
have of them. So the published rows with the id of a changed event, as it was or as it is, are the only ones that can
differ. Exact where an id is known to be of one event: else a row could hold an event of a changed one's id that has not
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.kind import Pairs
from trendlake.cep_core.sharing.changes import pairs_of
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.lake.here.read import Condition, TableHere
from trendlake.pipelines.results.windows import Stretch, united
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.runs.events import good_events
from trendlake.pipelines.runs.run import Run


@dataclass(frozen=True)
class ChangedPairs:
    """`ids`: of the changed events, as they were and as they are. `reach`: half-open, microseconds, around the events
    as they are. `partners`: as of `Pairs`."""

    run: Run
    pairs: Pairs
    ids: pa.Array
    reach: tuple[Stretch, ...]
    partners: Callable[[pa.Array, Bools], Bools]

    def chosen(self, rows: pa.Table) -> pa.Array:
        """Of result rows those that hold a changed event."""
        first, second = (pc.is_in(rows[name], self.ids) for name in self.pairs.ids)
        return pc.or_(first, second)

    def events(self, source: TableHere, slices: tuple[Stretch, ...], most: int) -> pa.Table:
        """The good events in `slices` that are changed ones, or may be in a row with one. Raises
        NotHereError."""
        near = tuple(
            (max(low, start), min(high, end))
            for low, high in self.reach
            for start, end in slices
            if low < end and high > start
        )
        if not near:
            return source.none()
        if self.run.contract.documents is not None:
            source.refuse_large_search(self.run.contract.event_time, near)
        return good_events(self.run, source, near, most, self._condition())

    def allows(self, near: int, rows: int) -> bool:
        """Whether no query can have more rows that end with one event than are allowed, where `near` rows are published
        in the windows, and `rows` are those of changed events."""
        return near + rows <= self.pairs.limit(self.run.plan)

    def _condition(self) -> Condition:
        plan = self.run.plan
        id_name, name = plan.schema.event_id, self.pairs.column(plan)

        def condition(batch: pa.RecordBatch, near: pa.Array) -> pa.Array:
            mine = pc.and_(near, pc.is_in(batch.column(id_name), self.ids))
            return pc.or_(mine, arrow(self.partners(batch.column(name), numbers(near))))

        return condition


def changed_pairs(run: Run, seen: pa.Table) -> ChangedPairs | None:
    """For the events of `seen` (columns of the plan) that came or went, by their `NET`; None where their rows alone
    are not enough, or any event may be in a row with one of them."""
    plan, pairs = run.plan, pairs_of(run.plan)
    id_name, time_name = plan.schema.event_id, plan.schema.event_time
    if pairs is None or [rule.columns for rule in unique_rules(run.contract.rules)] != [(id_name,)]:
        return None
    ids = seen[id_name].combine_chunks()
    if ids.null_count or not (pa.types.is_string(ids.type) or pa.types.is_integer(ids.type)):
        return None
    now = seen.filter(pc.greater(seen[NET], 0))
    try:
        partners = pairs.partners(plan, now[pairs.column(plan)].combine_chunks())
    except ValueError:
        return None
    times, within = np.unique(numbers(now[time_name].combine_chunks().cast(pa.int64()))), pairs.within(plan)
    reach = united((int(time) - within, int(time) + within + 1) for time in times)
    return ChangedPairs(run, pairs, ids.unique(), tuple(reach), partners)
