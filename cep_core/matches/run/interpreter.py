"""The automaton in Python: any register, whole numbers of any size on the way, one run after the other.

Runs that the compiled one (`automaton`) cannot hold, or gives up, are done here. The tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.closures import Check, Program, Register
from trendlake.cep_core.matches.run.events import Stream

Runs = dict[Register, int]
"""The merged runs of a state: register -> the link behind which they all are."""


class Interpreter:
    """Adds to `buffer`. `merging` off keeps every run apart."""

    def __init__(self, plan: MatchesPlan, stream: Stream, buffer: Buffer, *, merging: bool = True) -> None:
        self.plan = plan
        self.stream = stream
        self.program = Program(plan, stream.values)
        self.buffer = buffer
        self.merging = merging
        self.last = len(plan.parts) - 1
        self.time: list[int] = stream.time.tolist()
        self.begins: list[int] = stream.begins.tolist()
        self.takes: list[int] = stream.takes.tolist()
        self.runs: list[Runs] = []
        self.serial = 0
        self.forget()

    def endings(self, first: int) -> Iterator[tuple[int, list[int], int]]:
        """(position, nodes, horizon) for each event, from position `first` of the stream's order, that ends matches:
        the runs behind the nodes that started after `horizon` (microseconds). `forget` between two of them drops all
        runs."""
        self.forget()
        within, time = self.plan.within, self.time
        events, broken = self.stream.events[first:].tolist(), self.stream.broken[first:].tolist()
        for position, (event, cut) in enumerate(zip(events, broken, strict=True), first):
            if cut:
                self.forget()
            horizon = time[event] - within
            moved = self._step(event, horizon)
            starts = self.begins[event] & 1 and _all(self.program.begin[0], (), event)
            if (moved or starts) and (ends := self._settle(event, moved, bool(starts))):
                yield position, ends, horizon

    def forget(self) -> None:
        """No run is under way."""
        self.runs = [{} for _ in self.plan.parts]

    def compact(self, horizon: int) -> None:
        """Drops from the buffer what no run under way needs that started after `horizon`."""
        numbers = self.buffer.compacted([link for runs in self.runs for link in runs.values()], horizon)
        for k, runs in enumerate(self.runs):
            self.runs[k] = {register: numbers[link] for register, link in runs.items() if numbers[link] != NOTHING}

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
        live: Runs = {}
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
                live[register] = link
        self.runs[k] = live

    def _settle(self, event: int, moved: dict[int, Runs], starts: bool) -> list[int]:
        """The runs that bound the event become nodes of the buffer, and go on; those returned end matches."""
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
