"""The engine's knowledge of a source: its columns, their types, and which play the event's roles."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError, TrendlakeError, UnknownAttributeError, did_you_mean
from trendlake.cep_core.events.normalise import FLOAT64_DIGITS
from trendlake.cep_core.events.tables import EVENT_ID, ID_ORDER, Tables
from trendlake.cep_core.events.type_names import family as family
from trendlake.cep_core.fingerprint import ADDED
from trendlake.cep_core.language import syntax as s

COUNT_TYPE = pa.decimal128(38, 0)
TIME_TYPE = pa.timestamp("us", tz="UTC")
_DECIMAL = re.compile(r"\s*(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*")


@dataclass(frozen=True)
class Derived:
    """A column that is computed of others: its type's name as in a schema, and an expression over bare names."""

    name: str
    type_name: str
    expression: s.Expr

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it is computed of."""
        return tuple(read.name for read in s.attributes(self.expression))

    def only(self, read: Container[str]) -> Derived | None:
        """Itself; None where it is not among the names that are read."""
        return self if self.name in read else None


@dataclass(frozen=True)
class Lookup:
    """Columns that events have of a reference table: those of the row with their key.

    `key`: (column of the events, column of the table) of each part. `columns`: (attribute, column of the table, its
    type's name). `valid_from`, `valid_to`: columns with [since, until) of a row, `as_of`: the events' column with the
    time at which it is to hold; all None where a row holds always. `zone`: in which dates begin, where there are some
    and it is not UTC. `of`: the event types that have the columns, by the column `event_type`; None for all. `name`: in
    the pattern, for messages.
    """

    table: str
    key: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str, str], ...]
    valid_from: str | None = None
    valid_to: str | None = None
    as_of: str | None = None
    zone: str | None = None
    of: frozenset[str] | None = None
    event_type: str | None = None
    name: str = field(default="", compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(name for name, _, _ in self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the events by which a row is found."""
        names = (*(name for name, _ in self.key), self.as_of, self.event_type)
        return tuple(name for name in names if name is not None)

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of the table that are read, each once."""
        of_key, values = (column for _, column in self.key), (column for _, column, _ in self.columns)
        names = (*of_key, self.valid_from, self.valid_to, *values)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def only(self, read: Container[str]) -> Lookup | None:
        """The lookup of the attributes that are read; None where none is."""
        columns = tuple(one for one in self.columns if one[0] in read)
        return replace(self, columns=columns) if columns else None


Computed: TypeAlias = Derived | Lookup
"""Columns that events do not have in their table."""


@dataclass(frozen=True)
class EventSchema:
    """`columns` maps names to Spark or ODCS type names; `types` lists the event types, None where they are not known.

    `event_id` and `sequence` order events of equal time where a total order is needed. `document` names the column of
    XML documents, which kind xml_join reads; such a source has no `event_type` (''). `begins`: the column, less so many
    microseconds, with the time at which an event starts, where events have intervals by nature. `derived`: those of
    `columns` that the events' table does not have, in the order in which they are computed: the contract's, lookups,
    the pattern's (see `cep_core.derived`, `cep_core.lookups`). `tables`: the tables whose union the events are, in a
    pattern with `sources`; None: one table.
    """

    columns: tuple[tuple[str, str], ...]
    event_id: str = "event_id"
    event_time: str = "event_time"
    event_type: str = "event_type"
    sequence: str | None = None
    types: tuple[str, ...] | None = None
    document: str = field(default="document", metadata=ADDED)
    begins: tuple[str, int] | None = field(default=None, metadata=ADDED)
    derived: tuple[Computed, ...] = field(default=(), metadata=ADDED)
    tables: Tables | None = field(default=None, metadata=ADDED)

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
        derived: tuple[Computed, ...] = (),
        tables: Tables | None = None,
    ) -> None:
        roles = (event_id, event_time, event_type, sequence, types, document, begins)
        values = (tuple(columns.items()), *roles, derived, tables)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    @property
    def families(self) -> dict[str, str]:
        """Column name -> type family."""
        return {name: family(kind) for name, kind in self.columns}

    def extended(self, derived: tuple[Derived, ...]) -> EventSchema:
        """The schema with further columns, which are computed."""
        columns = dict(self.columns) | {one.name: one.type_name for one in derived}
        return self._like(columns, (*self.derived, *derived), self.tables)

    def looking_up(self, lookups: tuple[Lookup, ...], columns: Mapping[str, str]) -> EventSchema:
        """The schema with the further `columns` (name -> type) of lookups."""
        return self._like(dict(self.columns) | dict(columns), (*self.derived, *lookups), self.tables)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Those of the columns that reference tables have."""
        return tuple(one for one in self.derived if isinstance(one, Lookup))

    @property
    def reads_several(self) -> bool:
        """Whether it is of several tables, or of one that is named in `sources`."""
        return self.tables is not None or bool(self.lookups)

    def looked_up_of(self, name: str, types: Iterable[str]) -> UnknownAttributeError | None:
        """The error of a lookup's column that is read of events of `types`, where the lookup is of others (`of`)."""
        for one in self.lookups:
            if one.of is not None and name in one.names and (others := sorted({*types} - one.of)):
                message = f"lookup {one.name} gives no '{name}' to events of type {', '.join(others)}"
                return UnknownAttributeError(message, hint=f"its `of` lists {', '.join(sorted(one.of))}")
        return None

    def deriving(self, derived: tuple[Computed, ...]) -> EventSchema:
        """The schema with these columns alone computed, of those that are; the others are as a table's."""
        return self._like(dict(self.columns), derived, self.tables)

    def wider(self, columns: Mapping[str, str]) -> EventSchema:
        """The schema with further columns, which the engine adds to the events."""
        return self._like(dict(self.columns) | dict(columns), self.derived, self.tables)

    def of_tables(self, tables: Tables | None) -> EventSchema:
        """The schema with another description of the tables."""
        return self._like(dict(self.columns), self.derived, tables)

    def _like(self, columns: Mapping[str, str], derived: tuple[Computed, ...], tables: Tables | None) -> EventSchema:
        roles = self.event_id, self.event_time, self.event_type, self.sequence, self.types, self.document, self.begins
        return EventSchema(columns, *roles, derived, tables)

    @property
    def tables_in_hash(self) -> tuple[Tables, ...]:
        """A part of the hash of a plan, which has it only with `sources`."""
        return () if self.tables is None else (self.tables,)

    @property
    def id_order(self) -> str:
        """The column whose order is that of ids."""
        return self.event_id if self.tables is None else ID_ORDER

    def reads_ids(self, columns: Iterable[str]) -> bool:
        """Whether ids are among the columns to read."""
        if self.tables is None:
            return self.event_id in columns
        return any(name.startswith(f"{EVENT_ID}@@") for name in columns)

    def unknown(self, name: str, what: str = "attribute") -> TrendlakeError:
        """The error of a name that stands without a variable, and that not all events have."""
        if self.tables is not None:
            try:
                self.tables.column([one.name for one in self.tables.types], name)
            except TrendlakeError as error:
                return error
        return UnknownAttributeError(f"the source has no {what} '{name}'", hint=did_you_mean(name, self.families))

    def stored(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the columns that are not computed, in their order, each once."""
        computed = {name for one in self.derived for name in one.names}
        own = tuple(dict.fromkeys(name for name in names if name not in computed))
        return own if self.tables is None else self.tables.stored(own)

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns of the source among these, in their order, each once; and those that all derived columns are
        computed of, for all of them are computed."""
        computed = (name for one in self.derived for name in one.reads)
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
    return EventSchema(columns_of(events), event_id, event_time, event_type, sequence, document=document)


def columns_of(table: pa.Table) -> dict[str, str]:
    """Name -> type name of each column of an Arrow table."""
    return {field.name: arrow_name(field.type) for field in table.schema}


def check_events(table: pa.Table, schema: EventSchema, columns: Sequence[str], roles: Sequence[str]) -> None:
    """Raises BadEventsError when a table of events lacks one of `columns`, its time is no timestamp, or a column of one
    of the `roles` has a NULL. Rows of a reference table, where the schema names no time, need none."""
    for name in columns:
        if name not in table.column_names:
            raise BadEventsError(f"the events have no column '{name}'", hint=did_you_mean(name, table.column_names))
    if not schema.event_time:
        return
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


def arrow_name(kind: pa.DataType) -> str:
    """The type name of values of an Arrow type."""
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
    digits = digits_of(type_name)
    if digits is not None and digits[0] > FLOAT64_DIGITS:
        return pa.decimal128(*digits)
    return arrow_type(type_name)


def digits_of(type_name: str) -> tuple[int, int] | None:
    """The precision and scale of a decimal type; None of another."""
    digits = _DECIMAL.fullmatch(type_name.lower())
    return None if digits is None else (int(digits[1]), int(digits[2] or 0))


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
