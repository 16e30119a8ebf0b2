"""The contract of `tests/support/signals.py` said once more, in plain Python: which rows of the source are good. For
recomputations, which so share no rule with what they are compared with, and do without Spark's jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

Row = Mapping[str, Any]
TYPES = ("A", "B", "C")


def keeping(rows: Sequence[Row], most: int, *, documents: bool) -> list[Row]:
    """The rows that keep the rules of single rows; `most`: the highest price."""
    return [row for row in rows if _keeps(row, most) and not (documents and _broken(row["document"]))]


def without_repeats(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The rows whose id no other of `rows` has; of those that are equal in all columns `names` one, and of those of an
    id that differ none."""
    by_id: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        by_id.setdefault(row["event_id"], {})[tuple(_comparable(row[name]) for name in names)] = row
    return [row for distinct in by_id.values() if len(distinct) == 1 for row in distinct.values()]


def _comparable(value: Any) -> Any:
    """A NaN is equal to another, as it is to Spark."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _keeps(row: Row, most: int) -> bool:
    if row["event_id"] is None or row["event_time"] is None or row["event_type"] not in TYPES:
        return False
    return row["price"] is None or 0 <= row["price"] <= most


def _broken(document: str | None) -> bool:
    """Whether it is no document, or declares a type, which the engine reads no document with."""
    if document is None:
        return True
    declared: list[str] = []
    parser = ParserCreate()
    parser.StartDoctypeDeclHandler = lambda name, *_: declared.append(name)
    try:
        parser.Parse(document, True)
    except ExpatError:
        return True
    return bool(declared)
