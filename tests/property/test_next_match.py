"""skip_till_next_match on streams far beyond enumeration, where what follows may never come: the kernels against a
plain recurrence over the pairs that its definition names."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from cep_core import evaluate
from tests.property.test_divide import table

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


def trends(times: list[int], kinds: list[str], follows: Callable[[int, int], bool]) -> int:
    """`SEQ(A+, B)`: A may be followed by A or B, only by those of the first time at which one could be."""
    n = len(times)
    counts = [0] * n
    for v in range(n):
        counts[v] += kinds[v] == "A"
        if kinds[v] != "A":
            continue
        could = [u for u in range(n) if times[u] > times[v] and kinds[u] in "AB" and follows(v, u)]
        for w in could:
            if times[w] == times[could[0]]:
                counts[w] += counts[v]
    return sum(count for count, kind in zip(counts, kinds, strict=True) if kind == "B")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("second", [None, "<", "="])
@pytest.mark.parametrize(("n", "values", "spread"), [(60, 5, 40), (500, 400, 900), (700, 12, 5000)])
def test_linked_to_the_first_that_could_follow(op: str, second: str | None, n: int, values: int, spread: int) -> None:
    """One inequality or equality, with another condition or without; ties in time, NULLs."""
    rng = np.random.default_rng(n + values)
    times = sorted(int(t) for t in rng.integers(0, spread, n))
    x = [None if v == 0 else int(v) for v in rng.integers(0, values, n)]
    y = [int(v) for v in rng.integers(0, 4, n)]
    kinds = [str(k) for k in rng.choice(["A", "B", "C"], n)]

    def follows(v: int, w: int) -> bool:
        a, b = x[v], x[w]
        return a is not None and b is not None and OPS[op](a, b) and (second is None or OPS[second](y[v], y[w]))

    where = [f"A.x {op} NEXT({w}).x" for w in "AB"]
    if second:
        where += [f"A.y {second} NEXT({w}).y" for w in "AB"]
    query = {
        "pattern": "SEQ(A+, B)",
        "where": where,
        "select": "skip_till_next_match",
        "within": "3650 days",
        "return": {"n": "COUNT(*)"},
    }
    rows = evaluate(query, table(times, kinds, {"x": x, "y": list(y)})).to_pylist()
    expected = trends(times, kinds, follows)
    assert [int(row["n"]) for row in rows] == ([expected] if expected else [])
