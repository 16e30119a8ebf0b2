"""`derive`: columns of a contract's or a pattern's own, each computed of the columns of an event, once a row.

    derive: {local_hour: "hour(at)", net: "price * size - fee"}

They are columns of the schema that the pattern is compiled against (`EventSchema.derived`), usable wherever a column
is; those of a contract come first, and only those that the plan reads stay. A source is read without them: they are
computed where plans run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import (
    BadConditionError,
    BadValueError,
    NotSupportedError,
    PatternErrors,
    TypeMismatchError,
    UnknownAttributeError,
    did_you_mean,
)
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.lookup import Report, look_up
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.normalise import canonical
from trendlake.cep_core.events.schema import Computed, Derived, EventSchema, Lookup
from trendlake.cep_core.events.tables import Tables
from trendlake.cep_core.events.union import columns_read, united
from trendlake.cep_core.expressions.columnar import evaluate, typed
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, Pattern
from trendlake.cep_core.patterns.resolver import Checking
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.yaml.source import Path_

TYPES = {
    "int": "bigint",
    "double": "double",
    "string": "string",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "date": "date",
}
"""The type of a column by the family of its expression."""


def with_derived(schema: EventSchema, pattern: Pattern) -> EventSchema:
    """The schema with the columns that the pattern derives. Raises PatternErrors with every mistake in them."""
    if not pattern.derive:
        return schema
    checking = _Checking(pattern, schema)
    derived = tuple(one for name, text in pattern.derive.items() if (one := checking.read(name, text)) is not None)
    if pattern.kind == "xml_join":
        error = NotSupportedError("kind xml_join reads documents, which have no columns to derive from")
        checking.report(error, ("derive",))
    if checking.errors:
        raise PatternErrors(checking.errors)
    return schema.extended(derived)


def derive(events: pa.Table, schema: EventSchema, reference: Mapping[str, pa.Table] | None = None) -> pa.Table:
    """The events with the columns of `schema.derived`. `reference`: the tables of lookups by name. Raises
    BadEventsError: a column or table is missing, or a number is beyond 64 bits; LookupRepeatedError."""
    if not schema.derived:
        return events
    names = [name for one in schema.derived for name in one.names]
    columns_read(events, schema).check(schema, schema.sources(names), ())
    for one in schema.derived:
        if isinstance(one, Lookup):
            events, _, _ = look_up(events, one, reference or {})
        else:
            events = _with(one, events, schema)
    return events


def reports(events: pa.Table, schema: EventSchema, reference: Mapping[str, pa.Table]) -> Iterator[Report]:
    """The counts of each lookup over the events, with every key that has no row. Raises as `derive`."""
    last = max((at for at, one in enumerate(schema.derived) if isinstance(one, Lookup)), default=-1)
    for one in schema.derived[: last + 1]:
        if isinstance(one, Lookup):
            events, rows, matching = look_up(events, one, reference)
            yield rows.report(columns_read(events, schema), matching, most=None)
        else:
            events = _with(one, events, schema)


def looked_up_otherwise(
    events: pa.Table, schema: EventSchema, then: Mapping[str, pa.Table], now: Mapping[str, pa.Table]
) -> Bools:
    """Whether an event gets other columns by lookups in the reference tables `now` than in those of `then`. Raises as
    `derive`."""
    names = [name for one in schema.lookups for name in one.names]
    last = max(at for at, one in enumerate(schema.derived) if isinstance(one, Lookup))
    before = schema.deriving(schema.derived[: last + 1])
    both = [columns_read(derive(events, before, tables), before) for tables in (then, now)]
    different = np.zeros(events.num_rows, np.bool_)
    for name in names:
        values = pa.concat_arrays([_plain_values(columns.raw(name)) for columns in both])
        codes = group_codes([canonical(values)], len(values))
        different |= codes[: events.num_rows] != codes[events.num_rows :]
    return different


def _plain_values(values: pa.Array) -> pa.Array:
    """Texts without a dictionary, as two of them are compared."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def read_by_lookups(schema: EventSchema) -> tuple[str, ...]:
    """The columns of the events' table that lookups are computed of."""
    return schema.sources([name for one in schema.lookups for name in one.names])


def _with(one: Derived, events: pa.Table, schema: EventSchema) -> pa.Table:
    """The events with a derived column: it has those of a contract, which a pattern's are computed of."""
    array = typed(_values(one, columns_read(events, schema)), one.type_name)
    at = events.schema.get_field_index(one.name)
    field = pa.field(one.name, array.type)
    return events.append_column(field, array) if at < 0 else events.set_column(at, field, array)


