"""Where matching may begin again: what a search reads around the rows it looks at, or why a revision begins at a
partition's first row."""

from __future__ import annotations

from dataclasses import dataclass

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import Navigation, Number, every
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.registers import by_of
from trendlake.cep_core.match_recognize.compile.syntax import Anchor, walk

MOST_PLACES = 2_000
MOST_VARIABLES = 63


@dataclass(frozen=True)
class Reach:
    """`back`: rows read before those that a search looks at, and `ahead`: behind them. `ends`: whether it asks if a row
    is the last one."""

    back: int
    ahead: int
    ends: bool


def reach_of(plan: RowPatternPlan) -> Reach | str:
    """The reach of searches, or in words what keeps a revision from beginning within a partition."""
    if not plan.forward:
        return "rows are not in the order of time, the earlier first"
    if plan.rows == "unmatched" and plan.onward.mode != "past_last":
        return "rows without a match are rows of the result, and matches may overlap"
    sources = {column.name: column for column in plan.inputs}
    if any(sources[name].value is not None or sources[name].origin != name for name in plan.partition_by):
        return "PARTITION BY has a column that is computed or renamed"
    if plan.program.length > MOST_PLACES or len(set(plan.program.variables)) > MOST_VARIABLES:
        return "the pattern has too many parts"
    read = list(_reads(plan))
    if any(isinstance(one, Number) for one in read):
        return "MATCH_NUMBER() depends on all matches before"
    shifts = [by_of(one) for one in read if isinstance(one, Navigation)]
    anchors = {part.last for part in walk(plan.pattern) if isinstance(part, Anchor)}
    back, ahead = -min([0, *shifts]), max([0, *shifts])
    return Reach(max(back, 1) if False in anchors else back, ahead, True in anchors)


def _reads(plan: RowPatternPlan) -> list[s.Expr]:
    asked = [value for _, value in plan.defines]
    asked += [column.value for column in plan.measures if column.value is not None]
    return [one for value in asked for one in every(value)]
