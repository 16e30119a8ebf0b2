"""The automaton in Python: any register, whole numbers of any size on the way, one run after the other.

Runs that the compiled one (`automaton`) cannot hold, or gives up, are done here. The tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.run.buffer import NOTHING, Buffer
from trendlake.cep_core.matches.run.closures import Check, Program, Register
from trendlake.cep_core.matches.run.events import Stream

Runs = dict[Register, int]
"""The merged runs of a state: register -> the link behind which they all are."""


@dataclass
class Effect:
    """An event's effect on the runs of each state, for events that are later: those `bound` (state, register, node) are
    under way, and those `ended` (state, register) no more. `high`: of the event."""

    high: int
    bound: list[tuple[int, Register, int]] = field(default_factory=list)
    ended: list[tuple[int, Register]] = field(default_factory=list)


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
        self.low: list[int] = stream.low.tolist()
        self.high: list[int] = stream.high.tolist()
        self.begins: list[int] = stream.begins.tolist()
        self.takes: list[int] = stream.takes.tolist()
        self.runs: list[Runs] = []
        self.effects: list[Effect] = []
        self.after = self.newest = -1
        """Events whose `low` is not above `after` are of no match; `newest`: the `high` of the event read last."""
        self.serial = 0
        self.forget()

    def endings(self, first: int) -> Iterator[tuple[list[tuple[int, int]], int]]:
        """Nodes and their horizon for each step, from position `first` of the stream's order, that ends matches: the
        runs behind the nodes that started after `horizon` (microseconds). Each node stands behind the position of its
        event. `end` between two of them: the matches that are over are all there are up to here."""
        self.forget()
        stream, horizon = self.stream, 0
        ends: list[tuple[int, int]] = []
        columns = (values[first:].tolist() for values in (stream.events, stream.broken, stream.step))
        for position, (event, cut, step) in enumerate(zip(*columns, strict=True), first):
            if step and ends:
                yield ends, horizon
                ends = []
            if cut:
                self.forget()
            if self.low[event] <= self.after:
                continue
            self._pass(self.low[event])
            horizon = self.time[event] - self.plan.within
            self.newest = self.high[event]
            effect = Effect(self.newest)
            moved = self._step(event, horizon, effect)
            starts = self.begins[event] & 1 and _all(self.program.begin[0], (), event)
            if moved or starts:
                ends += [(position, node) for node in self._settle(event, moved, bool(starts), effect)]
            if effect.bound or effect.ended:
                self.effects.append(effect)
        if ends:
            yield ends, horizon

    def forget(self) -> None:
        """No run is under way."""
        self.runs = [{} for _ in self.plan.parts]
        self.effects = []
        self.after = -1

    def end(self) -> None:
        """No run is under way, and the next one begins with an event that is later than the one read last."""
        self.forget()
        self.after = self.newest

    def compact(self, horizon: int) -> None:
        """Drops from the buffer what no run under way needs that started after `horizon`."""
        waiting = [link for runs in self.runs for link in runs.values()]
        waiting += [link for effect in self.effects for _, _, link in effect.bound]
        numbers = self.buffer.compacted(waiting, horizon)
        for k, runs in enumerate(self.runs):
            self.runs[k] = {register: numbers[link] for register, link in runs.items() if numbers[link] != NOTHING}
        for effect in self.effects:
            bound = [(k, register, numbers[link]) for k, register, link in effect.bound]
            effect.bound = [one for one in bound if one[2] != NOTHING]

    def _pass(self, low: int) -> None:
        """The effects of the events before this `low` hold from here on."""
        past = [effect for effect in self.effects if effect.high < low]
        if not past:
            return
        self.effects = [effect for effect in self.effects if effect.high >= low]
        for effect in past:
            for k, register in effect.ended:
                self.runs[k].pop(register, None)
        ending = {one for effect in self.effects for one in effect.ended}
        for effect in past:
            for k, register, node in effect.bound:
                if (k, register) in ending:  # what ends is an older run
                    self._add(self.runs[k], register, node, apart=True)
                else:
                    self._add(self.runs[k], register, node)

    def _step(self, event: int, horizon: int, effect: Effect) -> dict[int, Runs]:
        """Every run reads the event. Returns, by part, the runs that bound it there, by their new register."""
        moved: dict[int, Runs] = {}
        begins, takes = self.begins[event], self.takes[event]
        for k in range(self.last + 1):
            if self.runs[k]:
                next_part = k < self.last and bool(begins >> (k + 1) & 1)
                self._read(k, event, horizon, bool(takes >> k & 1), next_part, moved, effect)
        return moved

    def _read(
        self, k: int, event: int, horizon: int, takes: bool, begins: bool, moved: dict[int, Runs], effect: Effect
    ) -> None:
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
            live[register] = link
            taken = takes and (not take or _all(take, register, event))
            begun = begins and _all(leave, register, event) and _all(program.begin[k + 1], register, event)
            if taken:
                self._add(moved.setdefault(k, {}), extend(register, event), link)
            if begun:
                self._add(moved.setdefault(k + 1, {}), program.enter[k + 1](register, event), link)
            if not any_match and (contiguous or (taken if kleene else begun)):
                effect.ended.append((k, register))
        self.runs[k] = live

    def _settle(self, event: int, moved: dict[int, Runs], starts: bool, effect: Effect) -> list[int]:
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
                effect.bound.append((k, register, node))
            if k == self.last and _all(self.program.leave[k], register, event):
                ends.append(node)
        return ends

    def _add(self, runs: Runs, register: Register, link: int, *, apart: bool = False) -> None:
        if apart or not self.merging:
            self.serial += 1
            register = (*register, self.serial)
        runs[register] = self.buffer.joined(runs.get(register), link)


def _all(checks: list[Check], register: Register, event: int) -> bool:
    for check in checks:  # noqa: SIM110 - a generator would be made for each run and event
        if not check(register, event):
            return False
    return True
