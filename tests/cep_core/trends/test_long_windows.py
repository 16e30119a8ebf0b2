"""Windows far too long to enumerate: the kernels against a plain O(n^2) recurrence in Python's whole numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trendlake.cep_core import evaluate

pytestmark = pytest.mark.random

Follows = Callable[[int, int], bool]


def table(kinds: Sequence[str], x: Sequence[Any], times: Sequence[int]) -> pa.Table:
    stamps = pa.array([t * 1_000_000 for t in times], pa.timestamp("us", "UTC"))
    return pa.table({"event_time": stamps, "event_type": list(kinds), "x": pa.array(list(x))})


def chains(times: Sequence[int], follows: Follows) -> int:
    """How many non-empty chains of events there are in which each pair of neighbours `follows`."""
    counts: list[int] = []
    for w in range(len(times)):
        counts.append(1 + sum(counts[v] for v in range(w) if times[v] < times[w] and follows(v, w)))
    return sum(counts)


def agree(expected: int, query: Mapping[str, Any], events: pa.Table) -> None:
    (row,) = evaluate(query | {"return": {"n": "COUNT(*)"}, "within": "3650 days"}, events).to_pylist()
    assert row["n"] == (expected if expected < 10**38 else None)
    assert math.isclose(row["n_log10"], math.log10(expected), rel_tol=1e-9)


OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("n", "values"), [(40, 40), (300, 7), (300, 1000), (900, 40), (1500, 3000)])
def test_one_condition(op: str, n: int, values: int) -> None:
    """Trees of one block and of several, equal prices, ties in time, NULLs."""
    rng = np.random.default_rng(n * values)
    x = [None if v == 0 else int(v) for v in rng.integers(0, values, n)]
    times = sorted(int(t) for t in rng.integers(0, 2 * n, n))

    def follows(v: int, w: int) -> bool:
        return x[v] is not None and x[w] is not None and OPS[op](x[v], x[w])

    agree(chains(times, follows), {"pattern": "S+", "where": [f"S.x {op} NEXT(S).x"]}, table("S" * n, x, times))


@pytest.mark.parametrize("n", [50, 700])
def test_equality_and_inequality(n: int) -> None:
    """A tree for each value of the equality, in one pass."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, 300, n)
    agree(
        chains(range(n), lambda v, w: bool(x[v] % 5 == x[w] % 5 and x[v] < x[w])),
        {"pattern": "S+", "where": ["S.x % 5 = NEXT(S).x % 5", "S.x < NEXT(S).x"]},
        table("S" * n, x.tolist(), range(n)),
    )


def test_small_lineages_outgrow_large_ones() -> None:
    """2^2000 trends among the low prices; then 2^5000 among higher ones that none of the low may precede: one exponent
    for all would lose the second lineage's beginning."""
    low, high = 2000, 5000
    x = [1] * low + [2] * high
    expected = 2**low - 1 + 2**high - 1
    agree(expected, {"pattern": "S+", "where": ["S.x >= NEXT(S).x"]}, table("S" * (low + high), x, range(low + high)))


def test_many_magnitudes_side_by_side() -> None:
    """Blocks of ranks whose sums lie hundreds of digits apart."""
    rng = np.random.default_rng(5)
    n = 3000
    x = [int(v) for v in np.sort(rng.integers(0, 500, n))[::-1]]
    for i in range(0, n, 7):
        x[i] = int(rng.integers(0, 500))
    agree(
        chains(range(n), lambda v, w: x[v] >= x[w]),
        {"pattern": "S+", "where": ["S.x >= NEXT(S).x"]},
        table("S" * n, x, range(n)),
    )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [60, 1200, 20_000])
def test_running_totals(n: int, tied: bool) -> None:
    """`SEQ(A+, B)+` by its own recurrence: a is what ends in A, b what ends in B."""
    rng = np.random.default_rng(n)
    kinds = [("A", "B")[int(k)] for k in rng.integers(0, 2, n)]
    times = [i // 3 if tied else i for i in range(n)]
    a = b = 0
    for moment in range(times[-1] + 1):
        types = [kinds[i] for i in range(3 * moment, min(n, 3 * moment + 3))] if tied else [kinds[moment]]
        fresh_a, fresh_b = types.count("A") * (1 + a + b), types.count("B") * a
        a, b = a + fresh_a, b + fresh_b
    agree(b, {"pattern": "SEQ(A+, B)+"}, table(kinds, [0] * n, times))


@pytest.mark.parametrize(("within", "slide"), [(40, 3), (200, 7), (90, 90), (30, 41)])
@pytest.mark.parametrize("where", [["[g]", "S.x > NEXT(S).x"], ["[g]"]])
def test_overlapping_windows_share_a_pass(within: int, slide: int, where: list[str]) -> None:
    """Each window of each group, by the recurrence on its own events; ties, gaps in time, and sums beside counts."""
    rng = np.random.default_rng(within)
    n = 500
    times = np.sort(rng.integers(0, 700, n) + 300 * (rng.integers(0, 2, n)))
    x, g = rng.integers(0, 30, n), rng.integers(0, 3, n)
    stamps = pa.array(times * 1_000_000, pa.timestamp("us", "UTC"))
    events = pa.table({"event_time": stamps, "event_type": ["S"] * n, "x": x, "g": g})
    query = {
        "pattern": "S+",
        "where": where,
        "group_by": ["g"],
        "return": {"n": "COUNT(*)", "events": "COUNT(S)"},
        "within": f"{within} seconds",
        "slide": f"{slide} seconds",
    }
    rows = {(row["g"], int(row["window_start"].timestamp())): row for row in evaluate(query, events).to_pylist()}
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for j in range(-within // slide - 1, 1100 // slide):
        for group in range(3):
            inside = np.flatnonzero((times >= j * slide) & (times < j * slide + within) & (g == group))
            trends, members = [], []
            for w in range(len(inside)):
                before = [
                    v
                    for v in range(w)
                    if times[inside[v]] < times[inside[w]] and (len(where) == 1 or x[inside[v]] > x[inside[w]])
                ]
                trends.append(1 + sum(trends[v] for v in before))
                members.append(trends[-1] + sum(members[v] for v in before))
            if len(inside):
                expected[group, j * slide] = (sum(trends), sum(members))
    assert rows.keys() == expected.keys()
    for key, counts in expected.items():
        for name, count in zip(("n", "events"), counts, strict=True):
            assert rows[key][name] == (count if count < 10**38 else None), key
            assert math.isclose(rows[key][f"{name}_log10"], math.log10(count), rel_tol=1e-9)
