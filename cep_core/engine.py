"""The engine's verbs, the same for patterns of every kind: compile, explain, run, evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from trendlake.cep_core.derived import only_read, with_derived
from trendlake.cep_core.drawing import svg
from trendlake.cep_core.errors import AssumptionWarning, BadValueError, NotSupportedError, PatternErrors, PatternWarning
from trendlake.cep_core.events.local_times import zoneless_in_words
from trendlake.cep_core.events.schema import EventSchema, Lookup
from trendlake.cep_core.events.tables import ORDER, Tables, plain_name
from trendlake.cep_core.expressions.advice import advice_on
from trendlake.cep_core.having import with_having
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.load import Query, read_pattern
from trendlake.cep_core.lookups import ReferenceColumns, in_words, refuse_other_types, warn_of_unread, with_lookups
from trendlake.cep_core.patterns.expectations import type_mistakes
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.patterns.parameters import Parameters
from trendlake.cep_core.patterns.united import asks_order, narrowed, united_schema
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.family import FamilyPlan, explain_family, family_of

Schemas: TypeAlias = EventSchema | Mapping[str, EventSchema]
"""The schema of a pattern's source, or of each of its tables, by name."""


def compile_query(query: Query, schema: Schemas, reference: ReferenceColumns | None = None) -> AnyPlan:
    """Load and compile in one: a pattern file's path, YAML text (of several lines), a mapping of the same shape, or a
    pattern that is loaded. `reference`: the columns of reference tables, as of `compile_plan`. Raises PatternErrors
    with the mistakes of the file's shape and of what it says."""
    return compile_with(query, lambda kind: schema, reference)


def compile_with(
    query: Query,
    schema_for: Callable[[str], Schemas],
    reference: ReferenceColumns | None = None,
    rows: Parameters | None = None,
) -> AnyPlan:
    """The plan of a query against the schema for its kind; of a family of these `rows`, where they are given. Raises
    PatternErrors."""
    pattern, errors = (query, []) if isinstance(query, Pattern) and rows is None else read_pattern(query, rows)
    if pattern is None:
        raise PatternErrors(errors)
    schema = schema_for(pattern.kind)
    try:
        plan = compile_plan(pattern, schema, reference)
    except PatternErrors as failure:
        raise PatternErrors([*errors, *failure.errors]) from None
    if errors:
        raise PatternErrors(errors)
    return plan


def compile_plan(pattern: Pattern, schema: Schemas, reference: ReferenceColumns | None = None) -> AnyPlan:
    """Check `pattern` against `schema` and compile it; one with `sources` against the schema of each table, by name.
    `reference`: the columns of the reference tables that lookups may read, by the tables' names; None where they are
    not known: such a plan can be explained, not run.

    Raises PatternErrors with all mistakes; conditions without effect become the plan's `warnings` and a PatternWarning.
    """
    schema = _one_schema(pattern, schema)
    if "event_type" in KINDS[pattern.kind].roles and not schema.event_type:
        message = f"kind {pattern.kind} reads events with a type, and the source holds XML documents"
        place = pattern.document.place(("source",))
        raise PatternErrors([NotSupportedError(message, place=place, hint="kind: xml_join reads documents")])
    columns = with_derived(with_lookups(schema, pattern, reference), pattern)
    plan = only_read(KINDS[pattern.kind].compile(pattern, columns), pattern)
    refuse_other_types(plan, pattern)
    plan = narrowed(warn_of_unread(plan, pattern), pattern)
    plan = with_having(plan, pattern)
    if pattern.parameters is not None:
        plan = family_of(plan, pattern, pattern.parameters)
    errors = type_mistakes(pattern.expect, pattern.measures, plan.result_schema, pattern.document)
    if errors:
        raise PatternErrors(errors)
    return plan


def _one_schema(pattern: Pattern, schema: Schemas) -> EventSchema:
    """The schema of a pattern's events, of several tables that of their union."""
    several = not isinstance(schema, EventSchema)
    if several != (pattern.sources is not None):
        reads = "one table" if several else "several tables"
        message = f"the pattern reads {reads}, and {'several are' if several else 'one is'} given"
        place = pattern.document.place(("source" if several else "sources",), key=True)
        raise PatternErrors([BadValueError(message, place=place, hint="`sources` names several tables, by type")])
    return schema if isinstance(schema, EventSchema) else united_schema(pattern, schema)


