"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cep_core.automaton.compile import plan as automaton
from cep_core.automaton.compile.check import compile_automaton
from cep_core.automaton.diagram import draw as draw_automaton
from cep_core.automaton.explain import explain_automaton
from cep_core.automaton.run.run import run_automaton
from cep_core.drawing import Drawing, svg
from cep_core.errors import NotSupportedError, PatternErrors
from cep_core.events.schema import EventSchema, schema_of
from cep_core.load import read_pattern
from cep_core.matches.compile import plan as matches
from cep_core.matches.compile.check import compile_matches
from cep_core.matches.diagram import draw as draw_matches
from cep_core.matches.explain import explain_matches
from cep_core.matches.run.run import run_matches
from cep_core.patterns.expectations import type_mistakes
from cep_core.patterns.model import Pattern
from cep_core.plan import AnyPlan
from cep_core.trends.compile import plan as trends
from cep_core.trends.compile.plan import compile_plan as compile_trends
from cep_core.trends.diagram import draw as draw_trends
from cep_core.trends.explain import explain as explain_trends
from cep_core.trends.run.run import run_plan as run_trends


@dataclass(frozen=True)
class Kind:
    """What is done with patterns of one kind.

    `compile` takes the kind's model and a schema, and raises PatternErrors with all mistakes; `run` takes the plan, the
    events, the windows wanted (None: all) and the watermark (None: not said); `explain` gives text for a terminal;
    `draw` the picture of a plan under a title (None: plans of the kind have none).
    """

    compile: Callable[[Any, EventSchema], AnyPlan]
    run: Callable[[Any, pa.Table, range | None, int | None], pa.Table]
    explain: Callable[[Any], str]
    draw: Callable[[Any, str], Drawing] | None = None


def _timeless(
    run: Callable[[Any, pa.Table, range | None], pa.Table],
) -> Callable[[Any, pa.Table, range | None, int | None], pa.Table]:
    """Of a kind whose rows say nothing about time itself."""
    return lambda plan, events, windows, watermark: run(plan, events, windows)


KINDS: Mapping[str, Kind] = {
    "trends": Kind(compile_trends, _timeless(run_trends), explain_trends, draw_trends),
    "matches": Kind(compile_matches, _timeless(run_matches), explain_matches, draw_matches),
    "automaton": Kind(compile_automaton, run_automaton, explain_automaton, draw_automaton),
}

ENGINE_VERSIONS: Mapping[str, int] = {
    "trends": trends.ENGINE_VERSION,
    "matches": matches.ENGINE_VERSION,
    "automaton": automaton.ENGINE_VERSION,
}
"""The version of each kind's engine: raised when the results of a plan that stays the same change."""


def compile_query(query: str | Path | Mapping[str, Any], schema: EventSchema) -> AnyPlan:
    """Load and compile in one. Raises PatternErrors with the mistakes of the file's shape and of what it says."""
    pattern, errors = read_pattern(query)
    if pattern is None:
        raise PatternErrors(errors)
    try:
        plan = compile_plan(pattern, schema)
    except PatternErrors as failure:
        raise PatternErrors([*errors, *failure.errors]) from None
    if errors:
        raise PatternErrors(errors)
    return plan


def compile_plan(pattern: Pattern, schema: EventSchema) -> AnyPlan:
    """Check `pattern` against `schema` and compile it.

    Raises PatternErrors with all mistakes; conditions without effect become the plan's `warnings` and a PatternWarning.
    """
    if pattern.kind not in KINDS:
        message = f"kind '{pattern.kind}' is not built yet; {' and '.join(KINDS)} is"
        raise PatternErrors([NotSupportedError(message, place=pattern.document.place(("kind",)))])
    plan = KINDS[pattern.kind].compile(pattern, schema)
    errors = type_mistakes(pattern.expect, pattern.measures, plan.result_schema, pattern.document)
    if errors:
        raise PatternErrors(errors)
    return plan


def run_plan(plan: AnyPlan, events: pa.Table, windows: range | None = None, watermark: int | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over `events`, of all keys, in any order; of `windows` only, if
    given. `watermark`: how far time is known to have come, microseconds, for plans that wait; else the latest event, or
    with `windows` their end, says it."""
    return KINDS[plan.kind].run(plan, _taken(events), windows, watermark)


def _taken(events: pa.Table) -> pa.Table:
    """`events` with the strings that Arrow's own functions cannot yet choose rows of (views, as polars gives) as
    plain ones."""
    for number, field in enumerate(events.schema):
        if pa.types.is_string_view(field.type):
            events = events.set_column(number, field.name, events.column(number).cast(pa.string()))
    return events


def explain(plan: AnyPlan) -> str:
    """A plan in words, for a terminal."""
    return KINDS[plan.kind].explain(plan)


def draw(plan: AnyPlan, title: str, *, style: bool = True) -> str:
    """A plan's automaton as an SVG document under `title`; without `style` for a page that has
    `cep_core.drawing.STYLE` already. Raises NotSupportedError for kinds that have no picture."""
    make = KINDS[plan.kind].draw
    if make is None:
        raise NotSupportedError(f"patterns of kind {plan.kind} are not drawn")
    return svg(make(plan, title), style=style)


def evaluate(
    query: str | Path | Mapping[str, Any],
    events: pa.Table,
    *,
    event_id: str = "event_id",
    event_time: str = "event_time",
    event_type: str = "event_type",
    sequence: str | None = None,
) -> pa.Table:
    """Run a query (a pattern file's path, or a mapping of the same shape) over a table in this process.

    `events`: `event_time` a timestamp, `event_type` a string, attributes as the query names them. Returns the columns
    of the kind's results (docs/architecture.md); rows in no order. Raises PatternErrors for the query's mistakes,
    BadEventsError for the table's.
    """
    plan = compile_query(query, schema_of(events, event_id, event_time, event_type, sequence))
    return run_plan(plan, events)
