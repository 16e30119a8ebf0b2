"""The plans over one source that one pass computes together, found without events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import arrow_type
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.cep_core.sharing.interest import Interests
from trendlake.cep_core.sharing.lanes import Lane
from trendlake.cep_core.sharing.run_plans import bare, template_of

Way = Literal["equal", "template", "members", "lanes", "own", "all"]


@dataclass(frozen=True)
class SharedPass:
    """The plans of one pass, by number. `way`: they are `equal`; of one `template`, that is equal but for constants;
    `members`, each given few events; `lanes`, whatever their events; one plan of its `own`, given the events that its
    conditions leave; or one given `all` events."""

    way: Way
    plans: tuple[int, ...]


def shared_passes(plans: Sequence[AnyPlan]) -> list[SharedPass]:
    """The passes of plans that run together, each plan in one of them. Plans of one form are `members` where each wants
    few events, else each has a pass of its own; a family has one of its own, in which its members share."""
    groups: dict[tuple[Way, Any], list[int]] = {}
    for number, key in enumerate(_keys(plans)):
        groups.setdefault(key, []).append(number)
    return [SharedPass(_way(way, [plans[n] for n in numbers]), tuple(numbers)) for (way, _), numbers in groups.items()]


def _way(way: Way, plans: list[AnyPlan]) -> Way:
    if len(plans) == 1:
        return way if way == "all" else "own"
    return "equal" if len({bare(plan) for plan in plans}) == 1 else way


def _keys(plans: Sequence[AnyPlan]) -> list[tuple[Way, Any]]:
    """Of each plan how it may share a pass, and what is equal of plans that do."""
    single = [plan for plan in plans if not isinstance(plan, FamilyPlan)]
    table = pa.table({name: pa.array([], arrow_type(kind)) for name, kind in plans[0].schema.columns})
    bindings = [KINDS[plan.kind].bindings(plan) for plan in single]
    interests = Interests(Columns(table), single, bindings, always=True, unique_ids=True)
    of_single = iter([_key(plan, interests.lane(at)) for at, plan in enumerate(single)])
    return [("own", at) if isinstance(plan, FamilyPlan) else next(of_single) for at, plan in enumerate(plans)]


def _key(plan: AnyPlan, lane: Lane | None) -> tuple[Way, Any]:
    members, template = KINDS[plan.kind].members, template_of(plan)
    if template is not None:
        return "template", template[0]
    if lane is None:
        return "all", bare(plan)
    form = None if members is None else members.form(plan, lane.left)
    if members is None or form is None:
        return "own", bare(plan)
    return "lanes" if members.has_lanes(form) else "members", form
