"""The entry of kind `match_recognize`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trendlake.cep_core.kind import Kind, Renewal, Templates, runtime
from trendlake.cep_core.match_recognize import diagram, explain
from trendlake.cep_core.match_recognize.compile import plan as row_pattern_plan
from trendlake.cep_core.match_recognize.compile.compile import compile_match_recognize
from trendlake.cep_core.match_recognize.compile.model import MatchRecognizePattern
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.plan import PANE


def same_rows(plan: Any) -> tuple[Any, tuple[Any, ...]]:
    """Plans that read the same rows in the same order run together, whatever they ask of them: those of a family, and
    others."""
    rows = (plan.schema, plan.inputs, plan.where, plan.partition_by, plan.order_by)
    return rows, (replace(plan, warnings=()) if plan.warnings else plan,)


def reach(plan: RowPatternPlan) -> int:
    """An eighth of the longest match, of a day where matches may be longer."""
    return min(plan.within, PANE) // 8


def ahead(plan: RowPatternPlan) -> int | None:
    """Without overlap a match ends before the next begins."""
    return 0 if plan.onward.mode == "past_last" else plan.bound


KIND = Kind(
    model=MatchRecognizePattern,
    compile=compile_match_recognize,
    run=runtime("match_recognize", "run"),
    explain=explain.explain_match_recognize,
    draw=diagram.draw,
    templates=Templates(same_rows, runtime("match_recognize", "run_over_same_rows")),
    renewal=Renewal(
        runtime("match_recognize", "can_renew"),
        runtime("match_recognize", "renewed"),
        reach,
        ahead,
        lambda plan: plan.limit,
    ),
    version=row_pattern_plan.ENGINE_VERSION,
    roles=("event_id", "event_time", "event_type"),
)
