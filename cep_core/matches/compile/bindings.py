"""How a plan of kind matches may bind an event."""

from __future__ import annotations

from cep_core.language import syntax as s
from cep_core.matches.compile.plan import MatchesPlan, Negation
from cep_core.matches.compile.registers import is_local, moments
from cep_core.plan import Binding


def bindings(plan: MatchesPlan) -> tuple[Binding, ...] | None:
    """As the first event of each part, as a later one of each Kleene part, and as an event of each NOT. None under a
    contiguous selection, where a run may not ignore any event."""
    if plan.contiguous:
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
