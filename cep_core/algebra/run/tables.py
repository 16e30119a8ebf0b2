"""Streams at run time: tables of 64-bit words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cep_core.algebra.kernels import rows as k
from cep_core.errors import WindowTooLargeError
from cep_core.events.array_types import Bools, Int64s

Words = tuple[Int64s, Bools]
"""Values as int64 (whole numbers, microseconds, codes of strings, booleans, the bits of doubles; 0 where NULL), and
whether they are NULL."""


@dataclass(frozen=True)
class Table:
    """A stream. `part`: codes of partitions; `start`, `end`: microseconds. Rows are in any order, and may be equal."""

    part: Int64s
    start: Int64s
    end: Int64s
    columns: dict[str, Words]

    def __len__(self) -> int:
        return len(self.end)

    def take(self, rows: Int64s | Bools) -> Table:
        """Some of its rows: numbers or a mask."""
        columns = {name: (words[rows], null[rows]) for name, (words, null) in self.columns.items()}
        return Table(self.part[rows], self.start[rows], self.end[rows], columns)

    def with_columns(self, columns: dict[str, Words]) -> Table:
        return Table(self.part, self.start, self.end, columns)


def by_group(groups: Int64s, count: int, end: Int64s) -> tuple[Int64s, Int64s]:
    """The rows by group (0 to count - 1) and end, those of group -1 left out; and where groups begin."""
    ready = k.ascending(end) or k.ascending_by_group(groups, count, end)
    order = np.arange(len(end)) if ready else np.argsort(end, kind="stable")
    bounds = np.zeros(count + 1, np.int64)
    result = np.empty(int((groups >= 0).sum()), np.int64)
    k.counting_order(groups, count, order, result, bounds)
    return result, bounds


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
    """Words as those of doubles."""
    if family != "int":
        return words
    bits: Int64s = words.astype(np.float64).view(np.int64)
    return bits


MOST_ROWS = 400_000_000
"""Rows of one operator; more are refused."""


def doubled(array: Int64s) -> Int64s:
    """With as many rows again. Raises WindowTooLargeError."""
    if len(array) > MOST_ROWS:
        message = f"an operator makes more than {MOST_ROWS:,} events of one shard"
        raise WindowTooLargeError(message, hint="shorten within, or give NEXT or FOLD more conditions")
    return np.concatenate((array, np.zeros_like(array)))
