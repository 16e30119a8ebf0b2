"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cep_core.drawing import svg
from cep_core.errors import NotSupportedError, PatternErrors
from cep_core.events.schema import EventSchema, schema_of
from cep_core.kinds import KINDS
from cep_core.load import read_pattern
from cep_core.patterns.expectations import type_mistakes
from cep_core.patterns.model import Pattern
from cep_core.plan import AnyPlan
from cep_core.sharing.family import FamilyPlan, explain_family, family_of
from cep_core.sharing.run_plans import run_plan


def compile_query(query: str | Path | Mapping[str, Any], schema: EventSchema) -> AnyPlan:
    """Load and compile in one. Raises PatternErrors with the mistakes of the file's shape and of what it says."""
    return _compiled(query, lambda kind: schema)


def _compiled(query: str | Path | Mapping[str, Any], schema_for: Callable[[str], EventSchema]) -> AnyPlan:
    """The plan of a query against the schema for its kind."""
    pattern, errors = read_pattern(query)
    if pattern is None:
        raise PatternErrors(errors)
    schema = schema_for(pattern.kind)
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
    if "event_type" in KINDS[pattern.kind].roles and not schema.event_type:
        message = f"kind {pattern.kind} reads events with a type, and the source holds XML documents"
        place = pattern.document.place(("source",))
        raise PatternErrors([NotSupportedError(message, place=place, hint="kind: xml_join reads documents")])
    plan = KINDS[pattern.kind].compile(pattern, schema)
    if pattern.parameters is not None:
        plan = family_of(plan, pattern, pattern.parameters)
    errors = type_mistakes(pattern.expect, pattern.measures, plan.result_schema, pattern.document)
    if errors:
        raise PatternErrors(errors)
    return plan


def explain(plan: AnyPlan) -> str:
    """A plan in words, for a terminal."""
    if isinstance(plan, FamilyPlan):
        return f"{explain_family(plan)}\n{KINDS[plan.kind].explain(plan.template)}"
    return KINDS[plan.kind].explain(plan)


def draw(plan: AnyPlan, title: str, *, style: bool = True) -> str:
    """A plan's automaton as an SVG document under `title`; without `style` for a page that has
    `cep_core.drawing.STYLE` already."""
    drawn = plan.template if isinstance(plan, FamilyPlan) else plan
    return svg(KINDS[plan.kind].draw(drawn, title), style=style)


def evaluate(
    query: str | Path | Mapping[str, Any],
    events: pa.Table,
    *,
    event_id: str = "event_id",
    event_time: str = "event_time",
    event_type: str = "event_type",
    sequence: str | None = None,
    document: str = "document",
) -> pa.Table:
    """Run a query (a pattern file's path, or a mapping of the same shape) over a table in this process.

    `events`: `event_time` a timestamp, `event_type` a string, attributes as the query names them; for kind xml_join
    `document`, an XML document each, and no type. Returns the columns of the kind's results (docs/architecture.md);
    rows in no order. Raises PatternErrors for the query's mistakes, BadEventsError for the table's.
    """

    def schema(kind: str) -> EventSchema:
        roles = KINDS[kind].roles
        return schema_of(events, event_id, event_time, event_type, sequence, document, roles)

    plan = _compiled(query, schema)
    return run_plan(plan, events)
