"""The entry of kind `algebra`."""

from __future__ import annotations

from typing import Any

from trendlake.cep_core.algebra import diagram as algebra_diagram
from trendlake.cep_core.algebra import explain as algebra_explain
from trendlake.cep_core.algebra.compile import plan as algebra_plan
from trendlake.cep_core.algebra.compile.bindings import bindings as algebra_bindings
from trendlake.cep_core.algebra.compile.compile import compile_algebra
from trendlake.cep_core.algebra.compile.model import AlgebraPattern
from trendlake.cep_core.kind import Kind, Templates, runtime


def _template_of_algebra(plan: Any) -> tuple[Any, tuple[Any, ...]] | None:
    form = plan.form
    return None if form is None else (form.template, form.constants)


KIND = Kind(
    model=AlgebraPattern,
    compile=compile_algebra,
    run=runtime("algebra", "run"),
    explain=algebra_explain.explain_algebra,
    draw=algebra_diagram.draw,
    version=algebra_plan.ENGINE_VERSION,
    bindings=algebra_bindings,
    templates=Templates(_template_of_algebra, runtime("algebra", "run_template")),
    instead={"within": "1 day"},
)
