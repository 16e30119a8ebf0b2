"""What the parts of a condition on a row are to Spark: their types, and how large their numbers can be in the rows at
hand. So it is known before anything is computed whether 64 bits and doubles give Spark's verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cep_core.expressions.columnar import COMPARISONS
from cep_core.language import syntax as s
from pipelines.errors import LocalUnsupportedError

EXACT = 1 << 53
"""Whole numbers up to here are doubles exactly."""
EXACT_FLOAT = 1 << 24
MICROSECONDS = 1 << 61
"""Times and durations up to here can be added; of larger ones a sum might not fit 64 bits."""
LARGEST = 1e300
"""Doubles whose sums and products stay below are never infinite."""
DAY = 86_400_000_000
ROUNDED = 1e-15
"""More than what a double is rounded by, of its magnitude."""


@dataclass(frozen=True)
class Value:
    """What a part of a condition gives: its Spark `type` (all whole numbers are `int`, of `bits`), a bound on its
    magnitude (microseconds of times), the exact value of a literal, of a decimal its digits and its scale, and how far
    Spark's value may be from ours."""

    type: str
    bound: float = 0
    bits: int = 0
    literal: int | float | None = None
    digits: int = 0
    scale: int = 0
    error: float = 0


BOOLEAN, TEXT = Value("boolean"), Value("string")


