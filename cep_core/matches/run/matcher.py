"""The automaton over a stream: merged runs step through its events, and each event that ends matches is reported.

The states and the edges between them are those of `cep_core.matches.compile.states`. A run takes an edge with an event,
ignores the event, or does several of these (Agrawal et al. 2008, section 3.2).

Runs are stepped by `cep_core.matches.kernels.step`, where their registers are fields of 64 bits
(`cep_core.matches.compile.encode`). A whole number that does not fit gives the partition up: the `interpreter`, which
gives its results, reads it again from the last event where no run was under way; results that are reported already are
skipped. So no number is ever wrong, and none is reported twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.expressions.columnar import evaluate
from trendlake.cep_core.expressions.operands import Words
from trendlake.cep_core.kernels.register_programs import WHEN_SLOT, Leaves, Programs
from trendlake.cep_core.kernels.run_groups import FIRSTS as LINK
from trendlake.cep_core.kernels.run_groups import NEXT, rehash
from trendlake.cep_core.matches.compile.encode import Agreement, Assembly, NotCompiledError, assembled
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.states import States, states_of
from trendlake.cep_core.matches.kernels import step as k
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.interpreter import Interpreter

MANY_LINKS = 1 << 22
"""A buffer of more links is read, and cleared of what is past."""
ROOM = 1 << 16
"""Links made in one go."""
MODES = {"skip_till_any_match": k.ANY, "skip_till_next_match": k.NEXT_MATCH}


class Automaton:
    """`merging` off keeps every run apart, for comparison: the same matches, without the sharing. `compiled` off steps
    in Python."""

    def __init__(self, plan: MatchesPlan, stream: Stream, *, merging: bool = True, compiled: bool = True) -> None:
        self.plan = plan
        self.stream = stream
        self.merging = merging
        self.buffer = Buffer()
        self.slow: Interpreter | None = None
        self.meta = np.zeros((0, 7), np.int64)
        self.registers = np.zeros((0, 0), np.int64)
        self.buckets = np.zeros(0, np.int64)
        self.fast = compiled and not stream.uneven and self._assemble()
        self.begun = 0
        """No run was under way just before this position of the stream's order."""

    def endings(self) -> Iterator[tuple[list[int], int]]:
        """(nodes, horizon) for each step of the stream whose events end matches: the runs behind the nodes that started
        after `horizon` (microseconds). `forget` between two of them drops all runs."""
        for nodes, horizons, horizon in self._steps(each=True):
            if nodes:
                yield nodes, horizons[0]
            elif len(self.buffer) > MANY_LINKS:
                self.compact(horizon)

    def blocks(self) -> Iterator[tuple[list[int], list[int], int]]:
        """`endings`, many at a time: nodes, their horizons, and the horizon of the newest event read. After each the
        buffer may be made compact."""
        yield from self._steps(each=False)

    def forget(self) -> None:
        """No run is under way."""
        if self.slow is not None:
            self.slow.end()
        else:
            self._empty()
            self.begun = int(self.memory[k.AT])

    def compact(self, horizon: int) -> None:
        """Drops from the buffer what no run under way needs that started after `horizon`."""
        if self.slow is not None:
            self.slow.compact(horizon)
            return
        groups = self._groups()
        links = self.meta[groups, LINK]
        numbers = self.buffer.compacted([link for link in links.tolist() if link != NOTHING], horizon)
        # what is behind a link that is gone has started too early for any event that comes
        self.meta[groups, LINK] = [numbers.get(link, NOTHING) for link in links.tolist()]

    # --- compiled
    def _assemble(self) -> bool:
        """Whether the plan's registers are fields, and what its conditions need of each event can be computed."""
        stream = self.stream
        try:
            self.assembly = assembled(self.plan)
            self.words = Words(self.assembly, self._leaf, stream.length)
        except (NotCompiledError, BadEventsError):
            return False
        self.masks = stream.time, stream.begins.astype(np.int64), stream.takes.astype(np.int64)
        self.edges = _edges(states_of(self.plan), self.assembly)
        asks = (self.assembly.tables[0][:, WHEN_SLOT] >= 0).any()
        self.plain = bool(self.merging and self.assembly.width == 1 and not asks)
        self.memory = np.zeros(8, np.int64)
        self.lists = np.full((3, len(self.edges.ends)), -1, np.int64)
        self.goal = np.zeros((3, self.assembly.width), np.int64)
        self.goal[1, -1] = (1 << (self.assembly.width - 1)) - 1
        self._grow(64)
        self._empty()
        return True

    def _leaf(self, node: Any) -> pa.Array:
        stream = self.stream
        if isinstance(node, Agreement):
            return arrow(group_codes([stream.array(node.name)], stream.length).astype(np.int64))
        return evaluate(node, lambda read: stream.array(read.name), stream.length)

    def _grow(self, size: int) -> None:
        """Room for so many groups; those that are there are kept."""
        meta, registers = np.zeros((size, 7), np.int64), np.zeros((size, self.assembly.width), np.int64)
        if len(self.meta):
            meta[: len(self.meta)], registers[: len(self.meta)] = self.meta, self.registers
        self.meta, self.registers, self.buckets = meta, registers, np.full(2 * size, -1, np.int64)
        rehash(self.meta, self.buckets, self.lists)

    def _empty(self) -> None:
        for counted in (k.FREES, k.GROUPS, k.ALIVE, k.IN_STEP):
            self.memory[counted] = 0
        self.memory[k.FREE] = -1
        self.lists[:] = -1
        self.buckets[:] = -1

    def _groups(self) -> Int64s:
        """Those under way."""
        groups: list[int] = []
        for g in self.lists[[k.WAITING, k.TIED]].ravel().tolist():
            while g >= 0:
                groups.append(g)
                g = int(self.meta[g, NEXT])
        return np.array(groups, np.int64)

    def _steps(self, each: bool) -> Iterator[tuple[list[int], list[int], int]]:
        reported = -1
        if not self.fast:
            yield from self._slowly(each, reported)
            return
        stream, memory, mode = self.stream, self.memory, MODES.get(self.plan.select, k.CONTIGUOUS)
        arcs, moves, code = self.assembly.tables
        programs = Programs(arcs, moves, code, *self.words.machine)
        leaves = Leaves(self.words.leaves, self.words.leaf_null, self.words.leaf_slots)
        events = k.Events(stream.events, stream.broken, stream.step, *self.masks)
        ends: list[int] = []
        horizons: list[int] = []
        written = k.Links(np.empty((5, ROOM), np.int64), np.empty(ROOM, np.int64), np.empty(ROOM, np.int64))
        while True:
            groups = k.Groups(memory, self.meta, self.registers, self.buckets, self.lists, self.goal)
            rules = k.Rules(self.plan.within, mode, self.merging, self.plain, each, len(self.buffer))
            reason = k.advance(programs, leaves, events, self.edges, groups, written, rules)
            at, links, count = int(memory[k.AT]), int(memory[k.LINKS]), int(memory[k.ENDINGS])
            if reason == k.OVERFLOWED:
                # the event that did not fit has left links and ends behind: nothing of this go is reported
                cuts = np.flatnonzero(stream.broken[: at + 1])
                self.begun = max(self.begun, int(cuts[-1]) if len(cuts) else 0)
                yield from self._slowly(each, reported)
                return
            self.buffer.extend(written.columns[:, :links])
            ends += written.ends[:count].tolist()
            horizons += written.horizons[:count].tolist()
            whole = not each or reason == k.DONE or stream.step[at]
            if whole and (ends or reason == k.DONE or len(self.buffer) > MANY_LINKS):
                horizon = int(self.masks[0][stream.events[at - 1]]) - self.plan.within if at else 0
                reported = at - 1
                yield ends, horizons, horizon
                ends, horizons = [], []
            if reason == k.DONE:
                return
            if reason == k.MORE_GROUPS:
                self._grow(2 * len(self.meta))
            elif not links and not count:
                room = 2 * len(written.ends)
                written = k.Links(np.empty((5, room), np.int64), np.empty(room, np.int64), np.empty(room, np.int64))

    # --- in Python
    def _slowly(self, each: bool, reported: int) -> Iterator[tuple[list[int], list[int], int]]:
        """From where no run was under way; endings up to position `reported` are not given again."""
        self.slow = Interpreter(self.plan, self.stream, self.buffer, merging=self.merging)
        ends: list[int] = []
        horizons: list[int] = []
        horizon = 0
        for ends_of_step, horizon in self.slow.endings(self.begun):
            nodes = [node for position, node in ends_of_step if position > reported]
            if not nodes:
                continue
            ends += nodes
            horizons += [horizon] * len(nodes)
            if each or len(self.buffer) > MANY_LINKS:
                yield ends, horizons, horizon
                ends, horizons = [], []
        yield ends, horizons, horizon


def _edges(states: States, assembly: Assembly) -> k.Edges:
    rows = zip(states.edges, assembly.rows, strict=True)
    table = [(edge.target, row, edge.part, edge.later, edge.holds) for edge, row in rows]
    counts = [len(numbers) for numbers in states.leaving]
    ends = [row if ways else k.NO_END for ways, row in zip(states.ends, assembly.end_rows, strict=True)]
    first = np.cumsum([len(states.starting), *counts])
    most = max(2, *counts)
    chosen = np.zeros(max(most, len(states.starting)), np.int64)
    return k.Edges(np.array(table, np.int64), first, np.array(ends, np.int64), chosen, most)
