"""The events of several tables as one table, and what is computed of its columns: ids as text, and the total order.

Rows of types that the pattern does not have are left out. Nothing is sorted: the engine sorts what it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError, did_you_mean
from trendlake.cep_core.events.array_types import MOST_EXACT, Bools, Int32s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, read_only, valid
from trendlake.cep_core.events.codes import FEW, ordered_codes
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.normalise import doubles, normalise
from trendlake.cep_core.events.schema import TIME_TYPE, EventSchema, family
from trendlake.cep_core.events.tables import (
    EVENT_ID,
    EVENT_SOURCE,
    EVENT_TIME,
    EVENT_TYPE,
    ID_ORDER,
    ORDER,
    UNPLACED,
    EventTable,
    TableColumn,
    Tables,
    TypeRows,
    decimal_of,
    id_column,
    order_column,
    plain_name,
)


def united(events: Mapping[str, pa.Table], tables: Tables, names: Collection[str]) -> pa.Table:
    """The union of the tables, which have the columns that their contracts derive (see `cep_core.derived`), with the
    columns `names` (`plan.columns`). Raises BadEventsError: a table or column is
    missing, an event has no time or type, or a value does not fit the type that the column has in all tables."""
    parts = []
    for table in tables.tables:
        if table.name not in events:
            hint = f"given: {', '.join(events) or 'none'}"
            raise BadEventsError(f"the pattern reads the table '{table.name}', which is not given", hint=hint)
        read = _Reader(table, tables, events[table.name])
        parts += [read.rows(one, names) for one in tables.types if one.table == table.name]
    return pa.table({name: _joined([part[name] for part in parts]) for name in parts[0]})


def _joined(parts: Sequence[pa.Array]) -> Any:
    """A column of its parts. One of NULLs has no type: of an id or a sequence only its own table knows it."""
    kinds = [one.type for one in parts if not pa.types.is_null(one.type)]
    if not kinds:
        return pa.nulls(sum(map(len, parts)))
    (kind, *_), filled = kinds, [not pa.types.is_null(one.type) for one in parts]
    if all(filled) or not _of_numbers(kind):
        return pa.chunked_array([pa.nulls(len(one), kind) if pa.types.is_null(one.type) else one for one in parts])
    ends = np.cumsum([0, *map(len, parts)])
    dtype = numbers(pa.nulls(0, kind)).dtype
    values, missing = np.zeros(ends[-1], dtype), np.ones(ends[-1], np.bool_)
    for one, start, there in zip(parts, ends[:-1], filled, strict=True):
        if there:
            own = numbers(one, 0)
            values[start : start + len(own)] = own
            missing[start : start + len(own)] = ~valid(one) if one.null_count else False
    joined = arrow(values, missing)
    return joined if joined.type == kind else joined.view(kind)


def _of_numbers(kind: pa.DataType) -> bool:
    """Whether numpy has the values of a type."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind))


