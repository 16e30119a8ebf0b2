"""The entry of kind `matches`."""

from __future__ import annotations

from trendlake.cep_core.kind import Kind, Members, runtime
from trendlake.cep_core.matches import diagram as matches_diagram
from trendlake.cep_core.matches import explain as matches_explain
from trendlake.cep_core.matches.compile import plan as matches_plan
from trendlake.cep_core.matches.compile.check import compile_matches
from trendlake.cep_core.matches.compile.form import bindings as matches_bindings
from trendlake.cep_core.matches.compile.form import form_of as form_of_matches
from trendlake.cep_core.matches.compile.model import MatchesPattern

KIND = Kind(
    model=MatchesPattern,
    compile=compile_matches,
    run=runtime("matches", "run"),
    explain=matches_explain.explain_matches,
    draw=matches_diagram.draw,
    version=matches_plan.ENGINE_VERSION,
    bindings=matches_bindings,
    members=Members(form_of_matches, runtime("matches", "run_members")),
    instead={"within": "1 day"},
)
