"""Events of several tables as one table: the rows of each type, and the names of their columns.

The engine reads one table, the union of the rows of all types. Its columns:

    event_time, event_type, event_source   of every event; `event_source` is the name of its table
    amount                                 an attribute of the events of all types, read without a variable
    amount@Payment                         an attribute as the events of one type have it, read as P.amount
    event_id@@orders, order@@orders        the id and the sequence of the events of one table, NULL in others

`cep_core.events.union` makes it. `event_id` (`orders:17`) and the total order are computed of the last two where they
are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trendlake.cep_core.errors import TypeMismatchError, UnknownAttributeError, did_you_mean
from trendlake.cep_core.events.normalise import FLOAT64_DIGITS
from trendlake.cep_core.events.type_names import family
from trendlake.cep_core.fingerprint import ADDED
from trendlake.cep_core.language import syntax as s

EVENT_ID, EVENT_TIME, EVENT_TYPE, EVENT_SOURCE = "event_id", "event_time", "event_type", "event_source"
ROLES = (EVENT_ID, EVENT_TIME, EVENT_TYPE, EVENT_SOURCE)
"""Columns that every event of several tables has."""
ORDER = "order@@"
"""The place of an event among those of its time: by table and `sequence`, or as `ties: sequence` says. Equal for
events that only their ids tell apart."""
ID_ORDER = "ids@@"
"""The place of an event in the order of tables, by name, and own ids."""
UNPLACED = "unplaced@@"
"""Whether an event of a table with a sequence has none: it may have any place of its time."""
_DECIMAL = re.compile(r"\s*(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*")
_WIDEST = 38


def id_column(table: str) -> str:
    """The column with the own ids of a table's events."""
    return f"{EVENT_ID}@@{table}"


def order_column(table: str) -> str:
    """The column with the sequence of a table's events."""
    return f"{ORDER}{table}"


def plain_name(name: str) -> str:
    """The name by which a pattern reads a column: amount@Payment -> amount."""
    return name.split("@", 1)[0]


@dataclass(frozen=True)
class EventTable:
    """One table and the columns that play its events' roles. `event_type`: '' where all its rows are of one type.
    `derived`: columns that its contract computes, of those that are read."""

    name: str
    event_id: str
    event_time: str
    event_type: str
    sequence: str | None = None
    derived: tuple[Any, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True)
class TypeRows:
    """The events of the type `name`: the rows of `table` whose event type is `value`; None: all its rows."""

    name: str
    table: str
    value: str | None


@dataclass(frozen=True)
class Origin:
    """The column `own` of the table that the events of `type` are of; `type_name`: its type there."""

    type: str
    own: str
    type_name: str


