"""The entry of kind `match_recognize`."""

from __future__ import annotations

from trendlake.cep_core.kind import Kind, runtime
from trendlake.cep_core.match_recognize import diagram, explain
from trendlake.cep_core.match_recognize.compile import plan as row_pattern_plan
from trendlake.cep_core.match_recognize.compile.compile import compile_match_recognize
from trendlake.cep_core.match_recognize.compile.model import MatchRecognizePattern

KIND = Kind(
    model=MatchRecognizePattern,
    compile=compile_match_recognize,
    run=runtime("match_recognize", "run"),
    explain=explain.explain_match_recognize,
    draw=diagram.draw,
    version=row_pattern_plan.ENGINE_VERSION,
    roles=("event_id", "event_time", "event_type"),
)
