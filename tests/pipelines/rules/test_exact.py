"""Conditions that compute with decimals, against Python's decimals of enough digits."""

from __future__ import annotations

import operator
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.pipelines.contracts.row_conditions import parse_row_condition
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.rules.keep import keep

ENOUGH = Context(prec=400)
TYPES = {
    "a": pa.decimal128(5, 2),
    "b": pa.decimal128(18, 4),
    "c": pa.decimal128(38, 9),
    "d": pa.decimal128(20, 0),
    "k": pa.int32(),
    "n": pa.int64(),
}
RELATIONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC = {"+": ENOUGH.add, "-": ENOUGH.subtract, "*": ENOUGH.multiply}
Tree = Any
"""A column's name, a whole number, ("-", tree) or (operator, tree, tree)."""


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return st.none() | st.integers(-3, 3) | st.integers(-most, most - 1)
    most = 10**kind.precision - 1
    units = st.integers(-30, 30) | st.integers(-most, most)
    return st.none() | units.map(lambda number: ENOUGH.scaleb(Decimal(number), -kind.scale))


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from([*TYPES]) | st.integers(-9, 9),
    lambda inner: st.tuples(st.sampled_from([*ARITHMETIC]), inner, inner) | st.tuples(st.just("-"), inner),
    max_leaves=4,
)


def text(tree: Tree) -> str:
    match tree:
        case (op, inner):
            return f"({op}({text(inner)}))"
        case (op, left, right):
            return f"({text(left)} {op} {text(right)})"
    return f"({tree})"


def value(tree: Tree, row: dict[str, Any]) -> Decimal | None:
    match tree:
        case (_, inner):
            number = value(inner, row)
            return None if number is None else ENOUGH.minus(number)
        case (op, left, right):
            a, b = value(left, row), value(right, row)
            return None if a is None or b is None else ARITHMETIC[op](a, b)
        case str():
            return None if row[tree] is None else Decimal(row[tree])
    return Decimal(tree)


def names(tree: Tree) -> set[str]:
    return {tree} if isinstance(tree, str) else set().union(*map(names, tree[1:])) if isinstance(tree, tuple) else set()


@given(
    TREES,
    st.sampled_from([*RELATIONS]),
    TREES,
    st.lists(st.fixed_dictionaries({name: values(kind) for name, kind in TYPES.items()}), max_size=8),
    st.booleans(),
)
@examples(400)
def test_as_pythons_decimals(left: Tree, relation: str, right: Tree, rows: list[dict[str, Any]], negated: bool) -> None:
    """Every comparison in which a decimal is computed with, of columns of any scale, of NULLs and negated."""
    if not names(left) | names(right) or not (isinstance(left, tuple) or isinstance(right, tuple)):
        return
    if not {"a", "b", "c", "d"} & (names(left) | names(right)):
        return
    condition = f"{text(left)} {relation} {text(right)}"
    condition = f"NOT ({condition})" if negated else condition
    table = pa.RecordBatch.from_pylist(rows, pa.schema(TYPES))
    expected = []
    for row in rows:
        a, b = value(left, row), value(right, row)
        expected.append(a is not None and b is not None and RELATIONS[relation](a, b) is not negated)
    rule = Rule("r", "row", (), text=condition, condition=parse_row_condition(condition))
    assert keep(rule, table).tolist() == expected
    assert keep(rule, table.slice(1)).tolist() == expected[1:]