@dataclass(frozen=True)
class TableColumn:
    """A column of the union: of the events of each origin's type its own column, NULL of all others."""

    name: str
    type_name: str
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Tables:
    """The tables of a pattern with `sources`, by name, and its types, by name. `columns`: those of the union. `ties`:
    the tables in the order that decides between events of one time; () for that of their names. `by_sequence`: their
    common sequence decides first. `attributes`: every attribute by the type that has it, for messages; with own column
    '' one that is declared absent."""

    tables: tuple[EventTable, ...]
    types: tuple[TypeRows, ...]
    columns: tuple[TableColumn, ...] = ()
    ties: tuple[str, ...] = field(default=(), metadata=ADDED)
    by_sequence: bool = field(default=False, metadata=ADDED)
    attributes: tuple[tuple[str, Origin], ...] = field(default=(), compare=False)

    @property
    def order(self) -> tuple[str, ...]:
        """The tables in the order of their events at one time."""
        return self.ties or tuple(table.name for table in self.tables)

    @property
    def with_ids(self) -> bool:
        """Whether the events of all tables have ids that can be written."""
        return all(table.event_id for table in self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """Every attribute that the events of some type have."""
        return tuple(dict.fromkeys(name for name, _ in self.attributes))

    def stored(self, names: Iterable[str]) -> tuple[str, ...]:
        """Columns of the union for those that the engine reads: event_id -> event_source, event_id@@orders, ..."""
        result: list[str] = []
        for name in names:
            if name in (EVENT_ID, ID_ORDER):
                result += [EVENT_SOURCE, *(id_column(one.name) for one in self.tables)]
            elif name == ORDER:
                result += [EVENT_SOURCE, *(order_column(one.name) for one in self.tables if one.sequence)]
            else:
                result.append(name)
        return tuple(dict.fromkeys(result))

    def column(self, types: Collection[str], name: str) -> TableColumn:
        """The column that the events of these types have under a name. Raises UnknownAttributeError where some have
        none, TypeMismatchError where its types do not go together."""
        known = [one.name for one in self.types]
        wanted = [one for one in known if one in types]
        origins = {one.type: one for attribute, one in self.attributes if attribute == name}
        missing = [one for one in self.types if one.name in wanted and one.name not in origins]
        if missing:
            raise self._missing(name, missing)
        present = tuple(origins[one] for one in wanted if origins[one].own)
        kind = common_type([one.type_name for one in present])
        if kind is None:
            raise self.mismatch(name, present)
        if not present:  # NULL, of the type that others have
            kind = common_type([one.type_name for one in origins.values()]) or "null"
        return TableColumn(name if wanted == known else f"{name}@{'+'.join(wanted)}", kind, present)

    def _missing(self, name: str, missing: Sequence[TypeRows]) -> UnknownAttributeError:
        first = missing[0]
        names = [f"{one.table} (type {one.name})" for one in missing]
        message = f"'{name}' is not in {' and '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)}"
        own = [one.own for attribute, one in self.attributes if one.type == first.name and one.own]
        elsewhere = any(attribute == name for attribute, _ in self.attributes)
        near = did_you_mean(name, own) or ""
        if not elsewhere and (alike := did_you_mean(name, self.names)):
            return UnknownAttributeError(message, hint=alike)
        word = near.split("'")[1] if near.startswith("did you mean") else f"its name in {first.table}"
        return UnknownAttributeError(message, hint=f"columns: {{{name}: {word}}}, or {name}: null")

    def mismatch(self, name: str, origins: Sequence[Origin], why: str = "") -> TypeMismatchError:
        """The error of an attribute whose types do not go together."""
        table = {one.name: one.table for one in self.types}
        first = origins[0]
        other = next(one for one in origins[1:] if common_type([first.type_name, one.type_name]) is None or why)
        exact = family(first.type_name) == family(other.type_name)
        words = [
            f"{_a(one.type_name if exact else family(one.type_name))} in {table[one.type]}" for one in (first, other)
        ]
        return TypeMismatchError(f"'{name}' is {' and '.join(words)}{why}", hint="map one to another name")

    def narrowed(self, names: Collection[str], *, ordered: bool) -> Tables:
        """Of a plan that reads these columns; `ordered`: and the total order."""
        columns = tuple(column for column in self.columns if column.name in names)
        ties, by_sequence = (self.ties, self.by_sequence) if ordered else ((), False)
        tables = tuple(_without_unread(table, self.types, columns) for table in self.tables)
        return Tables(tables, self.types, columns, ties, by_sequence)

    def with_columns(self, columns: Iterable[TableColumn]) -> Tables:
        """The same tables with further columns of the union."""
        named = {one.name: one for one in (*self.columns, *columns)}
        return replace(self, columns=tuple(named.values()))


def _without_unread(table: EventTable, types: Sequence[TypeRows], columns: Sequence[TableColumn]) -> EventTable:
    """A table without derived columns that nothing reads."""
    mine = {one.name for one in types if one.table == table.name}
    read = {origin.own for column in columns for origin in column.origins if origin.type in mine}
    read |= {table.event_id, table.event_time, table.event_type, table.sequence or ""}
    needed: list[Any] = []
    for one in reversed(table.derived):
        if one.name in read:
            needed.append(one)
            read.update(column.name for column in s.attributes(one.expression))
    return replace(table, derived=tuple(reversed(needed)))


def _a(words: str) -> str:
    return {"int": "an integer", "null": "NULL"}.get(words, f"a {words}")


def decimal_of(type_name: str) -> tuple[int, int] | None:
    """The digits and the scale of a decimal type; None for others."""
    digits = _DECIMAL.fullmatch(type_name.lower())
    return None if digits is None else (int(digits[1]), int(digits[2] or 0))


def common_type(names: Sequence[str]) -> str | None:
    """The type in which values of several types are one column: integers -> bigint, integers with doubles -> double,
    decimals -> the widest. None where there is none."""
    kinds = list(dict.fromkeys(name for name in names if family(name) != "null"))
    if len(kinds) <= 1:
        return kinds[0] if kinds else "null"
    families = {family(name) for name in kinds}
    if families == {"int"}:
        return "bigint"
    if families <= {"int", "double"}:
        decimals = [decimal_of(name) for name in kinds]
        known = [one for one in decimals if one is not None]
        if len(known) < len(decimals):
            return "double"
        scale = max(scale for _, scale in known)
        digits = scale + max(digits - scale for digits, scale in known)
        return f"decimal({digits},{scale})" if digits <= _WIDEST else None
    if len(families) > 1 or families == {"other"}:
        return None
    return {"string": "string", "timestamp": "timestamp"}.get(families.pop(), kinds[0])


def rounded_as_key(column: TableColumn) -> bool:
    """Whether values that differ in a table may be one in the column: a long decimal that is a double here."""
    if column.type_name != "double":
        return False
    digits = [decimal_of(one.type_name) for one in column.origins]
    return any(one is not None and one[0] > FLOAT64_DIGITS for one in digits)
