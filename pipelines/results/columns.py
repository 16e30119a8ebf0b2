"""The columns of a pattern's result rows that hold their time, and the order in which rows are listed."""

from __future__ import annotations

from trendlake.cep_core import AnyPlan


def time_of(plan: AnyPlan) -> str:
    """The column that says which window a row is of."""
    return plan.owned(range(1))[0]


def rank_of(plan: AnyPlan) -> str:
    """The column whose greatest values come first: the logarithm of a count, else the rows' time."""
    return plan.result_shape.rank or time_of(plan)


def ranking_of(plan: AnyPlan) -> str:
    """The name for the first rows: those with the largest counts, or the latest."""
    return "busiest" if rank_of(plan).endswith("_log10") else "latest"
