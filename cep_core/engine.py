"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.cep_core.derived import only_read, with_derived
from trendlake.cep_core.drawing import svg
from trendlake.cep_core.errors import AssumptionWarning, NotSupportedError, PatternErrors, PatternWarning
from trendlake.cep_core.events.local_times import in_zone, zoneless_columns, zoneless_in_words
from trendlake.cep_core.events.schema import EventSchema, schema_of
from trendlake.cep_core.expressions.advice import advice_on
from trendlake.cep_core.having import with_having
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.load import read_pattern
from trendlake.cep_core.patterns.expectations import type_mistakes
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.family import FamilyPlan, explain_family, family_of
from trendlake.cep_core.sharing.run_plans import run_plan


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
    plan = only_read(KINDS[pattern.kind].compile(pattern, with_derived(schema, pattern)), pattern)
    plan = with_having(plan, pattern)
    if pattern.parameters is not None:
        plan = family_of(plan, pattern, pattern.parameters)
    errors = type_mistakes(pattern.expect, pattern.measures, plan.result_schema, pattern.document)
    if errors:
        raise PatternErrors(errors)
    return plan


def explain(plan: AnyPlan) -> str:
    """A plan in words, for a terminal."""
    if isinstance(plan, FamilyPlan):
        text = f"{explain_family(plan)}\n{KINDS[plan.kind].explain(plan.template)}"
    else:
        text = KINDS[plan.kind].explain(plan)
    ids = plan.parts_of_order is not None and plan.schema.sequence is None
    order = ["ids       decide which event of one time is next: `try` and `run` count such neighbours"] if ids else []
    columns = [f"derives   {one.name}: {expression(one.expression)}" for one in plan.schema.derived]
    conditions = [*columns, *(f"having    {expression(one)}" for one in plan.having)]
    return "\n".join([text, *order, *conditions, *(str(one) for one in plan.advice if not one.columns)])


def draw(plan: AnyPlan, title: str, *, style: bool = True) -> str:
    """A plan's automaton as an SVG document under `title`; without `style` for a page that has
    `cep_core.drawing.STYLE` already."""
    drawn = plan.template if isinstance(plan, FamilyPlan) else plan
    return svg(KINDS[plan.kind].draw(drawn, title), style=style)


_GIVEN: set[str] = set()
"""The texts of the AssumptionWarnings that this process has given."""


def _warn_once(text: str) -> None:
    """An AssumptionWarning at the caller of `evaluate`, once in a process; Python's own "once" starts again wherever a
    program changes a filter. It is given each time where the filters say "always"."""
    actions = (
        action
        for action, message, category, _, _ in warnings.filters
        if issubclass(AssumptionWarning, category) and (message is None or message.match(text))
    )
    if text not in _GIVEN or next(actions, "default") == "always":
        _GIVEN.add(text)
        warnings.warn(text, AssumptionWarning, stacklevel=3)


def evaluate(
    query: str | Path | Mapping[str, Any],
    events: pa.Table,
    *,
    event_id: str = "event_id",
    event_time: str = "event_time",
    event_type: str = "event_type",
    sequence: str | None = None,
    document: str = "document",
    time_zone: str | None = None,
) -> pa.Table:
    """Run a query (a pattern file's path, or a mapping of the same shape) over a table in this process.

    `events`: `event_time` a timestamp, `event_type` a string, attributes as the query names them; for kind xml_join
    `document`, an XML document each, and no type. Returns the columns of the kind's results (docs/architecture.md);
    rows in no order.

    `time_zone`: the IANA name of the zone of timestamps without a zone, such as America/New_York; times with a zone
    are moments already. A local time that clocks skip is an error, and of the two moments of a time that occurs twice
    the earlier is meant. Without `time_zone` such timestamps are read as UTC, with an AssumptionWarning; `"UTC"` states
    it. An AssumptionWarning also names text columns that the query compares by their order and whose values look like
    numbers. A process gives each once; with the filter "always", each time. A PatternWarning names conditions that are
    never true, such as `x.price = NULL`.

    Raises PatternErrors for the query's mistakes, BadEventsError for the table's and for an unknown zone.
    """

    def schema(kind: str) -> EventSchema:
        roles = KINDS[kind].roles
        return schema_of(events, event_id, event_time, event_type, sequence, document, roles)

    plan = _compiled(query, schema)
    for one in plan.advice:
        if not one.columns and not one.some:
            warnings.warn(str(one), PatternWarning, stacklevel=2)
    orders = [one for one in plan.advice if one.columns]
    for text in advice_on(events, orders):
        _warn_once(text)
    zoneless = zoneless_columns(events, plan.columns)
    if zoneless and time_zone is None:
        _warn_once(zoneless_in_words(zoneless))
    return run_plan(plan, events if time_zone is None else in_zone(events, zoneless, time_zone))