class _Reader:
    """The rows of one table."""

    def __init__(self, table: EventTable, tables: Tables, events: pa.Table) -> None:
        self.table, self.tables, self.events = table, tables, events
        self.types = [one.name for one in tables.types]

    def rows(self, of: TypeRows, names: Collection[str]) -> dict[str, pa.Array]:
        """The columns `names` of the events of a type."""
        rows = self._rows(of)
        columns = {one.name: one for one in self.tables.columns}
        result: dict[str, pa.Array] = {}
        for name in names:
            result[name] = self._array(name, of, rows, columns.get(name))
        return result

    def _rows(self, of: TypeRows) -> Int64s | None:
        """The numbers of the rows of a type; None: all."""
        if of.value is None:
            return None
        kinds = self._column(self.table.event_type)
        if kinds.null_count:
            message = f"{self.table.name}: column '{self.table.event_type}' has a NULL: an event has a time and a type"
            raise BadEventsError(message)
        if not pa.types.is_string(kinds.type):
            kinds = kinds.cast(pa.string())
        return np.flatnonzero(numbers(pc.equal(kinds, of.value)))

    def _array(self, name: str, of: TypeRows, rows: Int64s | None, column: TableColumn | None) -> pa.Array:
        count = self.events.num_rows if rows is None else len(rows)
        if name == EVENT_TYPE:
            return _repeated(self.types, self.types.index(of.name), count)
        if name == EVENT_SOURCE:
            sources = [one.name for one in self.tables.tables]
            return _repeated(sources, sources.index(self.table.name), count)
        if name == EVENT_TIME:
            return self._times(rows)
        if name == id_column(self.table.name):
            return self._taken(self.table.event_id, rows)
        if name == order_column(self.table.name):
            return self._taken(str(self.table.sequence), rows)
        if column is None:  # an id or a sequence of another table
            return pa.nulls(count)
        own = next((one.own for one in column.origins if one.type == of.name), None)
        if own is None:
            return pa.nulls(count, _arrow_type(column.type_name))
        try:
            return _cast(self._taken(own, rows), column, f"{self.table.name}: column '{own}'")
        except pa.ArrowInvalid as error:
            raise BadEventsError(f"{self.table.name}: column '{own}': a value does not fit: {error}") from None

    def _times(self, rows: Int64s | None) -> pa.Array:
        name = self.table.event_time
        times = self._taken(name, rows)
        if not pa.types.is_timestamp(times.type):
            raise BadEventsError(f"{self.table.name}: column '{name}' is not a timestamp but {times.type}")
        if times.null_count:
            raise BadEventsError(f"{self.table.name}: column '{name}' has a NULL: an event has a time and a type")
        return normalise(times).cast(TIME_TYPE)

    def _taken(self, name: str, rows: Int64s | None) -> pa.Array:
        column = self._column(name)
        return column if rows is None else column.take(arrow(rows))

    def _column(self, name: str) -> pa.Array:
        if name not in self.events.column_names:
            hint = did_you_mean(name, self.events.column_names)
            raise BadEventsError(f"{self.table.name} has no column '{name}'", hint=hint)
        column = self.events.column(name)
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _repeated(values: Sequence[str], index: int, count: int) -> pa.Array:
    """One of few texts, `count` times."""
    return pa.DictionaryArray.from_arrays(arrow(np.full(count, index, np.int32)), pa.array(values, pa.string()))


def _arrow_type(type_name: str) -> pa.DataType:
    """The type of a column of the union."""
    digits = decimal_of(type_name)
    if digits is not None:
        return pa.decimal128(*digits)
    return {
        "int": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "timestamp": TIME_TYPE,
        "date": pa.date32(),
    }.get(family(type_name), pa.null())


def _cast(array: pa.Array, column: TableColumn, place: str) -> pa.Array:
    """A table's own column in the type of the union. Raises BadEventsError for a whole number that no double holds."""
    kind = _arrow_type(column.type_name)
    if array.type == kind or pa.types.is_null(kind):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_floating(kind):
        if pa.types.is_integer(array.type):
            values = numbers(array.cast(pa.int64()), 0)
            beyond = np.flatnonzero((values > MOST_EXACT) | (values < -MOST_EXACT))
            if len(beyond):
                name = plain_name(column.name)
                message = f"{place} has {int(values[beyond[0]])}, which no double holds: in another table"
                raise BadEventsError(f"{message} '{name}' has doubles", hint="map one to another name")
        return doubles(array)
    if pa.types.is_timestamp(kind):
        return normalise(array).cast(kind)
    return array.cast(kind)


