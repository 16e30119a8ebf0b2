"""NOTs as fences: between which events a match may not step, and where it may not begin.

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

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, is_fence
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.events import Stream

NEVER, EVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Fences:
    """`after[k, e]`: an event of part k - 1 whose `low` is not above this may not come just before e as the first of
    part k, but for the event `spared[k, e]`, which is the only n in its way (-1: none is);
    `lead[e]`: a match that begins with e may not end before this time + `within`; `latest[e]`: one that ends with e may
    not begin later than this time. Arrays of no rows where no NOT asks for them."""

    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.time, self.low, count = stream.time, stream.low, stream.length
        self.after: Int64s = np.zeros((0, 0), np.int64)
        self.spared: Int64s = self.after
        self.lead: Int64s = np.zeros(0, np.int64)
        self.latest: Int64s = np.zeros(0, np.int64)
        fences = [(k, negation) for k, negation in enumerate(plan.negations) if is_fence(plan, negation)]
        if not fences or not count:
            return
        self.after = np.full((len(plan.parts), count), -1, np.int64)
        self.spared = self.after.copy()
        self.lead, self.latest = np.full(count, NEVER, np.int64), np.full(count, EVER, np.int64)
        gaps: dict[tuple[int, int | None], int] = {}
        for k, negation in fences:
            gap = negation.after, negation.within
            gaps[gap] = gaps.get(gap, 0) | 1 << k
        for (after, limit), bits in gaps.items():
            negated = np.flatnonzero(stream.negated & np.uint64(bits))
            if not len(negated):
                continue
            near = _Nearest(stream, negated)
            if limit is not None:
                near_by = near.next_time(EVER) - limit < stream.time
                self.latest = np.where(near_by, NEVER, self.latest)
            elif after == len(plan.parts):
                self.latest = near.next_time(EVER) - plan.within
            elif after == 0:
                self.lead = near.last_time(NEVER)
            else:
                self.after[after], self.spared[after] = near.before()

    def predecessors(self, buffer: Buffer, node: int, horizon: int) -> list[int]:
        """`Buffer.predecessors` that no fence parts from `node`."""
        links = buffer.predecessors(node, horizon)
        if not len(self.after):
            return links
        part, event = buffer.part[node], buffer.event[node]
        limit, spared = self.after[part, event], self.spared[part, event]

        def parted(before: int) -> bool:
            return bool(self.low[before] <= limit and before != spared)

        return [one for one in links if buffer.part[one] == part or not parted(buffer.event[one])]

    def starts(self, buffer: Buffer, node: int, horizon: int, end: int) -> bool:
        """Whether a match that ends with event `end`, and began after `horizon`, may begin with the node."""
        if buffer.left[node] != NOTHING:
            return False
        event = buffer.event[node]
        return not len(self.lead) or bool(self.lead[event] <= horizon and self.time[event] <= self.latest[end])


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
