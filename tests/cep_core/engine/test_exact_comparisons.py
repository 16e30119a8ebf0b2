"""A whole number that no double holds, compared with a double: as it is, or refused; never as its neighbour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import BadEventsError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
AT_LEAST = ("=", "<", "<=", ">", ">=")
NUMBERS = st.sampled_from([2**53 + step for step in range(-2, 4)] + [2**63 - 1, 2**63 - 512, 3, 0])
SMALL = st.integers(-(2**53), 2**53)

MATCHES = "{name: x, kind: matches, source: s, pattern: 'SEQ(A a, B b)', where: ['%s'], within: 1 day}\n"
ALGEBRA = "{name: x, kind: algebra, source: s, pattern: 'SELECT event_id_1 AS one FROM A NEXT{%s} B', within: 1 day}\n"
FILTER = "{name: x, kind: algebra, source: s, pattern: 'SELECT event_id FROM FILTER{big %s %s}(A)', within: 1 day}\n"
AUTOMATON = """
name: x
kind: automaton
source: s
within: 1 day
register: {big: {type: bigint, init: 0}, wide: {type: double, init: 0}}
start: q0
final: [q2]
arcs:
  - {from: q0, to: q1, when: "e.event_type = 'A'", set: {big: e.big, wide: e.wide}}
  - {from: q1, to: q2, when: "e.event_type = 'B' AND %s"}
"""


def events(big: int, wide: float) -> pa.Table:
    """An A and a B a second later, each with both numbers."""
    return pa.table(
        {
            "event_id": ["1", "2"],
            "event_time": [BEGIN, BEGIN + timedelta(seconds=1)],
            "event_type": ["A", "B"],
            "big": pa.array([big] * 2, pa.int64()),
            "wide": pa.array([wide] * 2, pa.float64()),
        }
    )


def meant(big: int, op: str, wide: float) -> bool:
    """By Python, whose comparisons of whole numbers with doubles are exact."""
    return {"=": big == wide, "<": big < wide, "<=": big <= wide, ">": big > wide, ">=": big >= wide}[op]


def rows(query: str, big: int, wide: float) -> int:
    """How many the query gives."""
    result: Any = evaluate(query, events(big, wide))
    return len(result)


@examples(60)
@given(NUMBERS, st.sampled_from([-1, 1]), NUMBERS, st.sampled_from(AT_LEAST))
def test_exact_where_it_is_remembered(size: int, sign: int, near: int, op: str) -> None:
    """Kinds matches and automaton, either number remembered."""
    big, wide = sign * size, float(sign * near)
    expected = int(meant(big, op, wide))
    assert rows(MATCHES % f"a.big {op} b.wide", big, wide) == expected
    turned = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
    assert rows(MATCHES % f"a.wide {turned} b.big", big, wide) == expected
    assert rows(AUTOMATON % f"big {op} e.wide", big, wide) == expected
    assert rows(AUTOMATON % f"wide {turned} e.big", big, wide) == expected


@examples(60)
@given(NUMBERS, st.sampled_from([-1, 1]), NUMBERS, st.sampled_from(AT_LEAST))
def test_algebra(size: int, sign: int, near: int, op: str) -> None:
    """Exact, or refused where it sorts or searches."""
    big, wide = sign * size, float(sign * near)
    try:
        actual = rows(ALGEBRA % f"$1.big {op} $2.wide", big, wide)
    except BadEventsError:
        assert abs(big) > 2**53
    else:
        assert actual == int(meant(big, op, wide))
    # neither side is a column by itself, so that nothing is sorted
    assert rows(ALGEBRA % f"$1.big + 0 * $2.big {op} $2.wide + 0 * $1.wide", big, wide) == int(meant(big, op, wide))


@pytest.mark.parametrize("op", AT_LEAST)
@examples(30)
@given(st.one_of(SMALL, NUMBERS), st.floats(-(2.0**54), 2.0**54))
def test_filters(op: str, big: int, bound: float) -> None:
    """A column of whole numbers with a literal that has a fraction."""
    text = f"{bound:.3f}"
    try:
        actual = rows(FILTER % (op, text), big, 0.0)
    except BadEventsError:
        assert abs(big) > 2**53
    else:
        assert actual == int(meant(big, op, float(text)))
