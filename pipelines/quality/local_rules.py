"""Which rows of a table in this process keep a rule of single rows: Spark's verdict (`quarantine.is_good`), row by row,
or none.

A rule whose meaning for the rows at hand is not certainly Spark's is not judged at all, and no error of Arrow or of
arithmetic gets out: the caller then asks Spark. test_random_rules.py holds both together, for every kind
of rule and every type of column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.errors import TrendlakeError
from cep_core.events.array_types import AnyArray, Bools
from cep_core.events.arrays import numbers, valid
from cep_core.events.normalise import doubles
from cep_core.events.schema import family
from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import Rule
from pipelines.errors import LocalUnsupportedError
from pipelines.quality.local_conditions import rows_meeting
from pipelines.quality.local_documents import DOCUMENT_RULES
from pipelines.quality.local_regex import LINE_ENDS, means_the_same
from pipelines.quality.local_values import EXACT, Value, comparable, whole_array

_UNABLE = (
    LocalUnsupportedError, TrendlakeError, pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError,
)  # fmt: skip


def kept_rows(rule: Rule, table: pa.Table, contract: Contract) -> Bools | None:
    """Which rows keep a rule of single rows, bool; None where only Spark can say. NULLs as `quarantine.is_good`."""
    try:
        if rule.condition is not None:
            families = {item.name: family(item.type) for item in contract.columns}
            return rows_meeting(rule.condition, table, families)
        column = table.column(rule.columns[0])
        if rule.kind == "xml":  # asked of the chunks as they are: by them it is seen that they have been parsed
            return DOCUMENT_RULES.keeping(column, rule.text)
        return _KINDS[rule.kind](rule, whole_array(column))
    except _UNABLE:
        return None


def _not_null(rule: Rule, column: pa.Array) -> Bools:
    return valid(column)


def _in_set(rule: Rule, column: pa.Array) -> Bools:
    return _listed(column, rule.values) | ~valid(column)


def _not_missing(rule: Rule, column: pa.Array) -> Bools:
    there = valid(column)
    return ~(_listed(column, rule.values) | ~there) if None in rule.values else ~(_listed(column, rule.values) & there)


def _listed(column: pa.Array, values: Sequence[Any]) -> Bools:
    """Where a column has one of `values`; of a NULL nothing is said."""
    wanted = [value for value in values if value is not None]
    if _is_number(column.type):
        for value in wanted:
            _refuse_rounded(column, value)
        if pa.types.is_integer(column.type):
            if not all(isinstance(value, int) for value in wanted):
                raise LocalUnsupportedError("whole numbers beside others")
            column, kind = column.cast(pa.int64()), pa.int64()
        else:
            column, kind = doubles(column), pa.float64()
            wanted = [float(value) for value in wanted]
            if 0.0 in wanted and (_signed_zero(np.array(wanted)) or _signed_zero(numbers(column, 0.0))):
                raise LocalUnsupportedError("-0.0: equal to 0.0 in a short list only")
        return numbers(pc.is_in(column, value_set=pa.array(wanted, kind)))
    types: dict[Any, type] = {
        pa.string(): str, pa.bool_(): bool, pa.date32(): date, pa.timestamp("us", "UTC"): datetime,
    }  # fmt: skip
    # A datetime is a date to Python; NULL alone has no type.
    if not wanted or any(type(value) is not types.get(column.type) for value in wanted):
        raise LocalUnsupportedError("values of another type than the column's")
    return numbers(pc.is_in(column, value_set=pa.array(wanted, column.type)))


def _pattern(rule: Rule, column: pa.Array) -> Bools:
    if not pa.types.is_string(column.type) or not means_the_same(rule.text):
        raise LocalUnsupportedError("a regular expression that Java may read otherwise")
    if pc.any(pc.match_substring_regex(column, LINE_ENDS)).as_py():
        raise LocalUnsupportedError("texts of several lines")
    return _unless_null(pc.match_substring_regex(column, rule.text))


def _length(rule: Rule, column: pa.Array) -> Bools:
    if not pa.types.is_string(column.type):
        raise LocalUnsupportedError("the length of what is no text")
    return _within(pc.utf8_length(column).cast(pa.int64()), rule)


def _range(rule: Rule, column: pa.Array) -> Bools:
    if column.type == pa.date32() or column.type == pa.timestamp("us", "UTC"):
        wanted = datetime if pa.types.is_timestamp(column.type) else date
        if any(bound is not None and type(bound) is not wanted for bound in (rule.low, rule.high)):
            raise LocalUnsupportedError("bounds of another type than the column's")
        return _within(column, rule)
    good = np.ones(len(column), np.bool_)
    for part in (replace(rule, high=None), replace(rule, low=None)):  # Spark compares each bound in a type of its own
        bound = part.low if part.high is None else part.high
        if bound is None:
            continue
        _refuse_rounded(column, bound)
        if not pa.types.is_integer(column.type):
            good &= _within(doubles(column), part)
        elif isinstance(bound, int):
            good &= _within(column.cast(pa.int64()), part)
        else:
            _refuse_large(column)
            good &= _within(column.cast(pa.float64()), part)
    return good


def _within(value: pa.Array, rule: Rule) -> Bools:
    """As Spark orders them: a NaN is above every number."""
    good = np.ones(len(value), np.bool_)
    above = numbers(pc.is_nan(value), False) if pa.types.is_floating(value.type) else np.zeros(len(value), np.bool_)
    if rule.low is not None:
        compared = (pc.greater if rule.low_strict else pc.greater_equal)(value, pa.scalar(rule.low, value.type))
        good &= numbers(compared, True) | above
    if rule.high is not None:
        compared = (pc.less if rule.high_strict else pc.less_equal)(value, pa.scalar(rule.high, value.type))
        good &= numbers(compared, True) & ~above
    return good | ~valid(value)


def _multiple(rule: Rule, column: pa.Array) -> Bools:
    divisor: Any = rule.high
    if pa.types.is_decimal(column.type):
        raise LocalUnsupportedError("remainders of decimals")
    _refuse_rounded(column, divisor)
    whole = pa.types.is_integer(column.type)
    kind, dtype = (pa.int64(), np.int64) if whole and isinstance(divisor, int) else (pa.float64(), np.float64)
    if whole and kind == pa.float64():
        _refuse_large(column)
    dividend = numbers(column.cast(kind), 0)
    with np.errstate(invalid="ignore"):  # an infinite value is a multiple of nothing
        good: Bools = np.fmod(dividend, dtype(divisor)) == 0
        return good | ~valid(column)


def _items(rule: Rule, column: pa.Array) -> Bools:
    _refuse_absent(column)
    return _within(pc.list_value_length(column).cast(pa.int64()), rule)


def _distinct_items(rule: Rule, column: pa.Array) -> Bools:
    _refuse_absent(column)
    if not pa.types.is_string(column.type.value_type):
        raise LocalUnsupportedError("lists of other things than texts")
    return np.array([None not in items and len({*items}) == len(items) for items in column.to_pylist()], np.bool_)


_KINDS: dict[str, Callable[[Rule, pa.Array], Bools]] = {
    "not_null": _not_null,
    "not_missing": _not_missing,
    "in_set": _in_set,
    "pattern": _pattern,
    "range": _range,
    "length": _length,
    "multiple": _multiple,
    "items": _items,
    "distinct_items": _distinct_items,
}


def _unless_null(good: pa.Array) -> Bools:
    return numbers(pc.fill_null(good, True))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or kind in (pa.float32(), pa.float64()) or pa.types.is_decimal128(kind))


def _refuse_rounded(column: pa.Array, literal: Any) -> None:
    """Raises LocalUnsupportedError where Spark compares a column of numbers with `literal` otherwise than here."""
    kind = column.type
    if not _is_number(kind) or isinstance(literal, bool) or not isinstance(literal, int | float):
        raise LocalUnsupportedError("a value of another type than the column's")
    digits = (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (0, 0)
    names = {pa.float32(): "float", pa.float64(): "double"}
    of = "decimal" if digits != (0, 0) else names.get(kind, "int")
    if not comparable(Value(of, digits=digits[0], scale=digits[1]), literal):
        raise LocalUnsupportedError("a value that is rounded")


def _signed_zero(values: AnyArray) -> bool:
    return bool(((values == 0) & np.signbit(values)).any())


def _refuse_large(column: pa.Array) -> None:
    ends: dict[str, int | None] = pc.min_max(column).as_py()
    if any(abs(end or 0) > EXACT for end in ends.values()):
        raise LocalUnsupportedError("whole numbers that are no doubles")


def _refuse_absent(column: pa.Array) -> None:
    """Whether the size of a NULL is NULL is a setting of Spark's."""
    if not pa.types.is_list(column.type) or column.null_count:
        raise LocalUnsupportedError("no lists")
