"""The computation state of a run: which values it must remember, from where to where (Agrawal et al. 2008, 5.2).

A run in state k holds a register: a tuple with a value for each slot that is *live* in state k, that is, written on the
way there and still read by some condition. Nothing else of its past can matter to its future, so runs of one state with
equal registers take the same events from here on, and are merged (5.2.2).

A condition is true of a match if it is true of each choice of events of its variables: of `a.x` each event of a, of
`a[i].x` each after the first. It is asked of a choice as soon as all that it reads is known: when the last event of the
choice is bound, and, where it reads `a[a.LEN]`, when a can bind no more. A variable without events leaves no choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import Condition, MatchesPlan, iterates
from trendlake.cep_core.matches.compile.states import Edge, States, states_of


@dataclass(frozen=True, order=True)
class Slot:
    """One value of a register, written by the events of the part `part`.

    `what`: `first` (attribute `name` of its first event), `last` (of its newest), `running` (the aggregate `function`
    of `name` over its events so far), `scope` (`name` of the first event of a scoped equivalence), or `seen`: of the
    condition `condition`, the distinct values it reads of each of the part's events, because it speaks of all of them
    and is decided later.
    """

    part: int
    what: str
    name: str = ""
    function: str = ""
    condition: int = -1


@dataclass(frozen=True)
class Ask:
    """Condition number `condition`, on an edge or at the end of a match, for some choices of events. `newest`: those
    with the event that the edge binds; else those without it, as far as it is one of many."""

    condition: int
    newest: bool


@dataclass(frozen=True)
class Questions:
    """The questions of an edge: conditions, those of the register alone first, and scoped equivalences (their numbers)
    that the event must agree with; `begun`: those that it is the first event of."""

    asks: tuple[Ask, ...]
    scopes: tuple[int, ...]
    begun: tuple[int, ...]


def places(plan: MatchesPlan) -> dict[str, int]:
    """Variable -> number of its part."""
    return {part.variable: number for number, part in enumerate(plan.parts)}


class Registers:
    """`questions`: by edge; `at_end`: by state, the conditions asked where a match ends; `live`: by state, its slots in
    order."""

    def __init__(self, plan: MatchesPlan) -> None:
        self.plan = plan
        self.states: States = states_of(plan)
        self.part = places(plan)
        self.many = [part.kleene for part in plan.parts]
        reads = [s.attributes(condition.expression) for condition in plan.conditions]
        self.read_of = [frozenset(self.part[read.variable] for read in one) for one in reads]
        self.last_of = [frozenset(self.part[r.variable] for r in one if _index(r) == "LEN") for one in reads]
        self.questions = [Questions(tuple(self._asks(edge)), *self._scopes(edge)) for edge in self.states.edges]
        self._of_edge = dict(zip(self.states.edges, self.questions, strict=True))
        self.at_end = [tuple(self._at_end(k)) if ways else () for k, ways in enumerate(self.states.ends)]
        self.live = self._live()

    # --- what is asked
    def _asks(self, edge: Edge) -> Iterator[Ask]:
        bound, target = self.states.bound(edge), self.states.states[edge.target]
        before, after = self.states.rest(edge), self.states.after[target.position]
        asks: list[Ask] = []
        for index, variables in enumerate(self.read_of):
            lasts = self.last_of[index]
            if lasts & after or not variables - {edge.part} <= bound:
                continue
            done_now = bool(lasts) and (before is None or bool(lasts & before))
            if edge.part not in variables:
                if done_now:
                    asks.append(Ask(index, newest=False))
                continue
            styles = self._styles(index, edge.part)
            if not styles:
                if done_now or not edge.later:
                    asks.append(Ask(index, newest=True))
                continue
            if done_now and edge.later:
                asks.append(Ask(index, newest=False))
            if styles == {"each"} or edge.later:
                asks.append(Ask(index, newest=True))
        yield from sorted(asks, key=lambda ask: (edge.part in self.read_of[ask.condition], ask.condition))

    def _styles(self, index: int, part: int) -> set[str]:
        """How a condition speaks of a part's events one by one: `each`, `later`; none of them where it does not."""
        reads = s.attributes(self.plan.conditions[index].expression)
        mine = (read for read in reads if self.part[read.variable] == part)
        return {iterates(read) for read in mine} - {""}

    def _at_end(self, state: int) -> Iterator[Ask]:
        known = self.states.states[state]
        after = self.states.after[known.position]
        for index, lasts in enumerate(self.last_of):
            if lasts & after and self.read_of[index] <= set(known.bound):
                yield Ask(index, newest=False)

    def _scopes(self, edge: Edge) -> tuple[tuple[int, ...], tuple[int, ...]]:
        bound = self.states.bound(edge)
        asked: list[int] = []
        begun: list[int] = []
        for index in range(len(self.plan.scoped)):
            parts = scope_parts(self.plan, index)
            if edge.part in parts:
                (asked if bound & set(parts) else begun).append(index)
        return tuple(asked), tuple(begun)

    # --- where values are found
    def slot_of(self, ask: Ask, read: s.Attribute, edge: Edge | None) -> Slot | None:
        """The slot in which a condition finds what it reads; None: in the event that the edge binds."""
        part, index = self.part[read.variable], _index(read)
        mine = edge is not None and edge.part == part
        if index == "1":
            return Slot(part, "first", read.name) if not mine or edge is None or edge.later else None
        if index == "LEN":
            return None if mine else Slot(part, "last", read.name)
        if mine and ask.newest:
            return slot_of_newest(part, read)
        return Slot(part, "seen", condition=ask.condition) if self.many[part] else Slot(part, "first", read.name)

    def slots_of(self, ask: Ask, edge: Edge | None) -> list[Slot]:
        """All that a condition reads of the register."""
        reads = s.attributes(self.plan.conditions[ask.condition].expression)
        return [slot for read in reads if (slot := self.slot_of(ask, read, edge))]

    def is_local(self, ask: Ask, edge: Edge) -> bool:
        """Whether it asks nothing but the event, and is known of it beforehand (`cep_core.matches.run.events`)."""
        moment = "take" if edge.later else "begin"
        condition = self.plan.conditions[ask.condition]
        return moment in moments(self.plan, condition) and is_local(self.plan, ask.condition, moment)

    def writes(self, edge: Edge, slot: Slot) -> bool:
        """Whether the edge's event gives the slot a value, or changes it."""
        if slot.what == "scope":
            return slot.condition in self._of_edge[edge].begun
        return slot.part == edge.part

    def begins(self, edge: Edge, slot: Slot) -> bool:
        """Whether the slot's value after the edge does not depend on that before."""
        return self.writes(edge, slot) and (slot.what in ("scope", "last") or not edge.later)

    def question_of(self, edge: Edge) -> Questions:
        """The questions of an edge."""
        return self._of_edge[edge]

    def all_asks(self) -> Iterator[tuple[Ask, Edge | None]]:
        """Every question, with its edge; None: at the end."""
        for edge, questions in self._of_edge.items():
            yield from ((ask, edge) for ask in questions.asks)
        yield from ((ask, None) for asks in self.at_end for ask in asks)

    # --- what is remembered
    def _live(self) -> tuple[tuple[Slot, ...], ...]:
        count = len(self.states.states)
        live: list[set[Slot]] = [
            {slot for ask in self.at_end[k] for slot in self.slots_of(ask, None)} for k in range(count)
        ]
        asked: list[set[Slot]] = []
        for edge, questions in zip(self.states.edges, self.questions, strict=True):
            slots = {slot for ask in questions.asks for slot in self.slots_of(ask, edge)}
            asked.append(slots | {scope_slot(self.plan, index) for index in questions.scopes})
        changed = True
        while changed:
            changed = False
            for k in range(count - 1, -1, -1):
                size = len(live[k])
                for number in self.states.leaving[k]:
                    edge = self.states.edges[number]
                    live[k] |= asked[number]
                    for slot in tuple(live[edge.target]):
                        if not self.begins(edge, slot):
                            live[k].add(slot)
                            if slot.what == "seen" and self.writes(edge, slot):
                                inner = (slot_of_newest(slot.part, one) for one in seen_reads(self.plan, slot))
                                live[k] |= {one for one in inner if one}
                changed = changed or len(live[k]) != size
        return tuple(tuple(sorted(slots)) for slots in live)


