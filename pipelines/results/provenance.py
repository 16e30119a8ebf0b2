"""Columns that say where a result row comes from."""

from __future__ import annotations

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS

PLAN_HASH = "plan_hash"
PROVENANCE = PROVENANCE_COLUMNS - {PLAN_HASH}
"""Columns in which two rows may differ without being another result. The plan's hash is not one of them: a row of
another form of the pattern is another result."""


def identity(plan: AnyPlan) -> tuple[str, ...]:
    """The columns by which a published row is known to be the same result as a computed one. The key alone does not
    say it: rows of another form may have another key, so that several of them agree on this one."""
    return (*plan.key, PLAN_HASH)
