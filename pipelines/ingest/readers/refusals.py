"""Cells of a block that the type of their column does not take, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SHOWN = 5
"""So many cells are named in an error; the others are counted."""


@dataclass(frozen=True)
class BadCell:
    """The cell number `row` (from 0) of a block, as an error shows it; `reason`: what is wrong with it, empty if it is
    simply no value of the type."""

    row: int
    shown: str
    reason: str = ""


class BadCellsError(Exception):
    """`count` cells of a block are not what the column's type takes; `first`: the first `SHOWN` of them."""

    def __init__(self, first: tuple[BadCell, ...], count: int) -> None:
        super().__init__(first, count)
        self.first = first
        self.count = count


class Refusals:
    """Collects the bad ones of `cells`, while these are converted step by step."""

    def __init__(self, cells: pa.Array) -> None:
        self._cells = cells
        self._reasons: dict[int, str] = {}

    def drop(self, values: pa.Array, bad: Any, reason: str = "") -> pa.Array:
        """The values with NULL where `bad` is true; those cells are refused."""
        rows = pc.indices_nonzero(pc.fill_null(bad, False)).to_pylist()
        if not rows:
            return values
        for row in rows:
            self._reasons.setdefault(row, reason)
        return pc.if_else(pc.fill_null(bad, False), pa.scalar(None, values.type), values)

    def convert(self, values: pa.Array, conversion: Callable[[pa.Array], pa.Array]) -> pa.Array:
        """The values converted, with NULL for those that cannot be; these are refused."""
        try:
            return conversion(values)
        except pa.ArrowException:
            rows = pa.array(_failing(values, conversion), pa.int64())
        bad = pc.is_in(pa.array(range(len(values)), pa.int64()), value_set=rows)
        return conversion(self.drop(values, bad))

    @property
    def count(self) -> int:
        return len(self._reasons)

    def check(self) -> None:
        """Raises BadCellsError if a cell was refused."""
        if self._reasons:
            raise BadCellsError(self.first, self.count)

    @property
    def first(self) -> tuple[BadCell, ...]:
        """The first `SHOWN`."""
        rows = islice(sorted(self._reasons.items()), SHOWN)
        return tuple(BadCell(row, shown(self._cells, row), reason) for row, reason in rows)


def _failing(values: pa.Array, conversion: Callable[[pa.Array], pa.Array]) -> list[int]:
    """The rows that cannot be converted, found by halves; `values` as a whole cannot be."""
    rows = []
    parts = [(0, len(values))]
    while parts:
        start, stop = parts.pop()
        if stop - start == 1:
            rows.append(start)
            continue
        middle = (start + stop) // 2
        for low, high in ((start, middle), (middle, stop)):
            try:
                conversion(values.slice(low, high - low))
            except pa.ArrowException:
                parts.append((low, high))
    return rows


def shown(cells: pa.Array, row: int) -> str:
    """The cell as an error shows it."""
    cell = cells[row]
    try:
        value = cell.as_py()
    except (ValueError, OverflowError, KeyError):  # a year or zone that Python does not have, bytes that are no text
        stored = getattr(cell, "value", None)
        return _short(f"a value of {cells.type}" if stored is None else f"{stored} ({cells.type})")
    return _short(
        f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:50]} [...]"
