"""How a plan of kind trends may bind an event."""

from __future__ import annotations

from cep_core.plan import Binding
from cep_core.trends.compile.plan import Plan


def bindings(plan: Plan) -> tuple[Binding, ...] | None:
    """By variable. None where events that no variable may bind matter: under a contiguous selection any event parts
    two others, and with `empty_windows` any event makes a row."""
    if plan.whole_stream or plan.empty_windows:
        return None
    if plan.never:
        return ()
    of = {variable: tuple(node for name, node in plan.local if name == variable) for variable in plan.variables}
    return tuple(Binding(kind, of[variable]) for variable, kind in plan.types)
