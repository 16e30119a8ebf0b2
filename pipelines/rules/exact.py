"""Comparisons of sums, differences and products of decimals, exactly: `amount + fee = total` of a contract. As doubles
0.10 + 0.20 is not 0.30. Other arithmetic is the pattern language's, of doubles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.expressions.columnar import COMPARISONS
from trendlake.cep_core.language import syntax as s


@dataclass(frozen=True)
class _Values:
    """Whole `units` (Python's integers, so none is too large) of 10^-`scale`; units of rows that are not `valid`, as a
    part is NULL, mean nothing."""

    units: Any
    scale: int
    valid: Bools

    def at(self, scale: int) -> Any:
        """The units of a finer scale."""
        return self.units * 10 ** (scale - self.scale)


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_exact(node: s.Expr, columns: Mapping[str, pa.Array]) -> bool:
    """Whether a comparison computes with decimals, and with nothing but decimals and whole numbers. `columns`: as they
    are stored."""
    if not isinstance(node, s.Binary) or node.op not in COMPARISONS:
        return False
    parts = [*_parts(node.left), *_parts(node.right)]
    types = {name: column.type for name, column in columns.items()}
    kinds = [types.get(part.name) for part in parts if isinstance(part, s.Attribute)]
    return (
        any(kind is not None and pa.types.is_decimal128(kind) for kind in kinds)
        and any(isinstance(part, s.Binary | s.Unary) for part in parts)
        and all(_computable(part, types) for part in parts)
    )


def _parts(node: s.Expr) -> list[s.Expr]:
    return [node, *(part for child in s.children(node) for part in _parts(child))]


def _computable(part: s.Expr, types: Mapping[str, pa.DataType]) -> bool:
    match part:
        case s.Attribute(name=name):
            kind = types.get(name)
            return kind is not None and (pa.types.is_decimal128(kind) or pa.types.is_signed_integer(kind))
        case s.Literal(value=value, kind=kind):
            return type(value) is int and kind == "int"
        case s.Unary(op=op):
            return op == "-"
        case s.Binary(op=op):
            return op in _ARITHMETIC
    return False


def truth_of(node: s.Binary, columns: Mapping[str, pa.Array], length: int) -> pa.Array:
    """Of each of `length` rows whether a comparison for which `is_exact` holds is true; NULL where a part is NULL."""
    left, right = _value(node.left, columns, length), _value(node.right, columns, length)
    scale, both = max(left.scale, right.scale), left.valid & right.valid
    holds = _RELATIONS[node.op](left.at(scale), right.at(scale))
    return arrow(np.asarray(holds, np.bool_) & both, ~both)


def _value(node: s.Expr, columns: Mapping[str, pa.Array], length: int) -> _Values:
    match node:
        case s.Attribute(name=name):
            return _of_column(columns[name])
        case s.Literal(value=value):
            return _Values(np.full(length, value, object), 0, np.ones(length, np.bool_))
        case s.Unary(operand=operand):
            inner = _value(operand, columns, length)
            return _Values(-inner.units, inner.scale, inner.valid)
        case s.Binary(op=op, left=left, right=right):
            a, b = _value(left, columns, length), _value(right, columns, length)
            scale = a.scale + b.scale if op == "*" else max(a.scale, b.scale)
            units = (a.units, b.units) if op == "*" else (a.at(scale), b.at(scale))
            return _Values(_ARITHMETIC[op](*units), scale, a.valid & b.valid)
    raise AssertionError(f"{node} is not exact")  # pragma: no cover - `is_exact` has refused it


def _of_column(column: pa.Array) -> _Values:
    if not pa.types.is_decimal128(column.type):
        return _Values(numbers(column.cast(pa.int64()), 0).astype(object), 0, valid(column))
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset : column.offset + len(column)]
    low, high = words[:, 0], words[:, 1]
    if (high == low >> 63).all():
        units = low.astype(object)
    else:
        units = high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)
    return _Values(units, column.type.scale, valid(column))
