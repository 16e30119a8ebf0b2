"""Functions that texts of SQL have (`s.SqlCall`): of single values, and of columns where that is faster.

No operation of the machine (`cep_core.kernels.vm`) computes them: several make texts that no event has. Kinds whose
conditions run on the machine do not have them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError, TextError
from trendlake.cep_core.events.windows import clock_text, moment
from trendlake.cep_core.expressions.functions import DAY, HOUR, Value
from trendlake.cep_core.language.tree_builder import timestamp_us

CASE = "case"
"""Conditions and values in turn, then the value where no condition is true; it alone evaluates what it needs only."""
UNITS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": HOUR, "day": DAY}
CALENDAR = ("week", "month", "quarter", "year")
_OPERATORS = ("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "LIKE", "OVER", "FILTER")
_WORDS = ("CASE", "WHEN", "THEN", "ELSE", "END", "AS", "NULL", "TRUE", "FALSE", "SELECT", "FROM", "WHERE")
RESERVED = frozenset({*_OPERATORS, *_WORDS})
"""Words that are no names of columns unless quoted."""
_NUMBERS = ("int", "double")
_EXACT = Context(prec=1_200)
"""Digits in which every double is itself."""


@dataclass(frozen=True)
class SqlFunction:
    """One function; NULL where an argument is. `takes`: the families of each argument; `gives`: that of its value, None
    for that of the first argument. `optional`: how many arguments at the end may be left out; `many`: the last may
    come several times. `columns`: of normalised arrays that are none of them of the type null."""

    meaning: str
    takes: tuple[tuple[str, ...], ...]
    gives: str | None
    value: Callable[..., Value]
    columns: Callable[..., pa.Array] | None = None
    optional: int = 0
    many: bool = False

    def of(self, *values: Value) -> Value:
        return None if None in values else self.value(*values)


def _fits(value: int, what: str) -> int:
    if not -(2**63) <= value < 2**63:
        raise BadEventsError(f"an expression cannot be computed: {what} does not fit 64 bits")
    return value


@lru_cache(maxsize=1_000)
def _like(pattern: str, escape: str = "") -> re.Pattern[str]:
    parts, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            if pattern[at + 1 : at + 2] not in ("%", "_", escape):
                raise BadEventsError(f"LIKE '{pattern}': behind the escape character stands %, _ or itself")
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append(".*" if char == "%" else "." if char == "_" else re.escape(char))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


def _is_like(text: str, pattern: str, escape: str = "") -> bool:
    return _like(pattern, escape).fullmatch(text) is not None


def _rounded(value: float, places: int = 0) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if places > 400 or (isinstance(value, int) and places >= 0):
        return value
    exact = Decimal(value).quantize(Decimal(1).scaleb(min(-places, 400)), ROUND_HALF_UP, _EXACT)
    return _fits(int(exact), "ROUND") if isinstance(value, int) else float(exact) + 0.0


def _floor(value: float) -> Value:
    return value if isinstance(value, int) or not math.isfinite(value) else float(math.floor(value)) + 0.0


def _ceil(value: float) -> Value:
    return value if isinstance(value, int) or not math.isfinite(value) else float(math.ceil(value)) + 0.0


def _root(value: float) -> Value:
    return None if value < 0 else math.sqrt(value)


def truncated(unit: str, time: int) -> int:
    """The begin of the unit of time (UTC; weeks begin on Monday) that holds a time, microseconds."""
    if unit in UNITS:
        return time // UNITS[unit] * UNITS[unit]
    if unit == "week":
        return time // DAY * DAY - (time // DAY + 3) % 7 * DAY
    day = moment(time).date()
    first = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return timestamp_us(day.replace(month=first, day=1).isoformat())


def _whole_of_real(value: float) -> int:
    if not math.isfinite(value):
        raise BadEventsError(f"an expression cannot be computed: {value} is no whole number")
    return _fits(int(Decimal(value).to_integral_value(ROUND_HALF_UP, _EXACT)), "a number")


def _read(what: str, reader: Callable[[str], Value]) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            return reader(text.strip())
        except (ValueError, ArithmeticError, TextError):
            raise BadEventsError(f"an expression cannot be computed: '{text}' is no {what}") from None

    return read


def _whole_of_text(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,400}", text):
        raise ValueError(text)
    return _fits(int(text), "a number")


def _real_of_text(text: str) -> Value:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise ValueError(text)
    return float(text) + 0.0


def _boolean_of_text(text: str) -> bool:
    return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[text.lower()]


def _key_as_value(reader: Callable[[str], bool]) -> Callable[[str], bool]:
    def read(text: str) -> bool:
        try:
            return reader(text)
        except KeyError:
            raise ValueError(text) from None

    return read


_CASTS: dict[tuple[str, str], Callable[[Any], Value]] = {
    ("int", "double"): lambda value: float(value) + 0.0,
    ("int", "string"): str,
    ("int", "boolean"): lambda value: value != 0,
    ("double", "int"): _whole_of_real,
    ("double", "string"): repr,
    ("double", "boolean"): lambda value: value != 0,
    ("boolean", "int"): int,
    ("boolean", "double"): float,
    ("boolean", "string"): lambda value: "true" if value else "false",
    ("string", "int"): _read("whole number", _whole_of_text),
    ("string", "double"): _read("number", _real_of_text),
    ("string", "boolean"): _read("boolean", _key_as_value(_boolean_of_text)),
    ("string", "timestamp"): _read("time", timestamp_us),
    ("timestamp", "string"): lambda value: clock_text(value, " "),
    ("date", "string"): lambda value: clock_text(value, " ")[:10],
    ("date", "timestamp"): lambda value: value,
    ("duration", "int"): lambda value: value,
}


def cast_of(family: str, to: str) -> str | None:
    """The function that makes values of one family those of another; None where there is none."""
    name = f"cast_{family}_{to}"
    return name if name in SQL_FUNCTIONS else None


def _same(array: pa.Array) -> pa.Array:
    return array


SQL_FUNCTIONS: dict[str, SqlFunction] = {
    "concat": SqlFunction(
        "the texts one behind the other",
        (("string",),),
        "string",
        lambda *texts: "".join(texts),
        lambda *texts: pc.binary_join_element_wise(*texts, ""),
        many=True,
    ),
    "like": SqlFunction(
        "whether the text is as the pattern says: % is any text, _ any character",
        (("string",), ("string",), ("string",)),
        "boolean",
        _is_like,
        optional=1,
    ),
    "length": SqlFunction(
        "the number of characters", (("string",),), "int", len, lambda text: pc.utf8_length(text).cast(pa.int64())
    ),
    "round": SqlFunction(
        "the nearest number of so many decimal places (0); a half goes away from zero",
        (_NUMBERS, ("int",)),
        None,
        _rounded,
        optional=1,
    ),
    "floor": SqlFunction("the greatest whole number that is not greater", (_NUMBERS,), None, _floor),
    "ceil": SqlFunction("the least whole number that is not less", (_NUMBERS,), None, _ceil),
    "sqrt": SqlFunction("the square root; NULL of a negative number", (_NUMBERS,), "double", _root),
    "time_difference": SqlFunction(
        "microseconds between two times",
        (("timestamp", "date"), ("timestamp", "date")),
        "int",
        lambda a, b: _fits(a - b, "a difference of times"),
        pc.subtract_checked,
    ),
    "microseconds": SqlFunction("a duration as a whole number", (("duration",),), "int", _same, _same),
    **{
        f"date_trunc_{unit}": SqlFunction(
            f"the begin of the {unit} that holds the time, UTC",
            (("timestamp", "date"),),
            "timestamp",
            lambda time, unit=unit: truncated(unit, time),
        )
        for unit in (*UNITS, *CALENDAR)
    },
    **{
        f"cast_{family}_{to}": SqlFunction(f"a {family} as a {to}", ((family,),), to, convert)
        for (family, to), convert in _CASTS.items()
    },
}


def of_columns(name: str, arrays: Sequence[pa.Array], length: int) -> pa.Array:
    """A function's value for each row of normalised arrays."""
    function = SQL_FUNCTIONS[name]
    if any(pa.types.is_null(array.type) for array in arrays):
        return pa.nulls(length, _TYPES.get(function.gives or "", pa.null()))
    if function.columns is not None:
        return function.columns(*arrays)
    kind = arrays[0].type if function.gives is None else _TYPES[function.gives]
    columns = [array.to_pylist() for array in arrays]
    return pa.array([function.of(*row) for row in zip(*columns, strict=True)], kind)


_TYPES = {
    "int": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.int64(),
}


def case_of_columns(arrays: Sequence[pa.Array], length: int) -> pa.Array:
    """CASE over columns whose values are all computed."""
    conditions, values = arrays[:-1:2], [*arrays[1:-1:2], arrays[-1]]
    kinds = {value.type for value in values if not pa.types.is_null(value.type)}
    if not kinds:
        return pa.nulls(length)
    kind = pa.float64() if len(kinds) > 1 else kinds.pop()
    typed = [value.cast(kind, safe=False) for value in values]
    if not conditions:
        return typed[-1]
    known = [pc.fill_null(condition.cast(pa.bool_()), False) for condition in conditions]
    return pc.case_when(pa.StructArray.from_arrays(known, [str(at) for at in range(len(known))]), *typed)