def one_table(events: pa.Table | Mapping[str, pa.Table], schema: EventSchema, names: Iterable[str]) -> pa.Table:
    """The events with the columns `names` and those that contracts derive; of several tables, by name, their union.
    Raises BadEventsError as `derive` does."""
    if not isinstance(events, Mapping):
        return events
    assert schema.tables is not None
    return union(events, schema.tables, tuple(dict.fromkeys(names)))


def union(events: Mapping[str, pa.Table], tables: Tables, names: Collection[str]) -> pa.Table:
    """As `united`, of tables without the columns that their contracts derive: they get them. Raises BadEventsError."""
    return united(derive_tables(events, tables), tables, names)


def derive_tables(events: Mapping[str, pa.Table], tables: Tables) -> dict[str, pa.Table]:
    """Several tables, each with the columns that its own contract derives. Raises BadEventsError as `derive` does."""
    schemas = {
        table.name: EventSchema({}, event_time=table.event_time, derived=table.derived)
        for table in tables.tables
        if table.derived
    }
    return {name: derive(table, schemas[name]) if name in schemas else table for name, table in events.items()}


def _values(one: Derived, columns: Columns) -> pa.Array:
    return evaluate(one.expression, lambda read: columns.column(read.name), columns.length)


def only_read(plan: AnyPlan, pattern: Pattern) -> AnyPlan:
    """The plan without the columns of a contract or a reference table that nothing in it reads: they are no part of
    what it is."""
    schema = plan.schema
    if not schema.derived:
        return plan
    data: Any = plan
    stored: AnyPlan = replace(data, schema=schema.deriving(()))
    read: set[str] = {*pattern.derive, *stored.columns}
    needed: list[Computed] = []
    for one in reversed(schema.derived):
        if (part := one.only(read)) is not None:
            needed.append(part)
            read.update(part.reads)
    whole: AnyPlan = replace(data, schema=schema.deriving(tuple(reversed(needed))))
    return whole


def derived_column(name: str, node: s.Condition, families: Mapping[str, str]) -> Derived:
    """The column of an expression over those of `families` (column -> type family), by their bare names. Raises
    ExpressionError at the part that is wrong."""

    def resolve(attribute: s.Attribute) -> str:
        if attribute.variable:
            message = "a derived column is computed before any variable binds"
            raise ExpressionError(BadConditionError(message, hint=f"write {attribute.name}"), attribute.span)
        if attribute.name not in families:
            hint = did_you_mean(attribute.name, families)
            cause = UnknownAttributeError(f"the source has no column '{attribute.name}'", hint=hint)
            raise ExpressionError(cause, attribute.span)
        return families[attribute.name]

    if isinstance(node, s.Equivalence):
        raise ExpressionError(BadConditionError("an equivalence is no value"), node.span)
    if s.parameters(node):
        error = BadConditionError("a derived column is the same for all rows of for_each")
        raise ExpressionError(error, s.parameters(node)[0].span)
    family = infer(node, resolve)
    if family not in TYPES or not s.attributes(node):
        hint = "such as seconds(b - a)" if family == "duration" else None
        what = "reads no column" if family in TYPES else f"is a {family}"
        raise ExpressionError(TypeMismatchError(f"a derived column {what}", hint=hint), node.span)
    return Derived(name, TYPES[family], node)


class _Checking(Checking):
    """Reads expressions over the columns of an event."""

    def __init__(self, pattern: Pattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        taken = *schema.families, *(schema.tables.names if schema.tables else ()), *PROVENANCE_COLUMNS
        self.names = TakenNames(taken, "a column of the source, or of every result")

    def read(self, name: str, text: str) -> Derived | None:
        """A column; None where it has a mistake, which is reported."""
        path: Path_ = ("derive", name)
        if taken := self.names.take(name, "a derived column already"):
            place = self.pattern.document.place(path, key=True)
            self.errors.append(BadValueError(f"'{name}' is {taken}", place=place))
        node = self.condition(text, path)
        if node is None:
            return None
        if self.schema.tables is not None and not isinstance(node, s.Equivalence):
            for read in s.attributes(node):
                if not read.variable and read.name not in self.families:
                    self.report(self.schema.unknown(read.name), path, read.span)
                    return None
        try:
            derived = derived_column(name, node, self.families)
        except ExpressionError as error:
            self.report(error.cause, path, (error.offset, error.offset + error.width))
            return None
        self.advise(derived.expression, path)
        return derived

    def resolve(self, attribute: s.Attribute) -> str:
        """The family of a column, by its bare name, for the clock of a zone and for advice. Raises ExpressionError."""
        return self.column(attribute.name, attribute.span)
