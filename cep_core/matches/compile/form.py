"""How a plan of kind matches may bind an event; and plans of one form: equal but for conditions on single events that
an index has answered already."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, Measure, Negation
from trendlake.cep_core.matches.compile.registers import is_local, moments
from trendlake.cep_core.plan import Binding

MEMBER = "\0member"
"""A column that no table has: the number of the plan that an event is for."""


def bindings(plan: MatchesPlan) -> tuple[Binding, ...] | None:
    """How a plan may bind an event: as the first of each part, as a later one of each Kleene part, and as one of each
    NOT. None where every event matters: under a contiguous selection, and where a variable is of any type."""
    if plan.contiguous or plan.of_any:
        return None
    if plan.never:
        return ()
    asked: list[Binding] = []
    for k, part in enumerate(plan.parts):
        asked += [Binding(part.type_name, _of(plan, k, moment)) for moment in ("begin", "take")[: 1 + part.kleene]]
    return (*asked, *(Binding(negation.type_name, _of_not(negation)) for negation in plan.negations))


def _of(plan: MatchesPlan, part: int, moment: str) -> tuple[s.Expr, ...]:
    return tuple(
        condition.expression
        for index, condition in enumerate(plan.conditions)
        if condition.part == part and moment in moments(plan, condition) and is_local(plan, index, moment)
    )


def _of_not(negation: Negation) -> tuple[s.Expr, ...]:
    own = {negation.variable}
    return tuple(one for one in negation.conditions if {read.variable for read in s.attributes(one)} == own)


@dataclass(frozen=True)
class Form:
    """`plan`: without its conditions on single events; `left`: those that are still to be asked, by binding."""

    plan: MatchesPlan
    left: tuple[tuple[s.Expr, ...], ...]


def form_of(plan: MatchesPlan, left: tuple[tuple[s.Expr, ...], ...]) -> Form | None:
    """None where a plan is not to be run as one with others: where its rows are graphs, or wait for time to come."""
    if plan.output == "compressed" or plan.limit_of_last is not None:
        return None
    # One that is asked of the first event of a Kleene part alone, or of later ones, stays: states then tell them apart.
    asked = tuple(
        condition
        for index, condition in enumerate(plan.conditions)
        if condition.when != "each" or not all(is_local(plan, index, moment) for moment in moments(plan, condition))
    )
    negations = tuple(
        replace(
            one,
            conditions=tuple(
                c for c in one.conditions if {read.variable for read in s.attributes(c)} != {one.variable}
            ),
        )
        for one in plan.negations
    )
    return Form(replace(plan, conditions=asked, negations=negations, warnings=()), left)


def with_members(plan: MatchesPlan) -> MatchesPlan:
    """The plan of several members: events of different ones never meet; the first event of a match says whose it is."""
    schema = plan.schema
    roles = (schema.event_id, schema.event_time, schema.event_type, schema.sequence)
    known = EventSchema({**dict(schema.columns), MEMBER: "bigint"}, *roles, tables=schema.tables)
    reads = tuple(
        s.Indexed(part.variable, MEMBER, index="1") if part.kleene else s.Attribute(part.variable, MEMBER)
        for part in plan.parts
    )
    owner = Measure(MEMBER, reads[0] if plan.tree is None else s.Call("coalesce", reads), "int")
    return replace(plan, partition=(MEMBER, *plan.partition), measures=(*plan.measures, owner), schema=known)
