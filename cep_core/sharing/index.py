"""A column's rows in the order of its values, so that the rows that a comparison with a constant is true of are a
stretch of them, found by binary search."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import AnyArray, Int32s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.sharing.comparisons import Comparison

SMALL = 2**16
"""So many different values are counted, more are sorted."""


class Index:
    """`ranks` (n): the place of each row's value among the different `values`, -1 for NULL. `rows`: the rows by rank,
    each rank's in their order in the table; those of rank r are rows[starts[r]:starts[r + 1]]."""

    def __init__(self, ranks: Int32s, values: Sequence[Any] | AnyArray) -> None:
        self.ranks, self.values = ranks, values
        places = ranks + 1
        self.rows = np.argsort(places.astype(np.uint16) if len(values) < SMALL - 1 else places, kind="stable")
        self.starts = np.cumsum(np.bincount(places, minlength=len(values) + 1))

    def between(self, comparison: Comparison) -> list[tuple[int, int]]:
        """The stretches [low, high) of ranks that a comparison is true of, in order, none of them empty."""
        size = len(self.values)
        stretches = []
        for value in sorted(set(comparison.values)):
            left, right = bisect_left(self.values, value), bisect_right(self.values, value)
            low, high = {"=": (left, right), "<": (0, left), "<=": (0, right), ">": (right, size), ">=": (left, size)}[
                comparison.op
            ]
            if low < high:
                stretches.append((low, high))
        return stretches

    def count(self, stretches: Sequence[tuple[int, int]]) -> int:
        """How many rows there are in stretches of ranks."""
        return sum(int(self.starts[high] - self.starts[low]) for low, high in stretches)

    def chosen(self, stretches: Sequence[tuple[int, int]]) -> Int64s:
        """The rows in stretches of ranks, in the table's order."""
        parts = [self.rows[self.starts[low] : self.starts[high]] for low, high in stretches]
        if len(parts) == 1 and stretches[0][1] - stretches[0][0] == 1:
            return parts[0]
        if self.count(stretches) * 20 < len(self.ranks):
            return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        inside = np.zeros(len(self.ranks), np.bool_)
        for part in parts:
            inside[part] = True
        return np.flatnonzero(inside)

    def among(self, rows: Int64s, stretches: Sequence[tuple[int, int]]) -> Int64s:
        """Those of `rows` whose rank is in a stretch."""
        ranks = self.ranks[rows]
        inside = np.zeros(len(rows), np.bool_)
        for low, high in stretches:
            inside |= (ranks >= low) & (ranks < high)
        return rows[inside]


def index_of(column: pa.Array) -> Index:
    """The index of a normalised array of whole numbers, float64s or strings, or of a dictionary of strings."""
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    coded = pa.types.is_dictionary(column.type)
    array = column.dictionary if coded else column
    (ranks,), size = ordered_codes(array)
    first = np.zeros(size, np.int64)
    known = valid(array)
    first[ranks[known]] = np.flatnonzero(known)
    different = array.take(arrow(first))
    if not coded:
        return Index(ranks, numbers(different))
    return Index(np.append(ranks, np.int32(-1))[numbers(column.indices, -1)], different.to_pylist())
