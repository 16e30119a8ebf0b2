"""NOTs as bounds in time.

A trend of N that starts at s and ends at e rules out a gap (v, w) when v.time < s and e < w.time. So for w only the
latest start among the N-trends that ended before w matters: the gap is open exactly when v.time >= that start. That
start never falls as w.time grows: the bound moves one way. Likewise a leading NOT asks it of the window's start, and a
trailing NOT asks of the earliest end among the N-trends that start after the last event.

The latest start of the N-trends that end with each event comes from the same kernel, with "latest start" as its
aggregate, over the events of N in the partition (GRETA section 5 prunes the graph instead).
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int32s, Int64s
from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.kernels.arguments import LARGEST, STARTS, Tasks, Weights
from trendlake.cep_core.trends.kernels.general import NEVER
from trendlake.cep_core.trends.run.events import Events
from trendlake.cep_core.trends.run.kernel_pass import Pass
from trendlake.cep_core.trends.run.scoped_equivalence import Run, Scope, runs
from trendlake.cep_core.trends.run.sorted_rows import Slice, make_slice
from trendlake.cep_core.trends.run.window_tasks import ALWAYS


class Guards:
    """The bounds that the trends of `automaton`'s NOTs set, under the equivalences `scopes` that no trend has
    settled."""

    def __init__(self, events: Events, automaton: Automaton, scopes: tuple[Scope, ...]) -> None:
        self.events = events
        self.partition = events.codes(events.plan.shared)
        self.moments = np.unique(events.time) if automaton.guards else np.zeros(0, np.int64)
        self.latest: dict[int, tuple[Int64s, Int64s]] = {}
        for g in automaton.guards:
            keys = [self._trends(run) for run in runs(events, events.plan.guards[g], scopes)]
            key = np.concatenate([one[0] for one in keys] or [np.zeros(0, np.int64)])
            latest = np.concatenate([one[1] for one in keys] or [np.zeros(0, np.int64)])
            order = np.argsort(key, kind="stable")
            self.latest[g] = (key[order], np.maximum.accumulate(latest[order]) if len(key) else latest)

    def _trends(self, run: Run) -> tuple[Int64s, Int64s]:
        """For each event that ends a trend of `run`: its key, and the key of the latest start of such a trend."""
        slice_ = make_slice(run.events, run.automaton.variables, run.partition)
        n = slice_.length
        guards = Guards(run.events, run.automaton, run.open_scopes).at(slice_)
        starts = np.searchsorted(self.moments, slice_.time).astype(np.float64)
        none, latest = np.full(1, STARTS), np.full(1, LARGEST)
        weights = Weights(none, np.zeros((1, n)), none, starts.reshape(1, n), latest)
        edges = (
            np.flatnonzero(np.append(True, slice_.partition[1:] != slice_.partition[:-1]))
            if n
            else np.zeros(0, np.int64)
        )
        ends = np.append(edges[1:], n)[: len(edges)]
        count = len(edges)
        tasks = Tasks(
            edges.astype(np.int64),
            ends.astype(np.int64),
            np.zeros(count, np.int64),
            np.full(count, NEVER + 1),
            np.full(count, ALWAYS),
        )
        emit = np.full(n, -np.inf)
        Pass(slice_, run.automaton, guards, selects=False).run(tasks, weights, "E", emit)
        ending = np.flatnonzero(emit > -np.inf)
        partition = self.partition[slice_.rows[ending]]
        key = self._key(partition, np.searchsorted(self.moments, slice_.time[ending]))
        return key, self._key(partition, emit[ending].astype(np.int64))

    def _key(self, partition: Int32s, moment: Int64s) -> Int64s:
        """One number that orders by (partition, moment)."""
        keys: Int64s = partition.astype(np.int64) * (len(self.moments) + 1) + moment
        return keys

    def at(self, slice_: Slice) -> tuple[Int64s, Int64s, Int64s]:
        """(G, n) microseconds each: the latest start of an N-trend that ended before the event, and of one that ended
        before it or at its time (NEVER: none); the earliest end of one that starts after it (ALWAYS: none)."""
        count = len(self.events.plan.guards) if self.latest else 0
        before, upto = np.full((2, count, slice_.length), NEVER, dtype=np.int64)
        after = np.full((count, slice_.length), ALWAYS, dtype=np.int64)
        if not count:
            return before, upto, after
        partition = self.partition[slice_.rows]
        keys = self._key(partition, np.searchsorted(self.moments, slice_.time))
        width = len(self.moments) + 1
        for g, (key, latest) in self.latest.items():
            if not len(key):
                continue
            for bounds, places in ((before, np.searchsorted(key, keys)), (upto, np.searchsorted(key, keys, "right"))):
                last: Int64s = places - 1
                seen: Bools = (last >= 0) & (key[last] // width == partition)
                bounds[g, seen] = self.moments[latest[last[seen]] % width]
            later: Int64s = np.searchsorted(latest, keys, "right")
            known: Int64s = np.minimum(later, len(key) - 1)
            seen = (later < len(key)) & (key[known] // width == partition)
            after[g, seen] = self.moments[key[known[seen]] % width]
        return before, upto, after
