"""skip_till_next_match on streams far beyond enumeration, where what follows may never come: the kernels against a
plain recurrence over the pairs that its definition names."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from tests.cep_core.trends.test_divide_and_conquer import table
from tests.reference.trends.shape import shape_of, spelled_out
from trendlake.cep_core import evaluate
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern

pytestmark = pytest.mark.random

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


def trends_by_sets(pattern: str, times: list[int], kinds: list[str], follows: Callable[[int, int], bool]) -> int:
    """Trends of a pattern without NOT whose types have a variable each, counted by the event and the set of positions
    at which a derivation is still allowed: the pairs of a trend decide the set."""
    whole = spelled_out(parse_pattern(pattern), count())
    shape = shape_of(whole)
    after = {p: {q for before, q in shape.follows if before == p} for p in s.atoms(whole)}
    counts: list[Counter[frozenset[s.Atom]]] = []
    for w, kind in enumerate(kinds):
        counter: Counter[frozenset[s.Atom]] = Counter()
        if begins := frozenset(p for p in shape.first if p.type_name == kind):
            counter[begins] += 1
        for v in range(w):
            if not (times[v] < times[w] and follows(v, w)):
                continue
            between = {kinds[u] for u in range(v + 1, w) if times[v] < times[u] < times[w] and follows(v, u)}
            for positions, number in counts[v].items():
                free = {p for p in positions if not any(q.type_name in between for q in after[p])}
                if reached := frozenset(q for p in free for q in after[p] if q.type_name == kind):
                    counter[reached] += number
        counts.append(counter)
    return sum(number for counter in counts for positions, number in counter.items() if positions & shape.last)


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(C, A{2}, B)",
        "SEQ(A{1,2}, A, B)",
        "SEQ(A{1,3}, A?, B{1,2})",
        "SEQ(A{2,}, B)",
        "(SEQ(A+, B)){2,3}",
        "SEQ((SEQ(A, B?)){1,3}, A, C)",
        "SEQ(A+, B) OR SEQ(A+, C) OR SEQ(A, A, A)",
        "(A OR B){2,4}",
    ],
)
@pytest.mark.parametrize("op", ["<", "=", None])
def test_positions_on_longer_streams(pattern: str, op: str | None) -> None:
    """Variables at several positions, with and without a condition on pairs that begin with an A."""
    rng = np.random.default_rng(len(pattern))
    times = sorted(int(t) for t in rng.integers(0, 200, 150))
    x = [None if v == 0 else int(v) for v in rng.integers(0, 6, 150)]
    kinds = [str(k) for k in rng.choice(["A", "A", "B", "C", "D"], 150)]

    def follows(v: int, w: int) -> bool:
        a, b = x[v], x[w]
        return op is None or kinds[v] != "A" or (a is not None and b is not None and OPS[op](a, b))

    followers = {w.variable for v, w in shape_of(parse_pattern(pattern)).follows if v.variable == "A"}
    query = {
        "pattern": pattern,
        "where": [f"A.x {op} NEXT({w}).x" for w in sorted(followers)] if op else [],
        "select": "skip_till_next_match",
        "within": "3650 days",
        "return": {"n": "COUNT(*)"},
    }
    rows = evaluate(query, table(times, kinds, {"x": x})).to_pylist()
    expected = trends_by_sets(pattern, times, kinds, follows)
    assert expected > 0
    assert [int(row["n"]) for row in rows] == [expected]
