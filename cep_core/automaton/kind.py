"""The entry of kind `automaton`."""

from __future__ import annotations

from trendlake.cep_core.automaton import diagram as automaton_diagram
from trendlake.cep_core.automaton import explain as automaton_explain
from trendlake.cep_core.automaton.compile import plan as automaton_plan
from trendlake.cep_core.automaton.compile.check import compile_automaton
from trendlake.cep_core.automaton.compile.model import ArcModel, AutomatonPattern, FieldModel
from trendlake.cep_core.kind import Kind, runtime

KIND = Kind(
    model=AutomatonPattern,
    compile=compile_automaton,
    run=runtime("automaton", "run"),
    explain=automaton_explain.explain_automaton,
    draw=automaton_diagram.draw,
    version=automaton_plan.ENGINE_VERSION,
    instead={"within": "1 day"},
    nested={"arcs": ArcModel, "register": FieldModel},
)
