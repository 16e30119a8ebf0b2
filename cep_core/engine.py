"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cep_core.drawing import svg
from cep_core.errors import PatternErrors
from cep_core.events.schema import EventSchema, schema_of
from cep_core.kinds import KINDS
from cep_core.load import read_pattern
from cep_core.patterns.expectations import type_mistakes
from cep_core.patterns.model import Pattern
from cep_core.plan import AnyPlan


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
    `cep_core.drawing.STYLE` already."""
    return svg(KINDS[plan.kind].draw(plan, title), style=style)


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
