"""What a commit notes of the members of a family."""

from __future__ import annotations

import hashlib

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.patterns.parameters import Row
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.pipelines.results.notes import Members

MOST_NOTED = 10_000
"""Members of a family that a commit notes; the rows of a larger one are all computed again after an edit."""


def noted_members(plan: AnyPlan) -> Members | None:
    """What a commit notes of a family's members; nothing of other plans."""
    if not isinstance(plan, FamilyPlan):
        return None
    known = members_of(plan)
    return Members(plan.form, tuple(sorted(known)) if len(known) <= MOST_NOTED else None)


def members_of(plan: FamilyPlan) -> dict[str, Row]:
    """The rows of a family by hash."""
    hashes = (hashlib.sha256(key.encode()).hexdigest()[:16] for key in plan.parameters.keys)
    return dict(zip(hashes, plan.parameters.rows, strict=True))