def explain(plan: AnyPlan) -> str:
    """A plan in words, for a terminal."""
    if isinstance(plan, FamilyPlan):
        text = f"{explain_family(plan)}\n{KINDS[plan.kind].explain(plan.template)}"
    else:
        text = KINDS[plan.kind].explain(plan)
    tables = plan.schema.tables
    if tables is not None:
        read = dict.fromkeys("sequence" if name.startswith(ORDER) else plain_name(name) for name in plan.columns)
        lines = (f"reads     {', '.join(read)}" if line.startswith("reads ") else line for line in text.split("\n"))
        text = _without_types("\n".join(lines), tables)
        text = "\n".join([text, *_sources(tables, asks_order(_template(plan)))])
    ids = plan.parts_of_order is not None and plan.schema.sequence is None
    ids = ids or (plan.parts_of_order is not None and tables is not None and not all(t.sequence for t in tables.tables))
    order = ["ids       decide which event of one time is next: `try` and `run` count such neighbours"] if ids else []
    columns = [
        f"looks up  {in_words(one)}"
        if isinstance(one, Lookup)
        else f"derives   {one.name}: {expression(one.expression)}"
        for one in plan.schema.derived
    ]
    conditions = [*columns, *(f"having    {expression(one)}" for one in plan.having)]
    return "\n".join([text, *order, *conditions, *(str(one) for one in plan.advice if not one.columns)])


def _sources(tables: Tables, ordered: bool) -> Iterator[str]:
    """The table and rows of each type; if events are `ordered`, the tables in their order at one time."""
    head = "sources  "
    for one in tables.types:
        table = next(table for table in tables.tables if table.name == one.table)
        rows = "" if one.value is None else f", {table.event_type} = '{one.value}'"
        origins = [(column, x) for column in tables.columns for x in column.origins if x.type == one.name]
        mapped = {plain_name(column.name): x.own for column, x in origins if plain_name(column.name) != x.own}
        names = f", {', '.join(f'{name} is {own}' for name, own in mapped.items())}" if mapped else ""
        yield f"{head} {one.name}: {one.table}{rows}{names}"
        head = "         "
    if not ordered:
        return
    if tables.by_sequence:
        yield "ties      at one time by sequence, then by table"
    elif len(tables.tables) > 1:
        yield f"ties      at one time {', then '.join(tables.order)}"


def _template(plan: AnyPlan) -> AnyPlan:
    return plan.template if isinstance(plan, FamilyPlan) else plan


def _without_types(text: str, tables: Tables) -> str:
    """A text with the names of columns as the pattern has them: amount@Payment -> amount."""
    for column in sorted(tables.columns, key=lambda one: -len(one.name)):
        text = text.replace(column.name, plain_name(column.name)) if "@" in column.name else text
    return text.replace(ORDER, "sequence")


def draw(plan: AnyPlan, title: str, *, style: bool = True) -> str:
    """A plan's automaton as an SVG document under `title`; without `style` for a page that has
    `cep_core.drawing.STYLE` already."""
    drawn = _template(plan)
    picture = svg(KINDS[plan.kind].draw(drawn, title), style=style)
    return picture if plan.schema.tables is None else _without_types(picture, plan.schema.tables)


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


def warn_of(plan: AnyPlan, events: pa.Table, zoneless: Sequence[str], stacklevel: int) -> None:
    """The warnings of `evaluate` about a plan and its events, of several tables their union, at the caller `stacklevel`
    calls above. `zoneless`: the columns whose times without a zone are read as UTC."""
    for one in plan.advice:
        if not one.columns and not one.some:
            warnings.warn(str(one), PatternWarning, stacklevel=stacklevel)
    for text in advice_on(events, [one for one in plan.advice if one.columns]):
        _warn_once(text, stacklevel)
    if zoneless:
        _warn_once(zoneless_in_words(tuple(dict.fromkeys(zoneless))), stacklevel)
