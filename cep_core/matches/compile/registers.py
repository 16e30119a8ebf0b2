"""The computation state of a run: which values it must remember, from where to where (Agrawal et al. 2008, 5.2).

A run in state k has bound parts 0..k and holds a register: a tuple with a value for each slot that is *live* in state
k, that is, written by a part up to k and still read by some condition. Nothing else of its past can matter to its
future, so runs of one state with equal registers take the same events from here on, and are merged (5.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import Condition, MatchesPlan, iterates


@dataclass(frozen=True, order=True)
class Slot:
    """One value of a register, written by the part `part`.

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
class Use:
    """`slot` is read when part `part` begins (`begins`), or while it goes on or is left."""

    slot: Slot
    part: int
    begins: bool


def places(plan: MatchesPlan) -> dict[str, int]:
    """Variable -> number of its part."""
    return {part.variable: number for number, part in enumerate(plan.parts)}


def slot_of(plan: MatchesPlan, index: int, read: s.Attribute, moment: str) -> Slot | None:
    """The slot in which condition `index` finds what it reads, at the moment `begin`, `take` or `leave`; None: in the
    event itself."""
    condition = plan.conditions[index]
    part = places(plan)[read.variable]
    later = part < condition.part or moment == "leave"
    if isinstance(read, s.Indexed) and read.index == "1":
        return Slot(part, "first", read.name) if later or moment == "take" else None
    if isinstance(read, s.Indexed) and read.index == "LEN":
        return Slot(part, "last", read.name)
    if later:
        return Slot(part, "seen", condition=index) if plan.parts[part].kleene else Slot(part, "first", read.name)
    return slot_of_newest(part, read)


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
    """Whether a condition reads nothing but the event it is looked at with."""
    reads = s.attributes(plan.conditions[index].expression)
    return all(slot_of(plan, index, read, moment) is None for read in reads)


def moments(plan: MatchesPlan, condition: Condition) -> tuple[str, ...]:
    """When a condition is looked at."""
    if condition.when == "each":
        return ("begin", "take") if plan.parts[condition.part].kleene else ("begin",)
    return {"first": ("begin",), "later": ("take",), "last": ("leave",)}[condition.when]


def scope_parts(plan: MatchesPlan, index: int) -> list[int]:
    """The parts of a scoped equivalence, in order; those of NOTs left out."""
    return sorted(number for name, number in places(plan).items() if name in plan.scoped[index][1])


def scope_slot(plan: MatchesPlan, index: int) -> Slot:
    """Where the value is kept that all events of a scope agree on."""
    return Slot(scope_parts(plan, index)[0], "scope", plan.scoped[index][0], condition=index)


def _uses(plan: MatchesPlan) -> Iterable[Use]:
    for index, condition in enumerate(plan.conditions):
        for moment in moments(plan, condition):
            for read in s.attributes(condition.expression):
                if slot := slot_of(plan, index, read, moment):
                    yield Use(slot, condition.part, moment == "begin")
                    if slot.what == "seen":
                        inner = (slot_of_newest(slot.part, one) for one in seen_reads(plan, slot))
                        yield from (Use(one, slot.part, False) for one in inner if one)
    for index in range(len(plan.scoped)):
        parts = scope_parts(plan, index)
        for number in parts:
            if number > parts[0]:
                yield Use(scope_slot(plan, index), number, True)
            if plan.parts[number].kleene:
                yield Use(scope_slot(plan, index), number, False)


def live_slots(plan: MatchesPlan) -> tuple[tuple[Slot, ...], ...]:
    """For each state the slots of its register, in order."""
    uses = set(_uses(plan))
    return tuple(
        tuple(
            sorted(
                {
                    use.slot
                    for use in uses
                    if use.slot.part <= state and (use.part > state or (use.part == state and not use.begins))
                }
            )
        )
        for state in range(len(plan.parts))
    )
