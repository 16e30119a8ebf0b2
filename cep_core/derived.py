"""`derive`: columns of a pattern's own, each computed of the columns of an event, once a row.

    derive: {local_hour: "hour(at)", net: "price * size - fee"}

They are columns of the schema that the pattern is compiled against (`EventSchema.derived`), usable wherever a column
is. A source is read without them: they are computed where plans run.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import Derived, EventSchema
from trendlake.cep_core.expressions.columnar import evaluate, typed
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, Pattern
from trendlake.cep_core.patterns.resolver import Checking
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


def derive(events: pa.Table, schema: EventSchema) -> pa.Table:
    """The events with the columns of `schema.derived`. Raises BadEventsError: a column is missing, or a number is
    beyond 64 bits."""
    if not schema.derived:
        return events
    columns = Columns(events)
    columns.check(schema, schema.sources([one.name for one in schema.derived]), ())
    for one in schema.derived:
        values = evaluate(one.expression, lambda read: columns.column(read.name), events.num_rows)
        array = typed(values, one.type_name)
        at = events.schema.get_field_index(one.name)
        field = pa.field(one.name, array.type)
        events = events.append_column(field, array) if at < 0 else events.set_column(at, field, array)
    return events


class _Checking(Checking):
    """Reads expressions over the columns of an event."""

    def __init__(self, pattern: Pattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.names = TakenNames((*schema.families, *PROVENANCE_COLUMNS), "a column of the source, or of every result")

    def read(self, name: str, text: str) -> Derived | None:
        """A column; None where it has a mistake, which is reported."""
        path: Path_ = ("derive", name)
        if taken := self.names.take(name, "a derived column already"):
            place = self.pattern.document.place(path, key=True)
            self.errors.append(BadValueError(f"'{name}' is {taken}", place=place))
        node = self.condition(text, path)
        if node is None:
            return None
        if isinstance(node, s.Equivalence):
            self.report(BadConditionError("an equivalence is no value"), path, node.span)
            return None
        if s.parameters(node):
            error = BadConditionError("a derived column is the same for all rows of for_each")
            self.report(error, path, s.parameters(node)[0].span)
            return None
        family = self.typed(node, path)
        if family is None:
            return None
        if family not in TYPES or not s.attributes(node):
            hint = "such as seconds(b - a)" if family == "duration" else None
            what = "reads no column" if family in TYPES else f"is a {family}"
            self.report(TypeMismatchError(f"a derived column {what}", hint=hint), path, node.span)
            return None
        return Derived(name, TYPES[family], node)

    def resolve(self, attribute: s.Attribute) -> str:
        """The family of a column of the source, by its bare name. Raises ExpressionError."""
        name = attribute.name
        if attribute.variable:
            message = "a derived column is computed before any variable binds"
            raise ExpressionError(BadConditionError(message, hint=f"write {name}"), attribute.span)
        if name not in self.families:
            hint = did_you_mean(name, self.families)
            cause = UnknownAttributeError(f"the source has no column '{name}'", hint=hint)
            raise ExpressionError(cause, attribute.span)
        return self.column(name, attribute.span)


def groups_of(schemas: Sequence[EventSchema]) -> list[list[int]]:
    """The numbers of schemas with the same derived columns, together."""
    groups: dict[tuple[Derived, ...], list[int]] = {}
    for number, schema in enumerate(schemas):
        groups.setdefault(schema.derived, []).append(number)
    return list(groups.values())
