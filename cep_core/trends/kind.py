"""The entry of kind `trends`."""

from __future__ import annotations

from trendlake.cep_core.kind import Kind, Members, runtime
from trendlake.cep_core.trends import diagram as trends_diagram
from trendlake.cep_core.trends import explain as trends_explain
from trendlake.cep_core.trends.compile import plan as trends_plan
from trendlake.cep_core.trends.compile.form import bindings as trends_bindings
from trendlake.cep_core.trends.compile.form import form_of, has_lanes
from trendlake.cep_core.trends.compile.model import TrendsPattern

KIND = Kind(
    model=TrendsPattern,
    compile=trends_plan.compile_plan,
    run=runtime("trends", "run"),
    explain=trends_explain.explain,
    draw=trends_diagram.draw,
    version=trends_plan.ENGINE_VERSION,
    bindings=trends_bindings,
    members=Members(form_of, runtime("trends", "run_members"), has_lanes, runtime("trends", "run_lanes")),
    instead={"return": {"trends": "COUNT(*)"}, "within": "1 day"},
)
