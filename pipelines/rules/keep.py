"""Which rows keep a rule of single rows: the one meaning of a rule, in this process and in Spark's workers.

A verdict depends on the row alone. A NULL keeps every rule but `not_null`, `not_missing` and `row`. Numbers are
compared exactly, but as doubles where one is a double; a NaN is above every number. Conditions have the meaning of the
pattern language (`cep_core.expressions.columnar`), but a NaN is not NULL where they ask; a row for which a condition
cannot be computed, as a whole number would not fit 64 bits, breaks the rule. A text that is not UTF-8 is read with
U+FFFD, but in a set its bytes are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import TextError, TrendlakeError
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.normalise import comparable, doubles, normalise
from trendlake.cep_core.expressions.columnar import evaluate, true_rows
from trendlake.cep_core.language import syntax as s
from trendlake.pipelines.contracts.regular_expressions import LAST_LINE_END, LINE_ENDS, expression_of
from trendlake.pipelines.contracts.rule_values import value_of
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.errors import ContractRuleError
from trendlake.pipelines.rules.documents import DOCUMENT_RULES
from trendlake.pipelines.rules.exact import is_exact, truth_of

Rows: TypeAlias = Any
"""A record batch or a table of Arrow."""
LEAST, MOST = -(1 << 63), (1 << 63) - 1
EXACT = Context(prec=200)
EXACT_DOUBLES = 1 << 53
"""Whole numbers up to here are doubles exactly."""


def keep(rule: Rule, rows: Rows) -> Bools:
    """For each of `rows` whether it keeps a rule of single rows. Raises KeyError for a column that they do not have,
    ContractRuleError for a rule that its column's type does not take."""
    try:
        if rule.condition is not None:
            return _meeting(rule.condition, rows)
        column = rows.column(rule.columns[0])
        if rule.kind == "xml":  # the chunks as they are: the same chunks are parsed once for all rules
            return DOCUMENT_RULES.keeping(column, rule.text)
        if isinstance(column, pa.DictionaryArray):
            return _of_values(rule, column)
        return _KINDS[rule.kind](rule, _whole(column))
    except (pa.ArrowException, TextError) as error:
        raise ContractRuleError(f"rule '{rule.name}' is refused: {error}", place=rule.place) from None


