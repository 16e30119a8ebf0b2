"""NOTs as fences: between which events a match may not step, and where it may not begin.

Where an event n rules a match out by nothing but its place (its conditions speak of n alone, and it is of the match's
partition), only the nearest such event matters:
- between two parts: the last n before the later part's first event must not be after the earlier part's last event;
- first: the last n before the match's first event must not be within the window that reaches back from its last;
- last: the next n after the match's last event must not be within the window of its first. Each is known of an event
before any match is read (ADR 3 does the same for trends), so matches that a NOT rules out are not read. The graph of a
compressed row is the graph without the steps that a fence crosses. Other NOTs are checked on the finished match
(`negation_deferred`).
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, is_fence
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.events import Stream

NEVER, EVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Fences:
    """`after[k, e]`: an event of part k - 1 before this index may not come just before e as the first of part k;
    `lead[e]`: a match that begins with e may not end before this time + `within`; `latest[e]`: one that ends with e may
    not begin later than this time. Arrays of no rows where no NOT asks for them."""

    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.time, count = stream.time, stream.length
        self.after: Int64s = np.zeros((0, 0), np.int64)
        self.lead: Int64s = np.zeros(0, np.int64)
        self.latest: Int64s = np.zeros(0, np.int64)
        fences = [(k, negation) for k, negation in enumerate(plan.negations) if is_fence(plan, negation)]
        if not fences or not count:
            return
        self.after = np.full((len(plan.parts), count), -1, np.int64)
        self.lead, self.latest = np.full(count, NEVER, np.int64), np.full(count, EVER, np.int64)
        keys = stream.codes.astype(np.int64) * count + np.arange(count)
        for k, negation in fences:
            negated = np.flatnonzero((stream.negated >> np.uint64(k)) & np.uint64(1))
            if not len(negated):
                continue
            negated = negated[np.argsort(keys[negated])]
            if negation.after == len(plan.parts):
                at = np.searchsorted(keys[negated], keys, side="right")
                near = negated[np.minimum(at, len(negated) - 1)]
                there = (at < len(negated)) & (stream.codes[near] == stream.codes)
                self.latest = np.where(there, np.minimum(self.latest, stream.time[near] - plan.within), self.latest)
                continue
            at = np.searchsorted(keys[negated], keys, side="left") - 1
            near = negated[np.maximum(at, 0)]
            there = (at >= 0) & (stream.codes[near] == stream.codes)
            if negation.after == 0:
                self.lead = np.where(there, np.maximum(self.lead, stream.time[near]), self.lead)
            else:
                row = self.after[negation.after]
                row[there] = np.maximum(row, near)[there]

    def predecessors(self, buffer: Buffer, node: int, horizon: int) -> list[int]:
        """`Buffer.predecessors` that no fence parts from `node`."""
        links = buffer.predecessors(node, horizon)
        if not len(self.after):
            return links
        part, row = buffer.part[node], self.after[buffer.part[node]]
        limit = row[buffer.event[node]]
        return [one for one in links if buffer.part[one] == part or buffer.event[one] >= limit]

    def starts(self, buffer: Buffer, node: int, horizon: int, end: int) -> bool:
        """Whether a match that ends with event `end`, and began after `horizon`, may begin with the node."""
        if buffer.left[node] != NOTHING:
            return False
        event = buffer.event[node]
        return not len(self.lead) or bool(self.lead[event] <= horizon and self.time[event] <= self.latest[end])
