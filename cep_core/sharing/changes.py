"""Which changed events plans may bind: rows of a plan that can bind none stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.having import rows_that_hold
from trendlake.cep_core.kind import Pairs, Renewal, Renewed
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.plan import AnyPlan, Binding
from trendlake.cep_core.sharing.families import Unfolded
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.cep_core.sharing.interest import Interests


def binds_some(plan: AnyPlan) -> bool:
    """Whether events that the plan does not bind mean nothing to it: else `bindable` gives all of them."""
    one = plan.template if isinstance(plan, FamilyPlan) else plan  # its members' constants do not decide it
    return _bindings(one) is not None


def _bindings(plan: AnyPlan) -> tuple[Binding, ...] | None:
    """As the kind's; None where conditions may read derived columns, which changed events do not have."""
    return None if plan.schema.derived else KINDS[plan.kind].bindings(plan)


def pairs_of(plan: AnyPlan) -> Pairs | None:
    """How the rows of changed events are computed alone; None where rows are not of two events."""
    return KINDS[plan.kind].pairs


def renewal_of(plan: AnyPlan) -> Renewal | None:
    """How rows that changed events make are computed, where windows hold everything before them; None where all
    rows of their units are."""
    renewal = KINDS[plan.kind].renewal
    one = isinstance(plan, FamilyPlan) or plan.schema.derived or not plan.windows.endless
    return None if one or renewal is None or not renewal.can(plan) else renewal


def renewed(
    plan: AnyPlan, events: pa.Table, changed: pa.Table, published: pa.Table, span: tuple[int | None, int | None]
) -> Renewed:
    """As `Renewal.run` of a plan that has one. Raises TrendlakeError."""
    renewal = KINDS[plan.kind].renewal
    assert renewal is not None
    answer = renewal.run(plan, Columns(events), changed, published, span)
    return replace(answer, rows=rows_that_hold(plan.having, answer.rows))


def bindable(plans: Sequence[AnyPlan], events: Columns, *, unique_ids: bool) -> list[Int64s]:
    """Of each plan the numbers of the `events` that it may bind, ascending, whatever other plans there are; all where
    an event that it cannot bind may matter.

    `unique_ids`: whether it is known that no two events of one version share an id, as an event that has changed is
    listed twice, as it was and as it is.
    """
    unfolded = Unfolded(plans)
    bindings = [_bindings(plan) for plan in unfolded.plans]
    interests = Interests(events, unfolded.plans, bindings, always=True, unique_ids=unique_ids)
    chosen = [np.zeros(events.length, bool) for _ in plans]
    for number, owner in enumerate(unfolded.owners):
        if not chosen[owner].all():
            interest = interests.of(number)
            chosen[owner][slice(None) if interest is None else interest.rows] = True
    return [np.flatnonzero(mine) for mine in chosen]