def columns_of(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The columns that rules speak of."""
    names = [
        name for rule in rules for name in (*rule.columns, *(_attributes(rule.condition) if rule.condition else ()))
    ]
    return tuple(dict.fromkeys(names))


def _attributes(condition: s.Expr) -> Iterator[str]:
    return (node.name for node in _nodes(condition) if isinstance(node, s.Attribute))


def _whole(column: Any) -> pa.Array:
    """A column in one piece, of texts with 32-bit offsets."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def _utf_8(array: pa.Array) -> pa.Array:
    """Texts, with U+FFFD for what is not UTF-8, as Java reads them."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        texts = array.cast(pa.binary()).to_pylist()
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in texts], pa.string())
    return array


def _of_values(rule: Rule, column: pa.DictionaryArray) -> Bools:
    """As `keep`, asked once for each different value, and for NULL."""
    values = _whole(column.dictionary)
    good = _KINDS[rule.kind](rule, pa.concat_arrays([values, pa.nulls(1, values.type)]))
    answers: Bools = good[numbers(column.indices, -1)]  # -1: NULL, which is the last
    return answers


def _not_null(rule: Rule, column: pa.Array) -> Bools:
    return valid(column)


def _in_set(rule: Rule, column: pa.Array) -> Bools:
    return _listed(column, rule.values) | ~valid(column)


def _not_missing(rule: Rule, column: pa.Array) -> Bools:
    present = valid(column)
    return ~(_listed(column, rule.values) & present) & (present | (None not in rule.values))


def _listed(column: pa.Array, values: Sequence[Any]) -> Bools:
    """Where a column has one of `values`; a value of another type equals nothing."""
    kind = column.type
    wanted = [value for one in values if (value := value_of(one, kind)) is not None]
    if pa.types.is_decimal(kind):
        listed = np.zeros(len(column), np.bool_)
        for value in wanted:
            listed |= _compared(column, "=", value)
        return listed
    if pa.types.is_integer(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
        wanted = [int(value) for value in wanted if value == math.floor(value) and LEAST <= value <= MOST]
    elif pa.types.is_floating(kind):
        column, kind = pc.add(doubles(column), 0.0), pa.float64()  # -0.0 is 0.0
        wanted = [float(value) + 0.0 for value in wanted]
    elif pa.types.is_string(kind):
        column, kind = column.cast(pa.binary()), pa.binary()
        wanted = [value.encode("utf-8", "surrogatepass") for value in wanted]
    if not wanted:
        return np.zeros(len(column), np.bool_)
    present: Bools = numbers(pc.is_in(column, value_set=pa.array(wanted, kind)))
    return present


def _pattern(rule: Rule, column: pa.Array) -> Bools:
    expression, texts = expression_of(rule.text), _utf_8(column)
    matches = numbers(pc.match_substring_regex(texts, expression.text), True)
    if expression.ends and pc.any(pc.match_substring_regex(texts, LINE_ENDS)).as_py():
        texts = pc.replace_substring_regex(texts, LAST_LINE_END, "", max_replacements=1)
        matches = matches | numbers(pc.match_substring_regex(texts, expression.text), True)
    return matches


def _length(rule: Rule, column: pa.Array) -> Bools:
    return _within(pc.utf8_length(_utf_8(column)), rule)


def _within(column: pa.Array, rule: Rule) -> Bools:
    good = ~valid(column)
    inside = np.ones(len(column), np.bool_)
    if rule.low is not None:
        inside &= _compared(column, ">" if rule.low_strict else ">=", rule.low)
    if rule.high is not None:
        inside &= _compared(column, "<" if rule.high_strict else "<=", rule.high)
    return good | inside


_COMPARISONS = {"=": pc.equal, ">": pc.greater, ">=": pc.greater_equal, "<": pc.less, "<=": pc.less_equal}


def _compared(column: pa.Array, op: str, bound: Any) -> Bools:
    """Where the value of a row has the relation to `bound`; of a NULL False."""
    kind = column.type
    if pa.types.is_integer(kind):
        return _whole_compared(column.cast(pa.int64()), op, bound)
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and isinstance(bound, float)):
        values = doubles(column)
        holds: Bools = numbers(_COMPARISONS[op](values, pa.scalar(float(bound), pa.float64())), False)
        if op in (">", ">="):
            holds = holds | numbers(pc.is_nan(values), False)
        return holds
    if pa.types.is_decimal(kind):
        limit = max(min(bound, 10**38 - 1), 1 - 10**38)
        if limit != bound:  # beyond every decimal
            beyond: Bools = valid(column) & (op != "=") & ((bound > 0) == (op in ("<", "<=")))
            return beyond
        return numbers(_COMPARISONS[op](*comparable([column, _decimals(limit, len(column))])), False)
    return numbers(_COMPARISONS[op](column, pa.scalar(value_of(bound, kind), kind)), False)


def _decimals(value: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(Decimal(value), pa.decimal128(38, 0)), count)


def _whole_compared(column: pa.Array, op: str, bound: int | float) -> Bools:
    """As `_compared`, of int64: `x >= 0.5` is `x >= 1`."""
    if isinstance(bound, float) and math.isinf(bound):
        bound = 2 * MOST if bound > 0 else 2 * LEAST
    elif op in (">=", "<"):
        bound = math.ceil(bound)
    elif op in (">", "<="):
        bound = math.floor(bound)
    if not LEAST <= bound <= MOST:
        return valid(column) & ((bound > 0) == (op in ("<", "<=")))
    return numbers(_COMPARISONS[op](column, pa.scalar(int(bound), pa.int64())), False)


def _multiple(rule: Rule, column: pa.Array) -> Bools:
    """Decimals and whole numbers exactly, by the divisor as it is written; of others the remainder of doubles."""
    divisor: Any = rule.high
    if pa.types.is_integer(column.type) and isinstance(divisor, int):
        values = numbers(column.cast(pa.int64()), 0)
        good: Bools = np.fmod(values, divisor) == 0 if divisor <= MOST else values == 0
    elif pa.types.is_decimal(column.type):
        step, coded = Decimal(repr(divisor)), column.dictionary_encode()
        exact = [EXACT.remainder(value, step) == 0 for value in coded.dictionary.to_pylist()]
        good = np.array([*exact, True], np.bool_)[numbers(coded.indices, len(exact))]
    else:
        with np.errstate(invalid="ignore"):  # an infinite value is a multiple of nothing
            good = np.fmod(numbers(column.cast(pa.float64(), safe=False), 0.0), float(divisor)) == 0
    return good | ~valid(column)


def _items(rule: Rule, column: pa.Array) -> Bools:
    return _within(pc.list_value_length(column), rule)


def _distinct_items(rule: Rule, column: pa.Array) -> Bools:
    if pa.types.is_string(column.type.value_type):  # a text may not be UTF-8
        column = column.cast(pa.list_(pa.binary()))
    lists = column.to_pylist()
    return np.array(
        [items is None or (None not in items and len({*map(repr, items)}) == len(items)) for items in lists], np.bool_
    )


_KINDS: dict[str, Callable[[Rule, pa.Array], Bools]] = {
    "not_null": _not_null,
    "not_missing": _not_missing,
    "in_set": _in_set,
    "pattern": _pattern,
    "range": lambda rule, column: _within(column, rule),
    "length": _length,
    "multiple": _multiple,
    "items": _items,
    "distinct_items": _distinct_items,
}


def _meeting(condition: s.Expr, rows: Rows) -> Bools:
    """Which rows a condition is true of."""
    columns = {name: _whole(rows.column(name)) for name in dict.fromkeys(_attributes(condition))}
    columns = {name: _utf_8(column) if pa.types.is_string(column.type) else column for name, column in columns.items()}
    absent = {
        _absent(name): pc.is_null(column) for name, column in columns.items() if pa.types.is_floating(column.type)
    }
    exact = {_exact(name): column for name, column in columns.items() if _is_exact_number(column.type)}
    normal = {name: normalise(column) for name, column in columns.items()}
    return _true(condition, normal | absent | exact, rows.num_rows)


def _absent(name: str) -> str:
    """The name of the column that says whether `name` is NULL."""
    return f"{name} IS NULL"


def _exact(name: str) -> str:
    """The name of the column that has the numbers of `name` as they are stored."""
    return f"{name} exactly"


def _is_exact_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) or pa.types.is_signed_integer(kind))


def _true(condition: s.Expr, columns: dict[str, pa.Array], length: int) -> Bools:
    """As `_meeting`, of normalised columns. Where the rows together cannot be computed, halves of them are."""
    try:
        arrays = dict(columns)
        rewritten = _rewritten(condition, arrays, length)
        with np.errstate(invalid="ignore"):  # the remainder of an infinite number
            return true_rows(evaluate(rewritten, lambda read: arrays[read.name], length))
    except TrendlakeError:
        if length <= 1:
            return np.zeros(length, np.bool_)
    half = length // 2
    parts = ((0, half), (half, length - half))
    return np.concatenate(
        [_true(condition, {name: column.slice(*part) for name, column in columns.items()}, part[1]) for part in parts]
    )


def _rewritten(node: s.Expr, arrays: dict[str, pa.Array], length: int) -> s.Expr:
    """`log10(x) < 1` -> `y < 1`, where y is a column more of `arrays`: NULL of 0 and less. Patterns have no logarithm.
    `x IS NULL` -> `z`, of a column of doubles: a NaN, which conditions compute with as NULL, is none."""

    def inside(part: s.Expr) -> s.Expr:
        return _rewritten(part, arrays, length)

    match node:
        case s.Unary(op="isnull", operand=s.Attribute(name=name)) if _absent(name) in arrays:
            return s.Attribute("", _absent(name))
        case s.Binary() if is_exact(node, stored := _stored(node, arrays)):
            name = f"comparison {len(arrays)}"
            arrays[name] = truth_of(node, stored, length)
            return s.Attribute("", name)
        case s.Unary(operand=operand):
            return replace(node, operand=inside(operand))
        case s.Binary(left=left, right=right):
            left, right = _as_doubles([inside(left), inside(right)], arrays)
            return replace(node, left=left, right=right)
        case s.In(operand=operand, choices=choices):
            operand, *choices_of_type = _as_doubles([inside(operand), *map(inside, choices)], arrays)
            return replace(node, operand=operand, choices=tuple(choices_of_type))
        case s.Call(function=function, arguments=arguments):
            node = replace(node, arguments=tuple(_as_doubles(list(map(inside, arguments)), arrays)))
            if function != "log10":
                return node
            values = evaluate(node.arguments[0], lambda read: arrays[read.name], length)
            if pa.types.is_null(values.type):
                return s.Literal(None, "null")
            plain = numbers(doubles(values), 0.0)
            name = f"log10 {len(arrays)}"
            arrays[name] = arrow(np.log10(np.where(plain > 0, plain, 1.0)), ~(plain > 0))
            return s.Attribute("", name)
    return node


def _stored(node: s.Expr, arrays: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns of exact numbers that a part of a condition reads, as they are stored."""
    return {name: arrays[_exact(name)] for name in _attributes(node) if _exact(name) in arrays}


def _as_doubles(parts: list[s.Expr], arrays: dict[str, pa.Array]) -> list[s.Expr]:
    """`x < 9007199254740993` -> `x < 9007199254740992.0` where the other side is a double: a whole number beyond 2^53
    is a double there, or no row could be compared."""
    if not any(_is_double(part, arrays) for part in parts):
        return parts
    return [
        replace(part, value=float(part.value), kind="double")
        if isinstance(part, s.Literal)
        and type(part.value) is int
        and part.kind == "int"
        and abs(part.value) > EXACT_DOUBLES
        else part
        for part in parts
    ]


def _is_double(node: s.Expr, arrays: dict[str, pa.Array]) -> bool:
    match node:
        case s.Literal(value=value):
            return isinstance(value, float)
        case s.Attribute(name=name):
            return bool(pa.types.is_floating(arrays[name].type))
        case s.Unary(op="-", operand=operand):
            return _is_double(operand, arrays)
        case s.Binary(op=op, left=left, right=right):
            return op == "/" or (op in "+-*%" and (_is_double(left, arrays) or _is_double(right, arrays)))
        case s.Call(function="abs" | "least" | "greatest" | "coalesce", arguments=arguments):
            return any(_is_double(argument, arrays) for argument in arguments)
    return False


def _nodes(node: s.Expr) -> Iterator[s.Expr]:
    yield node
    for child in s.children(node):
        yield from _nodes(child)
