"""A table of events and what is computed of its columns: each once, however many plans ask for it.

Rows that were chosen of a table take what is computed from the whole: a value that is an error in the table is one in
every part of it, so that what is left out does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Codes, Int32s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid, values_at
from trendlake.cep_core.events.codes import dense_ranks, group_codes, ordered_codes
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.events.schema import EventSchema, check_events

T = TypeVar("T")


class Columns:
    """The columns of `table`, which has `length` rows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.length: int = table.num_rows
        self._known: dict[Any, Any] = {}

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """The result of `compute` at the first call with this `key`."""
        if key not in self._known:
            self._known[key] = compute()
        value: T = self._known[key]
        return value

    def latest(self, what: str, key: Any, compute: Callable[[], T]) -> T:
        """The result of `compute` for `key`, kept until another key is asked of `what`: large values that one plan
        after the other needs are kept one at a time."""
        if what not in self._known or self._known[what][0] != key:
            self._known[what] = key, compute()
        value: T = self._known[what][1]
        return value

    def check(self, schema: EventSchema, names: Sequence[str], roles: Sequence[str]) -> None:
        """Raises BadEventsError as `check_events` does, of the whole table."""
        check_events(self._table, schema, names, roles)

    def has(self, name: str) -> bool:
        """Whether the table has a column of this name."""
        return name in self._table.column_names

    def raw(self, name: str) -> pa.Array:
        """A column as it came, in one piece."""
        return self.once(("raw", name), lambda: _one_piece(self._table.column(name)))

    def taken(self, name: str, rows: Int64s) -> pa.Array:
        """A column as it came, of some rows."""
        return self.raw(name).take(arrow(rows))

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column (see `cep_core.events.normalise`)."""
        return self.once(("column", name), lambda: normalise(self.raw(name)))

    def type(self, name: str) -> pa.DataType:
        """The type of the normalised array of a column; texts in a dictionary are not written out for it."""
        raw = self.raw(name)
        texts = pa.types.is_dictionary(raw.type) and pa.types.is_string(raw.type.value_type)
        return raw.type.value_type if texts else self.column(name).type

    def codes(self, names: tuple[str, ...]) -> Int32s:
        """Codes 0..: rows agree on all of `names` exactly when their codes do; NULL agrees with NULL."""
        return self.once(("codes", names), lambda: group_codes([self._keyed(name) for name in names], self.length))

    def types(self, name: str) -> tuple[Int32s, list[str]]:
        """The column of event types as codes, -1 for NULL, and the type of each code."""
        return self.once(("types", name), lambda: self._types(name))

    def distinct(self, name: str) -> bool:
        """Whether no two rows have one value in a column."""
        return self.once(("distinct", name), lambda: self._ranked(name)[1] == self.length)

    def places(self, names: tuple[str, ...]) -> Int64s:
        """The place of each row in the order of `names`, where the first name decides first; int64, rows that are equal
        in all of them in some order."""
        return self.once(("places", names), lambda: self._places(names))

    def chosen(self, rows: Int64s) -> Columns:
        """Some rows, by their numbers (int64, in any order; one may come several times)."""
        return _Chosen(self, rows)

    def extended(self, name: str, values: pa.Array) -> Columns:
        """The same rows with one column more, an Arrow array of whole numbers without NULLs; of it may be asked what
        is asked of partitions and groups."""
        return _Extended(self, name, values)

    def other_text(self) -> BadEventsError | None:
        """The error of a text that is not UTF-8 in one of the columns that were asked for; None where each text is."""
        for key, column in self._known.items():
            if key[0] in ("raw", "column") and (text := _not_utf_8(column)) is not None:
                message = f"column '{key[1]}' has a text that is not UTF-8: {text!r}"
                return BadEventsError(message, hint="correct it in the source")
        return None

    def within(self, name: str, start: int, end: int) -> Columns:
        """The rows with start <= `name` < end, microseconds; those with NULL too."""
        return self.once(("within", name, start, end), lambda: self._within(name, start, end))

    def _within(self, name: str, start: int, end: int) -> Columns:
        values = numbers(self.column(name), start)
        inside = (values >= start) & (values < end)
        return self if inside.all() else self.chosen(np.flatnonzero(inside))

    def _key(self, name: str) -> Codes:
        """Numbers in the order of a column's values."""
        column = self.column(name)
        whole = pa.types.is_integer(column.type) and not column.null_count
        return numbers(column) if whole else self._ranked(name)[0]

    def _ranked(self, name: str) -> tuple[Int32s, int]:
        """The rank of each row by a column, -1 for NULL, and how many different values there are."""

        def ranked() -> tuple[Int32s, int]:
            (ranks,), size = ordered_codes(self.column(name))
            return ranks, size

        return self.once(("ranked", name), ranked)

    def _keyed(self, name: str) -> pa.Array:
        """A column for `group_codes`: a dictionary is not read value by value."""
        column = self.raw(name)
        return column if pa.types.is_dictionary(column.type) else self.column(name)

    def _types(self, name: str) -> tuple[Int32s, list[str]]:
        column = self.raw(name)
        if pa.types.is_null(column.type):
            return np.full(self.length, -1, np.int32), []
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        return numbers(column.indices, -1), [str(kind) for kind in column.dictionary.to_pylist()]

    def _places(self, names: tuple[str, ...]) -> Int64s:
        order = np.lexsort([self._key(name) for name in reversed(names)])
        places = np.empty(self.length, np.int64)
        places[order] = np.arange(self.length)
        return places


