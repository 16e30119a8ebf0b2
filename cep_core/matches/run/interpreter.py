"""The automaton in Python: any register, whole numbers of any size on the way, one run after the other.

Runs that the compiled one (`automaton`) cannot hold, or gives up, are done here. The tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.states import states_of
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
        self.states = states_of(plan)
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
            starts = [number for number in self.states.starting if self._fires(number, (), event)]
            if moved or starts:
                ends += [(position, node) for node in self._settle(event, moved, starts, effect)]
            if effect.bound or effect.ended:
                self.effects.append(effect)
        if ends:
            yield ends, horizon

    def forget(self) -> None:
        """No run is under way."""
        self.runs = [{} for _ in self.states.states]
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
        """Every run reads the event. Returns, by state, the runs that bound it there, by their new register."""
        moved: dict[int, Runs] = {}
        for k in range(len(self.runs)):
            if self.runs[k]:
                edges = [number for number in self.states.leaving[k] if self._may(number, event)]
                self._read(k, event, horizon, edges, moved, effect)
        return moved

    def _may(self, number: int, event: int) -> bool:
        """Whether the event may be bound by an edge, as far as it alone tells."""
        edge = self.states.edges[number]
        return bool((self.takes if edge.later else self.begins)[event] >> edge.part & 1)

    def _fires(self, number: int, register: Register, event: int) -> bool:
        return self._may(number, event) and _all(self.program.checks[number], register, event)

    def _read(self, k: int, event: int, horizon: int, edges: list[int], moved: dict[int, Runs], effect: Effect) -> None:
        """The runs of state k read an event that some `edges` may bind, as far as it alone tells."""
        if not edges:
            if self.plan.contiguous:
                self.runs[k] = {}
            return
        any_match, contiguous = self.plan.select == "skip_till_any_match", self.plan.contiguous
        program, newest = self.program, self.buffer.newest
        taken = [(number, self.states.edges[number], program.moves[number]) for number in edges]
        live: Runs = {}
        for register, link in self.runs[k].items():
            if newest[link] <= horizon:
                continue
            live[register] = link
            held = False
            for number, edge, move in taken:
                if _all(program.checks[number], register, event):
                    self._add(moved.setdefault(edge.target, {}), move(register, event), link)
                    held = held or edge.holds
            if not any_match and (contiguous or held):
                effect.ended.append((k, register))
        self.runs[k] = live

    def _settle(self, event: int, moved: dict[int, Runs], starts: list[int], effect: Effect) -> list[int]:
        """The runs that bound the event become nodes of the buffer, and go on; those returned end matches."""
        ends: list[int] = []
        buffer = self.buffer
        nodes = [
            (k, register, buffer.node(event, k, link, buffer.newest[link]))
            for k, runs in moved.items()
            for register, link in runs.items()
        ]
        for number in starts:
            k = self.states.edges[number].target
            node = buffer.node(event, k, NOTHING, self.time[event])
            nodes.append((k, self.program.moves[number]((), event), node))
        for k, register, node in nodes:
            if self.states.leaving[k]:
                effect.bound.append((k, register, node))
            if self.states.ends[k] and _all(self.program.ends[k], register, event):
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