def column_value(array: pa.Array) -> Value:
    """A column's type and the bound of what it holds. Raises LocalUnsupportedError for a type that contracts do not
    have, and for a NaN."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if pa.types.is_string(kind):
        return TEXT
    if pa.types.is_signed_integer(kind):
        return Value("int", _largest(array), kind.bit_width)
    if kind in (pa.float32(), pa.float64()):
        if pc.any(pc.is_nan(array)).as_py():
            raise LocalUnsupportedError("NaN")
        return Value("double" if kind == pa.float64() else "float", _largest(array))
    if pa.types.is_decimal128(kind):
        return Value("decimal", digits=kind.precision, scale=kind.scale)
    if kind == pa.timestamp("us", "UTC"):
        return _bounded("timestamp", _largest(array.cast(pa.int64())))
    if kind == pa.date32():
        return _bounded("date", _largest(array.cast(pa.int32())) * DAY)
    raise LocalUnsupportedError(f"a column of {kind}")


def comparable(column: Value, literal: int | float) -> bool:
    """Whether a column of numbers compares with a literal as their doubles do."""
    if isinstance(literal, float):
        return not math.isnan(literal)  # Spark compares both as doubles
    if column.type == "int":
        return -(1 << 63) <= literal < 1 << 63
    if column.type != "decimal":
        return abs(literal) <= (EXACT_FLOAT if column.type == "float" else EXACT)
    # Spark compares decimals of a common type, which has to fit 38 digits. The decimal next to the literal is another
    # double where the literal has fewer than 2^53 units of the column's last place.
    fits = max(column.digits - column.scale, 20) + column.scale <= 38
    return fits and abs(literal) * 10**column.scale < EXACT


def value_of(node: s.Expr, columns: Mapping[str, Value]) -> Value:
    """Raises LocalUnsupportedError."""
    match node:
        case s.Literal(value=value, kind=kind):
            return _literal(value, kind)
        case s.Parameter(name=name):
            raise AssertionError(f"${name} has no value")  # pragma: no cover - conditions on rows have no parameters
        case s.Attribute(name=name):
            return columns[name]
        case s.Unary(op=op, operand=operand):
            inner = value_of(operand, columns)
            return BOOLEAN if op in ("isnull", "not") else _negative(inner)
        case s.Binary(op=op, left=left, right=right):
            a, b = value_of(left, columns), value_of(right, columns)
            if op in ("and", "or"):
                return BOOLEAN
            return _compared(a, b) if op in COMPARISONS else _arithmetic(op, a, b)
        case s.In(operand=operand, choices=choices):
            tested, *listed = (value_of(part, columns) for part in (operand, *choices))
            if any(one.error for one in (tested, *listed)):
                raise LocalUnsupportedError("a logarithm in a list")
            for one in listed:
                _compared(tested, one)
            return BOOLEAN
        case s.Call(function=function, arguments=arguments):
            return _call(function, [value_of(argument, columns) for argument in arguments])


def _literal(value: Any, kind: str) -> Value:
    if value is None:
        raise LocalUnsupportedError("NULL")
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, str):
        return TEXT
    if kind in ("timestamp", "duration"):
        return _bounded(kind, abs(value))
    if isinstance(value, int):
        bits = 32 if -(1 << 31) <= value < 1 << 31 else 64
        return _whole(Value("int", abs(value), bits, value))
    if not math.isfinite(value):
        raise LocalUnsupportedError("a literal that is no number")
    return Value("double", abs(value), literal=value)


def _whole(value: Value) -> Value:
    """Raises LocalUnsupportedError where a whole number may overflow its type: then Spark has NULL."""
    if value.bound >= 1 << (value.bits - 1):
        raise LocalUnsupportedError("whole numbers that may overflow")
    return value


def _bounded(kind: str, bound: float) -> Value:
    if bound > MICROSECONDS:
        raise LocalUnsupportedError("a time beyond what can be added")
    return Value(kind, bound)


def _real(bound: float) -> Value:
    if not bound < LARGEST:
        raise LocalUnsupportedError("doubles that may be infinite, and then NaN")
    return Value("double", bound)


def _negative(value: Value) -> Value:
    """Spark computes 0 - value; 0 is an int."""
    literal = None if value.literal is None else -value.literal
    if value.type == "int":
        return replace(_whole(Value("int", value.bound, max(value.bits, 32))), literal=literal)
    if value.type == "double":
        return replace(_real(value.bound), literal=literal, error=value.error)
    if value.type == "decimal" and value.scale == 0:
        return replace(value, digits=38)
    raise LocalUnsupportedError(f"- of {value.type}")


def _compared(a: Value, b: Value) -> Value:
    for column, other in ((a, b), (b, a)):
        if column.type in ("decimal", "float") and other.literal is not None:
            if not comparable(column, other.literal):
                raise LocalUnsupportedError("a literal that is rounded")
            return BOOLEAN
    if {a.type, b.type} == {"int", "double"}:
        _both_exact(a, b)
    elif a.type == "decimal" or (a.type != b.type and {a.type, b.type} != {"float", "double"}):
        raise LocalUnsupportedError(f"{a.type} beside {b.type}")
    return BOOLEAN


def _both_exact(*values: Value) -> None:
    if any(value.type == "int" and value.bound > EXACT for value in values):
        raise LocalUnsupportedError("whole numbers that are no doubles")


def _arithmetic(op: str, a: Value, b: Value) -> Value:
    kinds = (a.type, b.type)
    if set(kinds) <= {"int", "double"}:
        if op == "/" or kinds != ("int", "int"):
            _both_exact(a, b)
            return _of_doubles(op, a, b)
        bound = {"+": a.bound + b.bound, "-": a.bound + b.bound, "*": a.bound * b.bound, "%": a.bound}[op]
        return _whole(Value("int", bound, max(a.bits, b.bits)))
    times = {
        ("+", "timestamp", "duration"): "timestamp",
        ("-", "timestamp", "duration"): "timestamp",
        ("-", "timestamp", "timestamp"): "duration",
    }
    if (op, *kinds) in times:
        return _bounded(times[op, a.type, b.type], a.bound + b.bound)
    raise LocalUnsupportedError(f"{a.type} {op} {b.type}")


def _of_doubles(op: str, a: Value, b: Value) -> Value:
    """Quotients may be infinite, but are no NaN; they can be compared, and computed with where that cannot be."""
    _real(a.bound), _real(b.bound)
    if op in "/%" and a.error + b.error:
        raise LocalUnsupportedError("a logarithm divided")
    if op == "/":
        small = b.literal is None or abs(b.literal) < 1e-300
        return Value("double", math.inf if small else a.bound / abs(b.literal or 1))
    real = _real({"+": a.bound + b.bound, "-": a.bound + b.bound, "*": a.bound * b.bound, "%": a.bound}[op])
    if not a.error + b.error:
        return real
    error = a.bound * b.error + b.bound * a.error + a.error * b.error if op == "*" else a.error + b.error
    return replace(real, error=error + ROUNDED * real.bound)


def _call(function: str, arguments: list[Value]) -> Value:
    first = arguments[0]
    if function in ("hour", "dayofweek"):
        return Value("int", 23 if function == "hour" else 7, 32)
    if function in ("lower", "upper"):
        return TEXT
    if function == "abs":
        return replace(_negative(first), literal=None)
    if function not in ("coalesce", "least", "greatest"):
        raise LocalUnsupportedError(function)
    kinds = {value.type for value in arguments}
    if kinds == {"int", "double"}:
        _both_exact(*arguments)
    elif len(kinds) > 1 or kinds & {"decimal", "float"} or (kinds == {"boolean"} and function != "coalesce"):
        raise LocalUnsupportedError(f"{function} of {', '.join(sorted(kinds))}")
    kind = "double" if "double" in kinds else first.type
    bound, bits, error = (max(getattr(value, name) for value in arguments) for name in ("bound", "bits", "error"))
    return Value(kind, bound, bits, error=error)


def whole_array(column: Any) -> pa.Array:
    """A column in one piece. Raises LocalUnsupportedError for a text that is not UTF-8."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.cast(pa.string()) if pa.types.is_large_string(array.type) else array
    if pa.types.is_string(array.type):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise LocalUnsupportedError(str(error)) from None
    return array


def _largest(array: pa.Array) -> float:
    ends: dict[str, Any] = pc.min_max(array).as_py()
    return max((abs(end) for end in ends.values() if end is not None), default=0)
