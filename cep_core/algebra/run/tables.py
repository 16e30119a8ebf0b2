"""Streams at run time: tables of 64-bit words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from trendlake.cep_core.algebra.kernels import rows as k
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import MOST_EXACT, Bools, Int64s

Words = tuple[Int64s, Bools]
"""Values as int64 (whole numbers, microseconds, codes of strings, booleans, the bits of doubles; 0 where NULL), and
whether they are NULL."""


Place: TypeAlias = "tuple[Mapping[str, Words], str, Int64s | None]"


class Late(Mapping[str, Words]):
    """Columns that are copied from other tables when they are first read. Of what NEXT and FOLD make, most rows are
    filtered before most columns are read.

    `places`: by name the columns of a table, the name there, and the rows of it (None: all).
    """

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._read: dict[str, Words] = {}

    def __getitem__(self, name: str) -> Words:
        if name not in self._read:
            columns, source, rows = self._places[name]
            while rows is not None and isinstance(columns, Late):
                below, inner, more = columns.place(source)
                if more is None or below is columns or len(rows) > len(more) // 2:
                    break  # others may want the whole column, too
                columns, source, rows = below, inner, more[rows]
            words, null = columns[source]
            self._read[name] = (words, null) if rows is None else (words[rows], null[rows])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def place(self, name: str) -> Place:
        """Where a column is to be taken from."""
        return (self, name, None) if name in self._read else self._places[name]

    def take(self, rows: Int64s) -> Late:
        """Of some rows. Columns that are taken of the same rows of a table share them."""
        chosen: dict[int, Int64s] = {}
        for _, _, old in self._places.values():
            if old is not None and id(old) not in chosen:
                chosen[id(old)] = old[rows]
        return Late(
            {
                name: (columns, source, rows if old is None else chosen[id(old)])
                for name, (columns, source, old) in self._places.items()
            }
        )


@dataclass(frozen=True)
class Table:
    """A stream. `part`: codes of partitions; `start`, `end`: microseconds. Rows are in any order, and may be equal."""

    part: Int64s
    start: Int64s
    end: Int64s
    columns: Mapping[str, Words]

    def __len__(self) -> int:
        return len(self.end)

    def take(self, rows: Int64s | Bools, part: Int64s | None = None) -> Table:
        """Some of its rows: numbers or a mask. `part`: their partitions, where these are known."""
        places: Int64s = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        late = self.columns if isinstance(self.columns, Late) else _whole(self.columns, self.columns)
        start = self.start[places]
        end = start if self.end is self.start else self.end[places]
        return Table(self.part[places] if part is None else part, start, end, late.take(places))

    def with_columns(self, columns: Mapping[str, Words]) -> Table:
        """The same rows with these columns only."""
        return Table(self.part, self.start, self.end, columns)

    def only(self, names: Iterable[str]) -> Table:
        """The same rows with some of the columns."""
        return self.with_columns(_whole(self.columns, names))

    def beside(self, columns: Mapping[str, Words]) -> Table:
        """The same rows with other columns, or more."""
        own = {name: place_of(self.columns, name) for name in self.columns}
        return self.with_columns(Late({**own, **{name: (columns, name, None) for name in columns}}))


def place_of(columns: Mapping[str, Words], name: str) -> Place:
    """Where a column of a stream is to be taken from."""
    return columns.place(name) if isinstance(columns, Late) else (columns, name, None)


def _whole(columns: Mapping[str, Words], names: Iterable[str]) -> Late:
    return Late({name: place_of(columns, name) for name in names})


def by_group(groups: Int64s, count: int, end: Int64s) -> tuple[Int64s, Int64s]:
    """The rows by group (0 to count - 1) and end, those of group -1 left out; and where groups begin."""
    if in_order(groups, end):
        return np.arange(len(end)), np.searchsorted(groups, np.arange(count + 1)).astype(np.int64)
    ready = k.ascending(end) or k.ascending_by_group(groups, count, end)
    order = np.arange(len(end)) if ready else np.argsort(end, kind="stable")
    bounds = np.zeros(count + 1, np.int64)
    result = np.empty(int((groups >= 0).sum()), np.int64)
    k.counting_order(groups, count, order, result, bounds)
    return result, bounds


def in_order(groups: Int64s, end: Int64s) -> bool:
    """Whether rows, all of some group, are sorted by group and end."""
    return not len(groups) or (groups[0] >= 0 and k.ascending_pairs(groups, end))


def leaves(columns: Sequence[Words], length: int) -> Words:
    """Columns side by side, a row an event."""
    words, null = np.zeros((length, len(columns)), np.int64), np.zeros((length, len(columns)), np.bool_)
    for x, (values, missing) in enumerate(columns):
        words[:, x], null[:, x] = values, missing
    return words, null


def distinct(table: Table) -> Table:
    """Each event once."""
    if len(table) < 2:
        return table
    if k.ascending_events(table.part, table.start, table.end):
        return table
    nulls = np.zeros(len(table), np.int64)
    columns = [table.start, table.end, table.part]
    for x, (words, null) in enumerate(table.columns.values()):
        columns.append(words)
        nulls |= null.astype(np.int64) << np.int64(x % 62)
        if x % 62 == 61:
            columns.append(nulls)
            nulls = np.zeros(len(table), np.int64)
    columns.append(nulls)
    whole, hashes = np.empty((len(table), len(columns)), np.int64), np.zeros(len(table), np.uint64)
    for x, column in enumerate(columns):
        whole[:, x] = column
        k.mixed(hashes, np.ascontiguousarray(column, np.int64))
    heads = np.full(1 << max(4, int(len(table) - 1).bit_length()), -1, np.int64)
    keep = np.zeros(len(table), np.bool_)
    k.first_of_equal(hashes, whole, heads, np.full(len(table), -1, np.int64), keep)
    return table if keep.all() else table.take(keep)


def sortable(words: Int64s, family: str) -> Int64s:
    """Words whose order as whole numbers is that of the values."""
    if family != "double":
        return words
    return words ^ ((words >> 63) & np.int64(2**63 - 1))


def as_real(words: Int64s, family: str) -> Int64s:
    """Words as those of doubles. Raises BadEventsError for a whole number that is no double of its own: columns are
    sorted and searched as doubles here, which would take it for its neighbour."""
    if family != "int":
        return words
    if len(words) and (words.min() < -MOST_EXACT or words.max() > MOST_EXACT):
        message = "a whole number beyond 2^53 is compared with doubles, or becomes one"
        raise BadEventsError(message, hint="let the contract give both columns one type")
    bits: Int64s = words.astype(np.float64).view(np.int64)
    return bits


MOST_ROWS = 400_000_000
"""Rows of one operator; more are refused."""
