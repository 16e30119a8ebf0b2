"""The automaton over one partition: merged runs step through its events, and each event that ends matches is told.

State k: parts 0..k have begun, the newest event is of part k. At a Kleene part a run takes an event, begins the next
part with it, ignores it, or does several of these (Agrawal et al. 2008, section 3.2); elsewhere it begins or ignores.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from cep_core.kernels.match_steps import ANY, CONTIGUOUS, LINKS_AN_EVENT, NEXT, steps
from cep_core.matches.buffer import NOTHING, Buffer
from cep_core.matches.plan import MatchesPlan
from cep_core.matches.program import Check, Program, Register
from cep_core.matches.stream import Partition, Stream

MANY_LINKS = 1 << 22
"""A buffer of more links is read, and cleared of what is past."""

Runs = dict[Register, int]
"""The merged runs of a state: register -> the link behind which they all are."""


class Automaton:
    """`merging` off keeps every run apart, for comparison: the same matches, without the sharing."""

    def __init__(self, plan: MatchesPlan, stream: Stream, *, merging: bool = True) -> None:
        self.plan = plan
        self.program = Program(plan, stream.values)
        self.masks = stream.time, stream.begins.astype(np.int64), stream.takes.astype(np.int64)
        self.merging = merging
        self.buffer = Buffer()
        self.last = len(plan.parts) - 1
        self.runs: list[Runs] = []
        self.serial = 0

    @cached_property
    def time(self) -> list[int]:
        """Of each event, microseconds."""
        return list(self.masks[0].tolist())

    @cached_property
    def begins(self) -> list[int]:
        """The parts that each event may begin, as bits."""
        return list(self.masks[1].tolist())

    @cached_property
    def takes(self) -> list[int]:
        """The parts that each event may go on with, as bits."""
        return list(self.masks[2].tolist())

    def endings(self, partition: Partition) -> Iterator[tuple[list[int], int]]:
        """(nodes, horizon) for each event that ends matches: the runs behind the nodes that started after `horizon`
        (microseconds). `forget` between two of them drops all runs."""
        self.forget()
        within, time = self.plan.within, self.time
        for event, broken in zip(partition.events.tolist(), partition.broken.tolist(), strict=True):
            if broken:
                self.forget()
            horizon = time[event] - within
            moved = self._step(event, horizon)
            starts = self.begins[event] & 1 and _all(self.program.begin[0], (), event)
            if (moved or starts) and (ends := self._settle(event, moved, bool(starts))):
                yield ends, horizon

    def blocks(self, partition: Partition) -> Iterator[tuple[list[int], list[int], int]]:
        """`endings`, many at a time: nodes, their horizons, and the horizon of the newest event read. After each the
        buffer may be made compact."""
        if self.program.plain and self.merging:
            yield from self._compiled_blocks(partition)
            return
        ends: list[int] = []
        horizons: list[int] = []
        horizon = 0
        for nodes, horizon in self.endings(partition):
            ends += nodes
            horizons += [horizon] * len(nodes)
            if len(self.buffer) > MANY_LINKS:
                yield ends, horizons, horizon
                ends, horizons = [], []
        yield ends, horizons, horizon

    def _compiled_blocks(self, partition: Partition) -> Iterator[tuple[list[int], list[int], int]]:
        """With empty registers a state has one run at most: its link is kept in an array, the loop is compiled."""
        parts = len(self.plan.parts)
        events, broken = partition.events, partition.broken
        kleene = np.array([part.kleene for part in self.plan.parts])
        mode = {"skip_till_any_match": ANY, "skip_till_next_match": NEXT}.get(self.plan.select, CONTIGUOUS)
        links, fresh = np.full(parts, NOTHING, np.int64), np.zeros(parts, np.int64)
        at = 0
        self.forget()
        while at < len(events):
            some = min(len(events) - at, max(1, MANY_LINKS // (LINKS_AN_EVENT * parts)))
            columns = np.empty((5, some * LINKS_AN_EVENT * parts), np.int64)
            ends, horizons = np.empty(2 * some, np.int64), np.empty(2 * some, np.int64)
            at, made, found = steps(
                at, len(self.buffer), events[: at + some], broken, *self.masks, kleene, self.plan.within, mode,
                links, fresh, columns, ends, horizons,
            )  # fmt: skip
            self.buffer.extend(columns[:, :made])
            self.runs = [{(): link} if link != NOTHING else {} for link in links.tolist()]
            yield (
                ends[:found].tolist(),
                horizons[:found].tolist(),
                int(self.masks[0][events[at - 1]]) - self.plan.within,
            )
            links[:] = [runs.get((), NOTHING) for runs in self.runs]

    def forget(self) -> None:
        """No run is under way."""
        self.runs = [{} for _ in self.plan.parts]

    def compact(self, horizon: int) -> None:
        """Drops from the buffer what no run under way needs that started after `horizon`."""
        numbers = self.buffer.compacted([link for runs in self.runs for link in runs.values()], horizon)
        for k, runs in enumerate(self.runs):
            self.runs[k] = {
                register: numbers[link] for register, link in runs.items() if numbers[link] != NOTHING
            }  # fmt: skip

    def _step(self, event: int, horizon: int) -> dict[int, Runs]:
        """Every run reads the event. Returns, by part, the runs that bound it there, by their new register."""
        moved: dict[int, Runs] = {}
        begins, takes = self.begins[event], self.takes[event]
        for k in range(self.last + 1):
            if self.runs[k]:
                next_part = k < self.last and bool(begins >> (k + 1) & 1)
                self._read(k, event, horizon, bool(takes >> k & 1), next_part, moved)
        return moved

    def _read(self, k: int, event: int, horizon: int, takes: bool, begins: bool, moved: dict[int, Runs]) -> None:
        """The runs of state k read an event that may be taken, or begin the next part, as far as it alone tells."""
        if not takes and not begins:
            if self.plan.contiguous:
                self.runs[k] = {}
            return
        any_match, contiguous = self.plan.select == "skip_till_any_match", self.plan.contiguous
        kleene = self.plan.parts[k].kleene
        program, newest = self.program, self.buffer.newest
        take, leave, extend = program.take[k], program.leave[k], program.extend[k]
        kept: Runs = {}
        for register, link in self.runs[k].items():
            if newest[link] <= horizon:
                continue
            taken = takes and (not take or _all(take, register, event))
            begun = begins and _all(leave, register, event) and _all(program.begin[k + 1], register, event)
            if taken:
                self._add(moved.setdefault(k, {}), extend(register, event), link)
            if begun:
                self._add(moved.setdefault(k + 1, {}), program.enter[k + 1](register, event), link)
            if any_match or (not contiguous and not (taken if kleene else begun)):
                kept[register] = link
        self.runs[k] = kept

    def _settle(self, event: int, moved: dict[int, Runs], starts: bool) -> list[int]:
        """What bound the event becomes nodes of the buffer, and goes on; those returned end matches."""
        ends: list[int] = []
        buffer = self.buffer
        nodes = [
            (k, register, buffer.node(event, k, link, buffer.newest[link]))
            for k, runs in moved.items()
            for register, link in runs.items()
        ]
        if starts:
            nodes.append((0, self.program.enter[0]((), event), buffer.node(event, 0, NOTHING, self.time[event])))
        for k, register, node in nodes:
            if k < self.last or self.plan.parts[k].kleene:
                self._add(self.runs[k], register, node)
            if k == self.last and _all(self.program.leave[k], register, event):
                ends.append(node)
        return ends

    def _add(self, runs: Runs, register: Register, link: int) -> None:
        if not self.merging:
            self.serial += 1
            register = (*register, self.serial)
        runs[register] = self.buffer.joined(runs.get(register), link)


def _all(checks: list[Check], register: Register, event: int) -> bool:
    for check in checks:  # noqa: SIM110 - a generator would be made for each run and event
        if not check(register, event):
            return False
    return True
