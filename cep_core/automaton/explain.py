"""An automaton in words: the register, each state's arcs, what is known of an event beforehand, what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.automaton.compile.plan import EPSILON, EVENT, IGNORE, WINDOW_END, Arc, AutomatonPlan, Field
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import duration, expression, moment


def explain_automaton(plan: AutomatonPlan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: AutomatonPlan) -> Iterator[str]:
    yield f"plan {plan.hash}, automaton"
    yield f"within    {duration(plan.within)} from a run's first event"
    yield f"reads     {', '.join(plan.columns)}"
    yield f"partition {', '.join(plan.partition_by) or 'none: the whole stream is one sequence'}"
    tie = f"{plan.schema.sequence}, then {plan.schema.event_id}" if plan.schema.sequence else plan.schema.event_id
    yield f"order     {plan.schema.event_time}; ties by {tie}"
    for field in plan.register:
        yield f"register  {field.name}: {_type(field)}, at first {_init(field)}"
    if not plan.register:
        yield "register  none: a run is its state"
    for index, name in enumerate(plan.states):
        marks = [word for word, so in (("start", index == plan.start), ("final", index in plan.final)) if so]
        yield f"{name}{' (' + ', '.join(marks) + ')' if marks else ''}:"
        for arc in plan.arcs:
            if arc.source == index:
                yield f"  {_arc(plan, arc)}"
    if plan.non_overlap:
        yield "output    of a partition the run that ends first, then begins first, and so on after it"
    yield from _cost(plan)
    yield from plan.warnings


def _type(field: Field) -> str:
    return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}.get(field.bits, field.family)


def _init(field: Field) -> str:
    if field.init is None:
        return "NULL"
    if field.family in ("timestamp", "date"):
        return moment(int(field.init))
    return expression(s.Literal(field.init, field.family))


def _arc(plan: AutomatonPlan, arc: Arc) -> str:
    what = {
        EVENT: "takes the event",
        IGNORE: "ignores the event",
        EPSILON: "takes no event",
        WINDOW_END: "at the window's end",
    }[arc.how]
    parts = [f"-> {plan.states[arc.target]}: {what}"]
    if arc.local:
        parts.append(f"if {' AND '.join(_show(node) for node in arc.local)} (of the event: known before any run)")
    if arc.when:
        parts.append(f"{'and ' if arc.local else ''}if {_show(arc.when)} (asked of each register)")
    if arc.sets:
        parts.append(", ".join(f"{plan.register[k].name} := {_show(value)}" for k, value in arc.sets))
    if arc.valid_from is not None or arc.valid_to is not None:
        low = f"from {moment(arc.valid_from)}" if arc.valid_from is not None else ""
        high = f"before {moment(arc.valid_to)}" if arc.valid_to is not None else ""
        parts.append(f"lives {' '.join(part for part in (low, high) if part)}")
    return "; ".join(parts)


def _show(node: s.Expr) -> str:
    return expression(node)


def _cost(plan: AutomatonPlan) -> Iterator[str]:
    resting = [
        plan.states[q]
        for q in range(len(plan.states))
        if any(a.source == q and a.how == IGNORE and a.when is None for a in plan.arcs)
        and not any(a.source == q and a.how == EPSILON for a in plan.arcs)
    ]
    if resting:
        yield f"rests     runs in {', '.join(resting)} stay untouched while their events are ignored"
    bounds = {t for arc in plan.arcs for t in (arc.valid_from, arc.valid_to) if t is not None}
    if bounds:
        yield f"changes   {len(bounds):,} times: each event looks up the arcs of its time"
    kinds = "state" if not plan.register else "state and register"
    yield f"cost      O(arcs) an event and {kinds} alive; runs of one {kinds} are one, whenever they began"
    yield "          rows: one a first event, last event, final state and register (at most, those of a window)"