class UnitedColumns(Columns):
    """The columns of a union; with those that are computed of others where they are read."""

    def __init__(self, table: pa.Table, tables: Tables) -> None:
        super().__init__(table)
        self.tables = tables

    def check(self, schema: EventSchema, names: Sequence[str], roles: Sequence[str]) -> None:
        ids = [role for role in roles if role == EVENT_ID]
        super().check(schema, names, [role for role in roles if role != EVENT_ID])
        if ids:
            for table in self.tables.tables:
                mine = self._rows(table.name)
                others = self.length - int(np.count_nonzero(mine))  # that have no id of this table
                if super().raw(id_column(table.name)).null_count > others:
                    message = f"{table.name}: column '{table.event_id}' has a NULL: an event has an id"
                    raise BadEventsError(message)

    def has(self, name: str) -> bool:
        return name in (EVENT_ID, ORDER, ID_ORDER, UNPLACED) or super().has(name)

    def raw(self, name: str) -> pa.Array:
        compute = {EVENT_ID: self._ids, ORDER: self._order, ID_ORDER: self._id_order, UNPLACED: self._unplaced}.get(
            name
        )
        return super().raw(name) if compute is None else self.once(("raw", name), compute)

    def taken(self, name: str, rows: Int64s) -> pa.Array:
        """As of any columns; ids are written for these rows alone, if they are fewer."""
        if name != EVENT_ID or ("raw", name) in self._known or len(rows) >= self.length:
            return super().taken(name, rows)
        codes, names = self.types(EVENT_SOURCE)
        return _named(codes[rows], names, self._own_ids().take(arrow(rows)))

    def _rows(self, table: str) -> Bools:
        """Where the events of a table are."""

        def rows() -> Bools:
            codes, names = self.types(EVENT_SOURCE)
            mine = [codes == code for code, name in enumerate(names) if name == table]
            mask: Bools = reduce(np.logical_or, mine) if mine else np.zeros(self.length, np.bool_)
            return mask

        return self.once(("rows of", table), rows)

    def _part(self, table: str) -> slice | Int64s:
        """The rows of a table: side by side, as `united` puts them, or their numbers."""

        def part() -> slice | Int64s:
            rows = np.flatnonzero(self._rows(table))
            together = len(rows) and rows[-1] - rows[0] == len(rows) - 1
            return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows

        return self.once(("part of", table), part)

    def _ids(self) -> pa.Array:
        """`orders:17`."""
        return _named(*self.types(EVENT_SOURCE), self._own_ids())

    def _own_ids(self) -> pa.Array:
        """The id of each event in its table; texts where the types of ids differ."""

        def own() -> pa.Array:
            ids = {table.name: super(UnitedColumns, self).raw(id_column(table.name)) for table in self.tables.tables}
            kinds = {one.type for one in ids.values() if not pa.types.is_null(one.type)}
            if not all(map(pa.types.is_integer, kinds)) or pa.uint64() in kinds or not kinds:
                alike = len(kinds) < 2
                return pc.coalesce(*(one if alike else _written(one) for one in ids.values()))
            values, there = np.zeros(self.length, np.int64), np.zeros(self.length, np.bool_)
            for name, one in ids.items():
                if pa.types.is_null(one.type):  # of a table without events
                    continue
                part = self._part(name)
                own = _of(one, part)
                values[part], there[part] = numbers(own, 0), valid(own)
            return arrow(values, ~there)

        return self.once("own ids", own)

    def _id_order(self) -> pa.Array:
        places, first = np.zeros(self.length, np.int64), 0
        for table in self.tables.tables:
            first = self._placed(places, self._part(table.name), id_column(table.name), first)
        return arrow(places)

    def _order(self) -> pa.Array:
        places, first = np.zeros(self.length, np.int64), 0
        tables = {table.name: table for table in self.tables.tables}
        if self.tables.by_sequence:
            return self._by_sequence()
        for name in self.tables.order:
            part = self._part(name)
            if tables[name].sequence is None:
                places[part] = first
                first += 1
            else:
                first = self._placed(places, part, order_column(name), first)
        return arrow(places)

    def _by_sequence(self) -> pa.Array:
        """By the one sequence of all tables, then by table; NULL where an event has none."""
        names = [table.name for table in self.tables.tables]
        parts = [self._part(name) for name in names]
        arrays = [super(UnitedColumns, self).column(order_column(name)) for name in names]
        codes, _ = ordered_codes(*map(_of, arrays, parts))
        places = np.zeros(self.length, np.int64)
        for number, (part, own) in enumerate(zip(parts, codes, strict=True)):
            places[part] = np.where(own < 0, -1, own.astype(np.int64) * len(parts) + number)
        return arrow(np.maximum(places, 0), places < 0)

    def _placed(self, places: Int64s, part: slice | Int64s, name: str, first: int) -> int:
        """Gives the rows `part` places from `first` on, in the order of a column, NULL first; the place after them."""
        (codes,), size = ordered_codes(_of(super().column(name), part))
        places[part] = codes.astype(np.int64) + 1 + first
        return first + size + 1

    def _unplaced(self) -> pa.Array:
        missing = np.zeros(self.length, np.bool_)
        for table in self.tables.tables:
            if table.sequence is not None:
                missing |= self._rows(table.name) & ~valid(super().raw(order_column(table.name)))
        return arrow(missing)


