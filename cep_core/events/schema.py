"""The engine's knowledge of a source: its columns, their types, and which play the event's roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError, did_you_mean
from trendlake.cep_core.events.normalise import FLOAT64_DIGITS
from trendlake.cep_core.fingerprint import ADDED
from trendlake.cep_core.language import syntax as s

INTEGERS = frozenset({"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"})
DOUBLES = frozenset({"float", "double", "real", "number"})
STRINGS = frozenset({"string", "varchar", "char"})
TIMES = frozenset({"timestamp", "timestamp_ntz"})

COUNT_TYPE = pa.decimal128(38, 0)
TIME_TYPE = pa.timestamp("us", tz="UTC")
_DECIMAL = re.compile(r"\s*(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*")

FAMILIES = ("int", "double", "string", "boolean", "timestamp", "date", "null", "other")


def family(type_name: str) -> str:
    """A Spark or ODCS type name as one of `FAMILIES`."""
    name = type_name.lower().split("(")[0].strip()
    if name in INTEGERS:
        return "int"
    if name in DOUBLES or name in ("decimal", "numeric"):
        return "double"
    if name in STRINGS:
        return "string"
    if name in ("boolean", "bool"):
        return "boolean"
    if name in TIMES:
        return "timestamp"
    return name if name in ("date", "duration", "null") else "other"


@dataclass(frozen=True)
class Derived:
    """A column that is computed of others: its type's name as in a schema, and an expression over bare names."""

    name: str
    type_name: str
    expression: s.Expr


@dataclass(frozen=True)
class EventSchema:
    """`columns` maps names to Spark or ODCS type names; `types` lists the event types, None where they are not known.

    `event_id` and `sequence` order events of equal time where a total order is needed. `document` names the column of
    XML documents, which kind xml_join reads; such a source has no `event_type` (''). `begins`: the column, less so many
    microseconds, with the time at which an event starts, where events have intervals by nature. `derived`: those of
    `columns` that no table has (see `cep_core.derived`).
    """

    columns: tuple[tuple[str, str], ...]
    event_id: str = "event_id"
    event_time: str = "event_time"
    event_type: str = "event_type"
    sequence: str | None = None
    types: tuple[str, ...] | None = None
    document: str = field(default="document", metadata=ADDED)
    begins: tuple[str, int] | None = field(default=None, metadata=ADDED)
    derived: tuple[Derived, ...] = field(default=(), metadata=ADDED)

    def __init__(
        self,
        columns: Mapping[str, str],
        event_id: str = "event_id",
        event_time: str = "event_time",
        event_type: str = "event_type",
        sequence: str | None = None,
        types: tuple[str, ...] | None = None,
        document: str = "document",
        begins: tuple[str, int] | None = None,
        derived: tuple[Derived, ...] = (),
    ) -> None:
        values = (tuple(columns.items()), event_id, event_time, event_type, sequence, types, document, begins, derived)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    @property
    def families(self) -> dict[str, str]:
        """Column name -> type family."""
        return {name: family(kind) for name, kind in self.columns}

    def extended(self, derived: tuple[Derived, ...]) -> EventSchema:
        """The schema with further columns, which are computed."""
        columns = dict(self.columns) | {one.name: one.type_name for one in derived}
        roles = self.event_id, self.event_time, self.event_type, self.sequence, self.types, self.document, self.begins
        return EventSchema(columns, *roles, (*self.derived, *derived))

    def deriving(self, derived: tuple[Derived, ...]) -> EventSchema:
        """The schema with these columns alone computed, of those that are; the others are as a table's."""
        columns = dict(self.columns)
        roles = self.event_id, self.event_time, self.event_type, self.sequence, self.types, self.document, self.begins
        return EventSchema(columns, *roles, derived)

    def wider(self, columns: Mapping[str, str]) -> EventSchema:
        """The schema with further columns, which the engine adds to the events."""
        roles = self.event_id, self.event_time, self.event_type, self.sequence, self.types, self.document, self.begins
        return EventSchema(dict(self.columns) | dict(columns), *roles, self.derived)

    def stored(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the columns that are not computed, in their order, each once."""
        computed = {one.name for one in self.derived}
        return tuple(dict.fromkeys(name for name in names if name not in computed))

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns of the source among these, in their order, each once; and those that all derived columns are
        computed of, for all of them are computed."""
        computed = (read.name for one in self.derived for read in s.attributes(one.expression))
        return self.stored((*names, *computed))


def schema_of(
    events: pa.Table,
    event_id: str = "event_id",
    event_time: str = "event_time",
    event_type: str = "event_type",
    sequence: str | None = None,
    document: str = "document",
    roles: Sequence[str] = ("event_time", "event_type"),
) -> EventSchema:
    """The schema an Arrow table shows. Raises BadEventsError when a column of one of `roles` is missing."""
    names = {"event_id": event_id, "event_time": event_time, "event_type": event_type, "document": document}
    for role in roles:
        if (name := names[role]) not in events.column_names:
            raise BadEventsError(f"the events have no column '{name}' ({role})")
    columns = {field.name: _arrow_family(field.type) for field in events.schema}
    return EventSchema(columns, event_id, event_time, event_type, sequence, document=document)


def check_events(table: pa.Table, schema: EventSchema, columns: Sequence[str], roles: Sequence[str]) -> None:
    """Raises BadEventsError when a table of events lacks one of `columns`, its time is no timestamp, or a column of one
    of the `roles` has a NULL."""
    for name in columns:
        if name not in table.column_names:
            raise BadEventsError(f"the events have no column '{name}'", hint=did_you_mean(name, table.column_names))
    stamp = table.schema.field(schema.event_time).type
    if not pa.types.is_timestamp(stamp):
        raise BadEventsError(f"column '{schema.event_time}' is not a timestamp but {stamp}")
    words = [_ROLES[role] for role in roles]
    for role in roles:
        name = getattr(schema, role)
        if table.column(name).null_count:
            has = f"{', '.join(words[:-1])} and {words[-1]}"
            raise BadEventsError(f"column '{name}' has a NULL: an event has {has}")


_ROLES = {"event_id": "an id", "event_time": "a time", "event_type": "a type", "document": "a document"}


def _arrow_family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return "null"
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return "date" if pa.types.is_date(kind) else "binary"


def key_type(type_name: str) -> pa.DataType:
    """The Arrow type in which results carry a column that tells rows or events apart: `arrow_type`, but decimals that
    float64 does not tell apart stay what they are."""
    digits = _DECIMAL.fullmatch(type_name.lower())
    if digits is not None and int(digits[1]) > FLOAT64_DIGITS:
        return pa.decimal128(int(digits[1]), int(digits[2] or 0))
    return arrow_type(type_name)


def result_type(family: str) -> pa.DataType:
    """The Arrow type of a value that a pattern computes: a duration is a whole number of microseconds."""
    return pa.int64() if family == "duration" else arrow_type(family)


def arrow_type(type_name: str) -> pa.DataType:
    """The Arrow type of a column of a Spark or ODCS type name, as results carry it; a duration is a whole number of
    microseconds."""
    return {
        "int": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "timestamp": TIME_TYPE,
        "date": pa.date32(),
        "duration": pa.int64(),
    }.get(family(type_name), pa.string())