def _not_utf_8(column: pa.Array) -> bytes | None:
    """The first text of a column that is not UTF-8."""
    texts = column.dictionary if pa.types.is_dictionary(column.type) else column
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        values: list[bytes | None] = texts.cast(pa.large_binary()).to_pylist()
        for value in values:
            if value is not None:
                try:
                    value.decode()
                except UnicodeDecodeError:
                    return value
    return None


class _Chosen(Columns):
    """`rows` of `whole`."""

    def __init__(self, whole: Columns, rows: Int64s) -> None:
        self.whole, self.rows = whole, rows
        self.length = len(rows)
        self._known = {}
        self._index = arrow(np.ascontiguousarray(rows, np.int64))

    def check(self, schema: EventSchema, names: Sequence[str], roles: Sequence[str]) -> None:
        self.whole.check(schema, names, roles)

    def has(self, name: str) -> bool:
        return self.whole.has(name)

    def raw(self, name: str) -> pa.Array:
        return self.once(("raw", name), lambda: self.whole.raw(name).take(self._index))

    def taken(self, name: str, rows: Int64s) -> pa.Array:
        known = ("raw", name) in self._known
        return super().taken(name, rows) if known else self.whole.taken(name, self.rows[rows])

    def column(self, name: str) -> pa.Array:
        return self.once(("column", name), lambda: self._of(self.whole.column(name)))

    def _of(self, column: pa.Array) -> pa.Array:
        """These rows of a column of all: Arrow takes its time where numbers may be NULL."""
        if not column.null_count or not (pa.types.is_int64(column.type) or pa.types.is_float64(column.type)):
            return column.take(self._index)
        return arrow(values_at(column, self.rows), ~valid(column)[self.rows])

    def codes(self, names: tuple[str, ...]) -> Int32s:
        return self.once(("codes", names), lambda: dense_ranks(self.whole.codes(names)[self.rows])[0])

    def types(self, name: str) -> tuple[Int32s, list[str]]:
        codes, names = self.whole.types(name)
        return codes[self.rows], names

    def places(self, names: tuple[str, ...]) -> Int64s:
        return self.whole.places(names)[self.rows]


class _Extended(Columns):
    """`whole` with one column more."""

    def __init__(self, whole: Columns, name: str, values: pa.Array) -> None:
        self.whole, self.name, self.values = whole, name, values
        self.length = whole.length
        self._known = {}

    def check(self, schema: EventSchema, names: Sequence[str], roles: Sequence[str]) -> None:
        self.whole.check(schema, [name for name in names if name != self.name], roles)

    def has(self, name: str) -> bool:
        return name == self.name or self.whole.has(name)

    def raw(self, name: str) -> pa.Array:
        return self.values if name == self.name else self.whole.raw(name)

    def taken(self, name: str, rows: Int64s) -> pa.Array:
        return self.values.take(arrow(rows)) if name == self.name else self.whole.taken(name, rows)

    def column(self, name: str) -> pa.Array:
        return self.values if name == self.name else self.whole.column(name)

    def codes(self, names: tuple[str, ...]) -> Int32s:
        rest = tuple(name for name in names if name != self.name)
        codes = self.whole.codes(rest)
        if len(rest) == len(names):
            return codes
        wide = numbers(self.values) * (int(codes.max(initial=0)) + 1) + codes
        return self.once(("codes", names), lambda: dense_ranks(wide)[0])

    def types(self, name: str) -> tuple[Int32s, list[str]]:
        return self.whole.types(name)

    def places(self, names: tuple[str, ...]) -> Int64s:
        return self.whole.places(names)


def columns_of(events: pa.Table | Columns) -> Columns:
    """A table, or the columns of one."""
    return events if isinstance(events, Columns) else Columns(events)


def _one_piece(column: Any) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array
