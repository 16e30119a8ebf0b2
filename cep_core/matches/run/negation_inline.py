"""NOTs as fences: between which events a match may not step, and where it may not begin or end.

Where an event n rules a match out by nothing but its place (its conditions speak of n alone, and it is of the match's
partition), only the nearest such event matters:
- between two parts: the last n that is not later than the later part's first event must be earlier than the earlier
  part's last event;
- first: the last n that is not later than the match's first event must not be within the window that reaches back from
  its last;
- last, with a limit: the next n that is not earlier than the match's last event must not be within it;
- last: the next n that is not earlier than the match's last event must not be within the window of its first.
An event of the match is not its own n. Which events are later than others, `cep_core.matches.run.events` says by `low`
and `high`. Each is known of an event before any match is read (ADR 3 does the same for trends), so matches that a NOT
rules out are not read. The graph of a compressed row is the graph without the steps that a fence crosses. Other NOTs
are checked on the finished match (`negation_deferred`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, is_fence
from trendlake.cep_core.matches.compile.states import START, states_of
from trendlake.cep_core.matches.kernels.buffer import Bounds
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.events import Stream

NEVER, EVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Fences:
    """Where a row r of `after` and `spared` is that of a step between two states (`between`, -1: none): an event whose
    `low` is not above `after[r, e]` may not come just before e, but for the event `spared[r, e]`, which is the only n
    in its way (-1: none is). A match that begins with e in a state with row r (`first`) may not end before the time
    `lead[r, e]` + `within`; one that ends with e in a state with row r (`last`) may not begin later than
    `latest[r, e]`. Arrays of no rows where no NOT asks for them."""

    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.plan, self.stream, self.states = plan, stream, states_of(plan)
        self.time, self.low, self.count = stream.time, stream.low, stream.length
        self.parts = np.array(self.states.parts, np.int64)
        self.near: dict[int, _Nearest | None] = {}
        self.inline = frozenset(k for k, negation in enumerate(plan.negations) if is_fence(plan, negation))
        size = len(self.states.states)
        rows = _Rows(), _Rows(), _Rows()
        self.between, self.first, self.last = np.zeros((0, 0), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        if self.inline and self.count:
            self.between = np.full((size, size), -1, np.int64)
            self.first, self.last = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
            for edge in self.states.edges:
                nots = edge.nots & self.inline
                if edge.source == START:
                    self.first[edge.target] = rows[1].number(nots)
                else:
                    self.between[edge.source, edge.target] = rows[0].number(nots)
            for k, ways in enumerate(self.states.ends):
                self.last[k] = rows[2].number(next(iter(ways)) & self.inline) if len(ways) == 1 else -1
        pairs = [self._before(nots) for nots in rows[0]]
        self.after, self.spared = (self._table([pair[i] for pair in pairs]) for i in range(2))
        self.lead = self._table([self._lead(nots) for nots in rows[1]])
        self.latest = self._table([self._latest(nots) for nots in rows[2]])

    @property
    def bounds(self) -> Bounds:
        """The arguments of reading matches."""
        tables = self.after, self.spared, self.lead, self.latest, self.between, self.first, self.last
        return Bounds(self.time, self.low, self.parts, *tables)

    def predecessors(self, buffer: Buffer, node: int, horizon: int) -> list[int]:
        """`Buffer.predecessors` that no fence parts from `node`."""
        links = buffer.predecessors(node, horizon)
        if not len(self.between):
            return links
        event, rows = buffer.event[node], self.between[:, buffer.state[node]]

        def parted(before: int) -> bool:
            row, other = rows[buffer.state[before]], buffer.event[before]
            return bool(row >= 0 and self.low[other] <= self.after[row, event] and other != self.spared[row, event])

        return [one for one in links if not parted(one)]

    def starts(self, buffer: Buffer, node: int, horizon: int, end: int) -> bool:
        """Whether a match that ends with node `end`, and began after `horizon`, may begin with the node."""
        if buffer.left[node] != NOTHING:
            return False
        if not len(self.first):
            return True
        event = buffer.event[node]
        row, row_of_end = self.first[buffer.state[node]], self.last[buffer.state[end]]
        leads = row < 0 or self.lead[row, event] <= horizon
        return bool(leads and (row_of_end < 0 or self.time[event] <= self.latest[row_of_end, buffer.event[end]]))

    def ends(self, buffer: Buffer, nodes: Iterable[int]) -> list[list[int]]:
        """The nodes, parted by what NOTs say of a match that ends there."""
        groups: dict[int, list[int]] = {}
        for node in nodes:
            groups.setdefault(int(self.last[buffer.state[node]]) if len(self.last) else -1, []).append(node)
        return list(groups.values())

    # --- tables
    def _table(self, rows: list[Int64s]) -> Int64s:
        return np.stack(rows) if rows else np.zeros((0, self.count), np.int64)

    def _near(self, nots: Iterable[int]) -> _Nearest | None:
        """The nearest events of some NOTs; None where there are none."""
        bits = sum(1 << k for k in nots)
        if bits not in self.near:
            negated = np.flatnonzero(self.stream.negated & np.uint64(bits))
            self.near[bits] = _Nearest(self.stream, negated) if len(negated) else None
        return self.near[bits]

    def _before(self, nots: frozenset[int]) -> tuple[Int64s, Int64s]:
        near = self._near(nots)
        nothing = np.full(self.count, -1, np.int64)
        return (nothing, nothing) if near is None else near.before()

    def _lead(self, nots: frozenset[int]) -> Int64s:
        near = self._near(nots)
        return np.full(self.count, NEVER, np.int64) if near is None else near.last_time(NEVER)

    def _latest(self, nots: frozenset[int]) -> Int64s:
        latest = np.full(self.count, EVER, np.int64)
        limits = {self.plan.negations[k].within for k in nots}
        for limit in limits:
            near = self._near(k for k in nots if self.plan.negations[k].within == limit)
            if near is None:
                continue
            if limit is None:
                latest = np.minimum(latest, near.next_time(EVER) - self.plan.within)
            else:
                latest = np.where(near.next_time(EVER) - limit < self.time, NEVER, latest)
        return latest


class _Rows(dict[frozenset[int], int]):
    """Sets of NOTs and their rows of a table."""

    def number(self, nots: frozenset[int]) -> int:
        """The row of a set; -1: of none."""
        return self.setdefault(nots, len(self)) if nots else -1


class _Nearest:
    """Of each event of a stream the nearest ones of `negated` (indices, in order) in its partition, itself aside."""

    def __init__(self, stream: Stream, negated: Int64s) -> None:
        self.stream, self.count = stream, stream.length
        self.base = stream.codes * self.count
        """Partitions one after the other: base + place orders the events of all."""
        keys = self.base[negated] + negated
        order = np.argsort(keys)
        self.negated, self.keys = negated[order], keys[order]
        # an event without a sequence, the first of its time, is not earlier than any of it: the highest so far counts
        self.highest = np.maximum.accumulate(self.base[self.negated] + stream.high[self.negated])

    def last_time(self, none: int) -> Int64s:
        """The time of the last one that is not later; `none` where there is none."""
        at, there = self._last()
        return np.where(there, self.stream.time[self.negated[at]], none)

    def before(self) -> tuple[Int64s, Int64s]:
        """`after` and `spared`: see `Fences`."""
        at, there = self._last()
        last = self.negated[at]
        limit = np.where(there, self.highest[at] - self.base, -1)
        only = (at == 0) | (self.highest[at - 1] < self.base + self.stream.low[last])
        return limit, np.where(there & only, last, -1)

    def next_time(self, none: int) -> Int64s:
        """The time of the next one that is not earlier; `none` where there is none."""
        low = self.base + self.stream.low
        at = np.searchsorted(self.keys, low)
        # of those before `low` one without a sequence may still not be earlier
        beside = (at > 0) & (self.highest[at - 1] >= low)
        last = len(self.negated) - 1
        at += self.negated[np.minimum(at, last)] == np.arange(self.count)
        near = self.negated[np.minimum(at, last)]
        there = (at <= last) & (self.stream.codes[near] == self.stream.codes)
        return np.where(beside, self.stream.time, np.where(there, self.stream.time[near], none))

    def _last(self) -> tuple[Int64s, Bools]:
        """Where in `negated` the last one is that is not later, and where there is one."""
        at = np.searchsorted(self.keys, self.base + self.stream.high, side="right") - 1
        at -= self.negated[np.maximum(at, 0)] == np.arange(self.count)
        near = np.maximum(at, 0)
        return near, (at >= 0) & (self.stream.codes[self.negated[near]] == self.stream.codes)
