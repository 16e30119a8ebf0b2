"""How a plan may bind an event; and plans of one form: equal but for conditions that an index has answered already."""

from __future__ import annotations

from dataclasses import replace

from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import Binding
from trendlake.cep_core.trends.compile.plan import Plan

MEMBER = "\0member"
"""A column that no table has: the number of the plan that an event is for."""


def bindings(plan: Plan) -> tuple[Binding, ...] | None:
    """How a plan may bind an event, by variable. None where every event matters: under a contiguous selection any event
    parts two others, with `empty_windows` any event makes a row, and a variable may be of any type; and where events
    have intervals, whose part in a window no index knows."""
    if plan.whole_stream or plan.empty_windows or plan.of_any or plan.interval_start is not None:
        return None
    if plan.never:
        return ()
    of = {variable: tuple(node for name, node in plan.local if name == variable) for variable in plan.variables}
    return tuple(Binding(kind, of[variable]) for variable, kind in plan.types)


def form_of(plan: Plan, left: tuple[tuple[s.Expr, ...], ...]) -> Plan | None:
    """The plan with the conditions `left`, by variable, as its only local ones; None where it is not to be run as one
    with others: where it is cut by values or windows, counts pairs of trends, or returns a longest one."""
    if len(plan.automata) > 1 or plan.scoped or plan.window_by_window or plan.longest:
        return None
    local = tuple((variable, node) for variable, nodes in zip(plan.variables, left, strict=True) for node in nodes)
    return replace(plan, local=local, warnings=())


def with_members(form: Plan) -> Plan:
    """The plan of several members: events of different ones never meet, and share no row."""
    schema = form.schema
    roles = (schema.event_id, schema.event_time, schema.event_type, schema.sequence)
    known = EventSchema({**dict(schema.columns), MEMBER: "bigint"}, *roles, tables=schema.tables)
    return replace(form, shared=(MEMBER, *form.shared), group_by=(MEMBER, *form.group_by), schema=known)


def has_lanes(form: Plan) -> bool:
    """Whether plans of this form can be lanes of one pass: counts, of windows that do not overlap, without NOTs."""
    counts = all(measure.function == "count" and measure.lengths is None for measure in form.measures)
    whole = form.select == "skip_till_any_match" and form.windows.overlap == 1
    return counts and whole and not form.guards and not form.never and len(form.automata) == 1
