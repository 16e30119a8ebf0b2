"""Conditions of two inequalities and NOTs between conditioned events, far beyond enumeration: the kernels against a
plain O(n^2) recurrence in Python's whole numbers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cep_core.trends.test_long_windows import agree, chains
from tests.random.profile import examples
from tests.support.engines import differences, from_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.trends.compile.predecessors import Method, PairPredicate
from trendlake.cep_core.trends.kernels.divide_and_conquer import BLOCK

pytestmark = pytest.mark.random

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

Stream = tuple[list[int], dict[str, list[int | None]]]


def stream(n: int, seed: int, values: int, spread: int) -> Stream:
    """n times, many equal when `spread` is below n; attributes x and y of `values` values, some NULL."""
    rng = np.random.default_rng(seed)
    times = sorted(int(t) for t in rng.integers(0, spread, n))
    columns = {name: [None if v == 0 else int(v) for v in rng.integers(0, values, n)] for name in ("x", "y")}
    return times, columns


def table(times: Sequence[int], kinds: Sequence[str], columns: dict[str, list[int | None]]) -> pa.Table:
    stamps = pa.array([t * 1_000_000 for t in times], pa.timestamp("us", "UTC"))
    return pa.table({"event_time": stamps, "event_type": list(kinds), **columns})


def both(columns: dict[str, list[int | None]], first: str, second: str) -> Callable[[int, int], bool]:
    x, y = columns["x"], columns["y"]

    def follows(v: int, w: int) -> bool:
        cells = (x[v], x[w], y[v], y[w])
        return None not in cells and OPS[first](x[v], x[w]) and OPS[second](y[v], y[w])

    return follows


@pytest.mark.parametrize(("first", "second"), list(itertools.product(OPS, OPS)))
def test_two_inequalities(first: str, second: str) -> None:
    """Few and many blocks, few and many values, ties in time, NULLs."""
    for n, values, spread in ((BLOCK, 9, 3 * BLOCK), (5 * BLOCK + 3, 40, BLOCK), (700, 300, 5000), (900, 7, 400)):
        times, columns = stream(n, n + len(first), values, spread)
        where = [f"S.x {first} NEXT(S).x", f"S.y {second} NEXT(S).y"]
        agree(
            chains(times, both(columns, first, second)),
            {"pattern": "S+", "where": where},
            table(times, "S" * n, columns),
        )


def test_a_band() -> None:
    """BETWEEN is two inequalities on one attribute."""
    n = 800
    times, columns = stream(n, 1, 60, 2000)
    x = columns["x"]

    def follows(v: int, w: int) -> bool:
        a, b = x[v], x[w]
        return a is not None and b is not None and a - 3 <= b <= a + 3

    query = {"pattern": "S+", "where": ["NEXT(S).x BETWEEN S.x - 3 AND S.x + 3"]}
    agree(chains(times, follows), query, table(times, "S" * n, columns))


def test_with_an_equality() -> None:
    """Each value of the equality is divided by itself."""
    n = 900
    times, columns = stream(n, 2, 50, 3000)
    follows = both(columns, "<", ">=")
    g = [int(v) for v in np.random.default_rng(3).integers(0, 4, n)]
    where = ["S.g = NEXT(S).g", "S.x < NEXT(S).x", "S.y >= NEXT(S).y"]
    agree(
        chains(times, lambda v, w: g[v] == g[w] and follows(v, w)),
        {"pattern": "S+", "where": where},
        table(times, "S" * n, columns | {"g": list(g)}),
    )


def test_aggregates_and_windows() -> None:
    """Sums and extremes are carried through the halves; every window and partition is divided by itself."""
    n, within, slide = 600, 250, 100
    times, columns = stream(n, 4, 12, 700)
    follows = both(columns, "<=", "<")
    g = [int(v) for v in np.random.default_rng(5).integers(0, 2, n)]
    query = {
        "pattern": "S+",
        "where": ["[g]", "S.x <= NEXT(S).x", "S.y < NEXT(S).y"],
        "return": {"n": "COUNT(*)", "members": "COUNT(S)", "top": "MAX(S.x)", "low": "MIN(S.y)"},
        "group_by": ["g"],
        "within": f"{within} seconds",
        "slide": f"{slide} seconds",
    }
    rows = evaluate(query, table(times, "S" * n, columns | {"g": list(g)})).to_pylist()
    actual = {(row["g"], int(row["window_start"].timestamp())): row for row in rows}
    seen = 0
    for start in range(-300, 800, slide):
        for group in range(2):
            inside = [i for i in range(n) if start <= times[i] < start + within and g[i] == group]
            trends: dict[int, int] = {}
            members: dict[int, int] = {}
            for w in inside:
                before = [v for v in trends if times[v] < times[w] and follows(v, w)]
                trends[w] = 1 + sum(trends[v] for v in before)
                members[w] = trends[w] + sum(members[v] for v in before)
            if inside:
                seen += 1
                row = actual[group, start]
                assert (row["n"], row["members"]) == (sum(trends.values()), sum(members.values()))
                assert row["top"] == max(v for i in inside if (v := columns["x"][i]) is not None)
                assert row["low"] == min(v for i in inside if (v := columns["y"][i]) is not None)
    assert seen == len(actual) > 10


PAIRS = (
    ("S+", ["S.x < NEXT(S).x", "S.y >= NEXT(S).y"]),
    ("S+", ["[g]", "S.x <= NEXT(S).y", "S.y < NEXT(S).x"]),
    ("S+", ["S.g = NEXT(S).g", "S.x > NEXT(S).x", "S.y <= NEXT(S).x"]),
    ("SEQ(S+, T)+", ["S.x < NEXT(S).x", "S.y >= NEXT(S).y", "S.x > NEXT(T).x", "S.y <= NEXT(T).y"]),
    ("SEQ(S, NOT SEQ(T, S), T)+", ["S.x < NEXT(T).x"]),
)


@st.composite
def large_streams(draw: st.DrawFn) -> pa.Table:
    """Up to ten blocks of events, of few values or many, many of one time or none, NULLs, NaNs and infinities."""
    n = draw(st.sampled_from([1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, 300, 600]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from([2, 9, 1000]))
    x, y = (rng.integers(0, values, n).astype(np.float64) for _ in range(2))
    for column, odd in ((x, np.nan), (y, np.nan), (x, np.inf), (y, -np.inf)):
        column[rng.random(n) < draw(st.sampled_from([0.0, 0.1]))] = odd
    times = np.sort(rng.integers(0, draw(st.sampled_from([5, n, 10 * n])), n)) * 1_000_000
    return pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "event_type": rng.choice(["S", "S", "T"], n).tolist(),
            "x": pa.array(x, mask=rng.random(n) < 0.05),
            "y": y,
            "g": rng.integers(0, 3, n),
        }
    )


@examples(100)
@given(large_streams(), st.sampled_from(PAIRS), st.sampled_from(["1 day", "200 seconds"]), st.booleans())
def test_as_pair_by_pair(events: pa.Table, pattern: tuple[str, list[str]], within: str, sums: bool) -> None:
    """Two states and two divides too; a NOT of several events, whose bound on time is the second inequality."""
    returned = {"n": "COUNT(*)"} | ({"s": "COUNT(S)", "sum": "SUM(S.g)", "low": "MIN(S.x)"} if sums else {})
    query = {"pattern": pattern[0], "where": pattern[1], "return": returned, "within": within}
    ours = from_table(evaluate(query, events))
    with patch.object(PairPredicate, "method_with", lambda *_: Method.SCAN):
        theirs = from_table(evaluate(query, events))
    assert differences(theirs, ours) == []


@pytest.mark.parametrize("negated", ["C", "SEQ(C, D)"])
@pytest.mark.parametrize(
    "where", [[], ["A.x < NEXT(B).x"], ["A.x < NEXT(B).x", "A.y >= NEXT(B).y"], ["A.x = NEXT(B).x"]]
)
def test_a_not_between_is_a_condition(negated: str, where: list[str]) -> None:
    """`SEQ(A, NOT N, B)+`: the latest start of an N that ended before B bounds the time of A."""
    for n, rare in ((150, 0.3), (900, 0.05)):
        times, columns = stream(n, n, 20, 2 * n)
        rng = np.random.default_rng(n)
        kinds = [str(k) for k in rng.choice(["A", "B", "C", "D"], n, p=[0.5 - rare, 0.5 - rare, rare, rare])]

        def latest(w: int, kinds: list[str] = kinds, times: list[int] = times) -> int:
            """The latest start of an N that ended before w; -1 when none has."""
            starts = [-1]
            for c in range(w):
                if kinds[c] == "C":
                    ends = [c] if negated == "C" else [d for d in range(w) if kinds[d] == "D" and times[d] > times[c]]
                    starts += [times[c] for d in ends if times[d] < times[w]]
            return max(starts)

        def conditions(v: int, w: int, columns: dict[str, list[int | None]] = columns) -> bool:
            (a, b), (c, d) = ((columns[name][v], columns[name][w]) for name in ("x", "y"))
            said = (a is not None and b is not None, c is not None and d is not None)
            for text in where:
                if "x <" in text and not (said[0] and a < b):  # type: ignore[operator]
                    return False
                if "x =" in text and not (said[0] and a == b):
                    return False
                if "y >=" in text and not (said[1] and c >= d):  # type: ignore[operator]
                    return False
            return True

        counts = [0] * n
        for w in range(n):
            earlier = [v for v in range(w) if times[v] < times[w]]
            if kinds[w] == "A":
                counts[w] = 1 + sum(counts[v] for v in earlier if kinds[v] == "B")
            elif kinds[w] == "B":
                bound = latest(w)
                counts[w] = sum(
                    counts[v] for v in earlier if kinds[v] == "A" and times[v] >= bound and conditions(v, w)
                )
        expected = sum(count for count, kind in zip(counts, kinds, strict=True) if kind == "B")
        query = {"pattern": f"SEQ(A, NOT {negated}, B)+", "where": where}
        agree(expected, query, table(times, kinds, columns))
