"""Decimals as keys, and compared with one another and with whole numbers, are exact, however many digits they have."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.codes import group_codes, ordered_codes
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.events.schema import key_type
from trendlake.cep_core.expressions.columnar import compare
from trendlake.pipelines.execute.hashing import row_hashes

pytestmark = pytest.mark.random

TIME = pa.timestamp("us", tz="UTC")
NEAR = [Decimal("9007199254740993"), Decimal("9007199254740992")]
"""One float64."""


def events(kind: pa.DataType, values: list[Any], types: list[str] | None = None, **more: pa.Array) -> pa.Table:
    n = len(values)
    return pa.table(
        {
            "event_id": [f"e{i}" for i in range(n)],
            "event_time": pa.array([i * 1_000_000 for i in range(n)], TIME),
            "event_type": pa.array(types or ["S"] * n),
            "acct": pa.array(values, kind),
            **more,
        }
    )


KINDS = [
    pytest.param(pa.decimal128(20, 0), 1, id="decimal(20,0)"),
    pytest.param(pa.decimal128(38, 10), Decimal("1e-10"), id="decimal(38,10)"),
    pytest.param(pa.decimal128(20, 0), -1, id="negative"),
]


@pytest.mark.parametrize(("kind", "times"), KINDS)
def test_groups_of_trends(kind: pa.DataType, times: Any) -> None:
    """Two groups of one event, shown as they are."""
    values = [value * times for value in NEAR]
    query = {"kind": "trends", "pattern": "S+", "within": "1 day", "return": {"n": "COUNT(*)"}}
    actual = evaluate(query | {"group_by": ["acct"]}, events(kind, values))
    assert sorted((row["acct"], row["n"]) for row in actual.to_pylist()) == sorted((value, 1) for value in values)
    (row,) = evaluate(query | {"where": ["[acct]"]}, events(kind, values)).to_pylist()
    assert row["n"] == 2
    encoded = events(kind, values).set_column(3, "acct", pa.array(values, kind).dictionary_encode())
    assert evaluate(query | {"group_by": ["acct"]}, encoded).num_rows == 2


@pytest.mark.parametrize(("kind", "times"), KINDS)
def test_adjacent_conditions(kind: pa.DataType, times: Any) -> None:
    """Equalities and inequalities, split, and of two columns of other scales."""
    values = [value * times for value in NEAR]
    other = pa.array(list(reversed(values)), pa.decimal128(38, 12) if kind.scale else pa.decimal128(38, 3))
    query = {"kind": "trends", "pattern": "S+", "within": "1 day", "return": {"n": "COUNT(*)"}}
    table = events(kind, values, other=other)
    falls, rises = values[0] > values[1], values[0] < values[1]
    for line, more in [
        ("S.acct = NEXT(S).acct", 0),
        ("S.acct != NEXT(S).acct", 1),
        ("S.acct > NEXT(S).acct", int(falls)),
        ("S.acct < NEXT(S).acct", int(rises)),
        ("S.acct = NEXT(S).other", 1),
        ("S.acct != NEXT(S).other", 0),
    ]:
        (row,) = evaluate(query | {"where": [line]}, table).to_pylist()
        assert row["n"] == 2 + more, line
    if not kind.scale:
        with pytest.raises(BadEventsError, match="differ only past the digits of a double"):
            evaluate(query | {"where": ["S.acct = NEXT(S).acct OR S.other > NEXT(S).acct"]}, table)


def test_local_conditions() -> None:
    """Compared with a whole number exactly, with a fraction as the double that the pattern names."""
    query = {"kind": "trends", "pattern": "S s", "within": "1 day", "return": {"n": "COUNT(*)"}}
    table = events(pa.decimal128(20, 0), NEAR)
    for line, n in [("s.acct = 9007199254740993", 1), ("s.acct > 9007199254740992", 1), ("s.acct >= 1.5", 2)]:
        (row,) = evaluate(query | {"where": [line]}, table).to_pylist()
        assert row["n"] == n, line
    table = events(pa.decimal128(38, 10), [Decimal("12.34"), Decimal("12.3400000001")])
    (row,) = evaluate(query | {"where": ["s.acct = 12.34"]}, table).to_pylist()
    assert row["n"] == 1


@pytest.mark.parametrize(("kind", "times"), KINDS)
def test_partitions_of_matches(kind: pa.DataType, times: Any) -> None:
    """Equivalences, and ids."""
    values = [value * times for value in NEAR]
    query = {"kind": "matches", "pattern": "SEQ(A a, B b)", "within": "1 day"}
    table = events(kind, values, ["A", "B"])
    assert evaluate(query, table).num_rows == 1
    assert evaluate(query | {"where": ["[acct]"]}, table).num_rows == 0
    (row,) = evaluate(query, table.drop_columns("event_id").rename_columns({"acct": "event_id"})).to_pylist()
    assert (row["a"], row["b"]) == ([values[0]], [values[1]])


@pytest.mark.parametrize(("kind", "times"), KINDS)
def test_partitions_of_automata(kind: pa.DataType, times: Any) -> None:
    """`partition_by`, shown as it is."""
    values = [value * times for value in NEAR]
    query = {
        "kind": "automaton",
        "start": "q0",
        "final": ["q2"],
        "within": "1 day",
        "partition_by": ["acct"],
        "arcs": [
            {"from": "q0", "to": "q1", "when": "e.event_type = 'A'"},
            {"from": "q1", "to": "q2", "when": "e.event_type = 'B'"},
        ],
    }
    assert evaluate(query, events(kind, values, ["A", "B"])).num_rows == 0
    (row,) = evaluate(query, events(kind, [values[0], values[0]], ["A", "B"])).to_pylist()
    assert row["acct"] == values[0]


def test_short_decimals_stay_doubles() -> None:
    """Up to 15 digits the results keep the type that they had."""
    assert key_type("decimal(15,2)") == pa.float64()
    assert key_type("DECIMAL( 16 , 2 )") == pa.decimal128(16, 2)
    assert key_type("decimal(20)") == pa.decimal128(20, 0)
    assert key_type("decimal") == pa.float64()


_DIGITS = st.integers(-(10**18), 10**18)


@examples(200)
@given(
    st.lists(_DIGITS | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1]) | st.none(), max_size=12), st.integers(0, 6)
)
def test_codes_and_hashes(digits: list[int | None], scale: int) -> None:
    """Codes and the hashes that place keys agree with the values; two scales of one value are equal."""
    values = [None if d is None else Decimal(d).scaleb(-scale) for d in digits]
    long, longer = pa.array(values, pa.decimal128(25, 6)), pa.array(values, pa.decimal128(30, 8))
    column = normalise(long)
    codes = group_codes([column], len(values))
    hashes = row_hashes([long], len(values))
    (ranks, other), _ = ordered_codes(column, normalise(longer))
    assert np.array_equal(ranks, other)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert (codes[i] == codes[j]) == (a == b)
            assert (hashes[i] == hashes[j]) == (a == b)
            if a is not None and b is not None:
                assert (ranks[i] < ranks[j]) == (a < b)
    assert compare("=", column, normalise(longer)).to_pylist() == [None if v is None else True for v in values]
    if digits and scale == 0:
        whole = pa.array(digits, pa.int64())
        assert compare("=", column, whole).to_pylist() == [None if v is None else True for v in values]