def registers_of(plan: MatchesPlan) -> Registers:
    """Made once for a plan object."""
    known: Registers | None = plan.__dict__.get("_registers")
    if known is None:
        known = plan.__dict__["_registers"] = Registers(plan)
    return known


def live_slots(plan: MatchesPlan) -> tuple[tuple[Slot, ...], ...]:
    """For each state the slots of its register, in order."""
    return registers_of(plan).live


def _index(read: s.Attribute) -> str:
    return read.index if isinstance(read, s.Indexed) else ""


def slot_of_newest(part: int, read: s.Attribute) -> Slot | None:
    """Where `a.x`, `a[i].x`, `a[i-1].x` and `avg(a[..i-1].x)` are found when an event is looked at as the i-th."""
    if isinstance(read, s.Indexed) and read.index == "i-1":
        return Slot(part, "last", read.name)
    if isinstance(read, s.Indexed) and read.function:
        return Slot(part, "running", read.name, read.function)
    return None


def seen_reads(plan: MatchesPlan, slot: Slot) -> list[s.Attribute]:
    """The attributes of each event that a `seen` slot keeps, in order."""
    variable = plan.parts[slot.part].variable
    reads = s.attributes(plan.conditions[slot.condition].expression)
    return list(dict.fromkeys(read for read in reads if read.variable == variable and iterates(read)))


def is_local(plan: MatchesPlan, index: int, moment: str) -> bool:
    """Whether a condition reads nothing but the event it is asked of, as the first of its variable (`begin`) or a later
    one (`take`)."""
    condition = plan.conditions[index]
    variable = plan.parts[condition.part].variable
    return moment != "leave" and all(
        read.variable == variable
        and _index(read) != "LEN"
        and (_index(read) != "1" or moment == "begin")
        and slot_of_newest(condition.part, read) is None
        for read in s.attributes(condition.expression)
    )


def moments(plan: MatchesPlan, condition: Condition) -> tuple[str, ...]:
    """When a condition on the events of one part is asked."""
    if condition.when == "each":
        return ("begin", "take") if plan.parts[condition.part].kleene else ("begin",)
    return {"first": ("begin",), "later": ("take",), "last": ("leave",)}[condition.when]


def scope_parts(plan: MatchesPlan, index: int) -> list[int]:
    """The parts of a scoped equivalence, in order; those of NOTs left out."""
    return sorted(number for name, number in places(plan).items() if name in plan.scoped[index][1])


def scope_slot(plan: MatchesPlan, index: int) -> Slot:
    """Where the value is kept that all events of a scope agree on."""
    return Slot(scope_parts(plan, index)[0], "scope", plan.scoped[index][0], condition=index)
