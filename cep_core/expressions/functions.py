"""The functions of the expression language, a row each: types, meaning, and operation in compiled code.

A new function is a new row: type checks, every evaluator and the reference page read the table. Where no operation
computes it yet, `cep_core.kernels.vm` gets one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.expressions import opcodes as m

Value: TypeAlias = Any
"""int, float, str or bool, as of `cep_core.events.normalise`."""

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
DAY = 24 * HOUR
"""Microseconds."""


@dataclass(frozen=True)
class Function:
    """One function. NULL arguments never reach `value`, and columns of NULLs only never reach `columns`: a function
    with `takes` is NULL where an argument is; one of several values ignores NULLs and is NULL where all are.

    `takes`: the families of its arguments, as many as `arguments` says; () for one or more values of one type.
    `gives`: the family of its value, None for that of its arguments. `columns`: of normalised Arrow arrays of one type,
    an array of as many values;
    raises pyarrow.ArrowInvalid for integers beyond 64 bits. `value`: of single values; a result outside 64 bits is
    refused by the caller. `operation`: the machine's (`cep_core.kernels.vm`), and `real_operation` of doubles where
    that is another.
    """

    meaning: str
    columns: Callable[..., pa.Array]
    value: Callable[..., Value]
    operation: int
    takes: tuple[str, ...] = ()
    arguments: int = 1
    gives: str | None = None
    real_operation: int | None = None
    divisor: float | None = None
    """The operation is a division by it, of whole numbers as doubles."""

    def operation_of(self, *, real: bool) -> int:
        """The machine's operation on doubles, or on other values."""
        return self.real_operation if real and self.real_operation is not None else self.operation


def _hours(times: pa.Array) -> pa.Array:
    return arrow(numbers(times, 0) // HOUR % 24, ~valid(times))


def _weekdays(times: pa.Array) -> pa.Array:
    return arrow((numbers(times, 0) // DAY + 4) % 7 + 1, ~valid(times))


def _units(name: str, unit: int) -> Function:
    return Function(
        f"how many {name} a duration has, with their fraction",
        lambda spans: pc.divide(spans.cast(pa.float64(), safe=False), float(unit)),
        lambda span: float(span) / unit,
        m.DIVIDE_F,
        takes=("duration",),
        gives="double",
        divisor=float(unit),
    )


def _contains(whole: pa.Array, part: pa.Array) -> pa.Array:
    if len(parts := pc.unique(part)) == 1 and parts[0].is_valid:
        return pc.match_substring(whole, parts[0].as_py())
    pairs = zip(whole.to_pylist(), part.to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else b in a for a, b in pairs], pa.bool_())


def _extreme(choose: Callable[..., pa.Array], arrays: tuple[pa.Array, ...]) -> pa.Array:
    """The least or greatest of each row, by Arrow's `choose`, which has no form for booleans."""
    if pa.types.is_boolean(arrays[0].type):
        return _extreme(choose, tuple(array.cast(pa.uint8()) for array in arrays)).cast(pa.bool_())
    return choose(*arrays, skip_nulls=True)


FUNCTIONS = {
    "abs": Function(
        "the number without its sign",
        pc.abs_checked,
        abs,
        m.ABS,
        takes=("int", "double", "duration"),
        real_operation=m.ABS_F,
    ),
    "least": Function(
        "the least of the values that are not NULL",
        lambda *arrays: _extreme(pc.min_element_wise, arrays),
        lambda *values: min(values),
        m.LEAST,
        real_operation=m.LEAST_F,
    ),
    "greatest": Function(
        "the greatest of the values that are not NULL",
        lambda *arrays: _extreme(pc.max_element_wise, arrays),
        lambda *values: max(values),
        m.GREATEST,
        real_operation=m.GREATEST_F,
    ),
    "lower": Function("the text in lower case", pc.utf8_lower, str.lower, m.LOWER, takes=("string",)),
    "upper": Function("the text in upper case", pc.utf8_upper, str.upper, m.UPPER, takes=("string",)),
    "contains": Function(
        "whether the second text occurs in the first",
        _contains,
        lambda whole, part: part in whole,
        m.CONTAINS,
        takes=("string",),
        arguments=2,
        gives="boolean",
    ),
    "coalesce": Function(
        "the first of the values that is not NULL", pc.coalesce, lambda *values: values[0], m.COALESCE
    ),
    "hour": Function(
        "the hour of the day, 0 to 23, in UTC",
        _hours,
        lambda time: time // HOUR % 24,
        m.HOUR,
        takes=("timestamp",),
        gives="int",
    ),
    "dayofweek": Function(
        "the day of the week, 1 (Sunday) to 7, in UTC",
        _weekdays,
        lambda time: (time // DAY + 4) % 7 + 1,
        m.DAY_OF_WEEK,
        takes=("timestamp", "date"),
        gives="int",
    ),
    "seconds": _units("seconds", SECOND),
    "minutes": _units("minutes", MINUTE),
    "hours": _units("hours", HOUR),
}