def _of(array: pa.Array, part: slice | Int64s) -> pa.Array:
    """Some rows of a column."""
    return array[part] if isinstance(part, slice) else array.take(arrow(part))


def _named(codes: Int32s, tables: Sequence[str], own: pa.Array) -> pa.Array:
    """`orders:17` of the codes of tables and the ids there."""
    heads = [f"{table}:" for table in tables]
    if pa.types.is_int64(own.type) and not own.null_count and len(own) > FEW:
        return _texts(codes, [head.encode() for head in heads], numbers(own))
    of_rows = pa.DictionaryArray.from_arrays(arrow(codes), pa.array(heads, pa.string())).dictionary_decode()
    return pc.binary_join_element_wise(of_rows, _written(own), pa.scalar("", pa.string()))


def _texts(codes: Int32s, heads: Sequence[bytes], own: Int64s) -> pa.Array:
    from trendlake.cep_core.events.kernels.texts import ends_of, write_ids  # brings numba

    starts, head = np.cumsum([0, *map(len, heads)], dtype=np.int64), np.frombuffer(b"".join(heads), np.uint8)
    offsets = np.empty(len(own) + 1, np.int64)
    rows = read_only(np.ascontiguousarray(codes)), read_only(own), read_only(starts)
    ends_of(*rows, offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    write_ids(*rows, head, offsets, data)
    texts = pa.LargeStringArray.from_buffers(len(own), pa.py_buffer(offsets), pa.py_buffer(data))
    return texts.cast(pa.string())


def _written(ids: pa.Array) -> pa.Array:
    """Ids as text: integers in decimal."""
    if pa.types.is_string_view(ids.type) or pa.types.is_large_string(ids.type):
        return ids.cast(pa.string())
    if pa.types.is_timestamp(ids.type):
        return normalise(ids).cast(TIME_TYPE).cast(pa.string())
    return ids.cast(pa.string())


def columns_read(events: pa.Table, schema: EventSchema) -> Columns:
    """The columns of a table of events, or of the union of several."""
    return Columns(events) if schema.tables is None else UnitedColumns(events, schema.tables)


def read_together(schemas: Sequence[EventSchema]) -> list[tuple[list[int], EventSchema]]:
    """Schemas whose plans can read one table, by their numbers, with the schema of all: the same derived columns, the
    same tables, and no name for two columns."""
    groups: dict[Any, list[tuple[list[int], dict[str, TableColumn]]]] = {}
    for number, schema in enumerate(schemas):
        tables = schema.tables
        key = schema.derived, None if tables is None else replace(tables, columns=(), attributes=())
        mine = {} if tables is None else {column.name: column for column in tables.columns}
        several = groups.setdefault(key, [])
        for numbered, columns in several:
            if all(columns.get(name, column) == column for name, column in mine.items()):
                numbered.append(number)
                columns.update(mine)
                break
        else:
            several.append(([number], dict(mine)))
    result = []
    for several in groups.values():
        for numbered, columns in several:
            schema = schemas[numbered[0]]
            if schema.tables is not None:
                schema = schema.of_tables(replace(schema.tables, columns=tuple(columns.values())))
            result.append((numbered, schema))
    return result
