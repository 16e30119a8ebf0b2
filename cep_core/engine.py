"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pyarrow as pa

from trendlake.cep_core.derived import only_read, with_derived
from trendlake.cep_core.drawing import svg
from trendlake.cep_core.errors import AssumptionWarning, NotSupportedError, PatternErrors, PatternWarning
from trendlake.cep_core.events.local_times import in_zone, zoneless_columns, zoneless_in_words
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.expressions.advice import advice_on
from trendlake.cep_core.having import with_having
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.load import Query, read_pattern
from trendlake.cep_core.patterns.expectations import type_mistakes
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.patterns.parameters import Parameters
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.family import FamilyPlan, explain_family, family_of
from trendlake.cep_core.sharing.run_plans import run_plan


def compile_query(query: Query, schema: EventSchema) -> AnyPlan:
    """Load and compile in one: a pattern file's path, YAML text (of several lines), a mapping of the same shape, or a
    pattern that is loaded. Raises PatternErrors with the mistakes of the file's shape and of what it says."""
    return compile_with(query, lambda kind: schema)


def compile_with(query: Query, schema_for: Callable[[str], EventSchema], rows: Parameters | None = None) -> AnyPlan:
    """The plan of a query against the schema for its kind; of a family of these `rows`, where they are given. Raises
    PatternErrors."""
    pattern, errors = (query, []) if isinstance(query, Pattern) and rows is None else read_pattern(query, rows)
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


def _warn_once(text: str, stacklevel: int) -> None:
    """An AssumptionWarning at the caller of `evaluate`, once in a process; Python's own "once" starts again wherever a
    program changes a filter. It is given each time where the filters say "always"."""
    actions = (
        action
        for action, message, category, _, _ in warnings.filters
        if issubclass(AssumptionWarning, category) and (message is None or message.match(text))
    )
    if text not in _GIVEN or next(actions, "default") == "always":
        _GIVEN.add(text)
        warnings.warn(text, AssumptionWarning, stacklevel=stacklevel + 1)


def evaluate_plan(
    plan: AnyPlan, events: pa.Table, time_zone: str | None = None, watermark: int | None = None, stacklevel: int = 3
) -> pa.Table:
    """`run_plan` with the warnings of `evaluate`, at the caller `stacklevel` calls above."""
    for one in plan.advice:
        if not one.columns and not one.some:
            warnings.warn(str(one), PatternWarning, stacklevel=stacklevel)
    orders = [one for one in plan.advice if one.columns]
    for text in advice_on(events, orders):
        _warn_once(text, stacklevel)
    zoneless = zoneless_columns(events, plan.columns)
    if zoneless and time_zone is None:
        _warn_once(zoneless_in_words(zoneless), stacklevel)
    return run_plan(plan, events if time_zone is None else in_zone(events, zoneless, time_zone), None, watermark)
