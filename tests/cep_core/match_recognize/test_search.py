"""The compiled search finds the matches of the search in Python, after the same steps, and with the same errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.random.profile import examples
from tests.random.row_searches import Case, outcome, rows_of_case, searches
from trendlake.cep_core.match_recognize.run.forward import matches_by_search
from trendlake.cep_core.match_recognize.run.local import hopeful
from trendlake.cep_core.match_recognize.run.matches import searched
from trendlake.cep_core.match_recognize.run.run import matches_of

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")


@pytest.mark.random
@pytest.mark.more_in_chaos
@examples(1_200)
@given(searches())
def test_the_searches_agree(case: Case) -> None:
    plan = case.plan()
    rows = rows_of_case(case, plan)
    assert outcome(lambda: matches_of(plan, rows)) == outcome(lambda: searched(plan, rows, hopeful(plan, rows)))


def case_of(define: str, pattern: str = "A+ B", rows: int = 200, limit: int = 1_000_000, **more: Any) -> Case:
    random = np.random.default_rng(1)
    text = f"SELECT * FROM trades MATCH_RECOGNIZE (ORDER BY event_time PATTERN ({pattern}) DEFINE {define})"
    fixed = {"type": "T", "sym": "u", "big": 1, "wide": 0.5, "d": None, "long": None, "b": True, "day": None} | more
    cells = [
        {"x": int(x), "y": float(y) / 10, "s": "ab"[int(s)]} | fixed | {"id": f"e{at:06}", "time": at}
        for at, (x, y, s) in enumerate(random.integers(0, (10, 100, 2), (rows, 3)))
    ]
    return Case(text, tuple(cells), limit, None)


COMPILED = [
    "A AS SUM(x) < 30, B AS x > PREV(x)",
    "A AS SUM(A.y) < 30 AND AVG(A.y) > 2, B AS x > AVG(A.x)",
    "A AS COUNT(*) < 5, B AS COUNT(A.*) > 2",
    "B AS x > FIRST(A.x) AND y > LAST(A.y, 1)",
    "B AS NEXT(LAST(A.x, 1), 2) > 5 AND PREV(FIRST(x, 2)) < 5",
    "B AS MIN(A.y) < 1 AND MAX(A.x) > 7 AND ANY_VALUE(A.s) = 'a'",
    "A AS BOOL_AND(b) AND UPPER(FIRST(s)) = 'A', B AS LAST(CLASSIFIER(), 2) = 'A'",
    "A AS MATCH_NUMBER() < 5 AND x < 8",
]
"""Conditions that the kernel asks."""
NOT_COMPILED = [
    "B AS COUNT(DISTINCT A.x) > 2",
    "B AS CASE WHEN FIRST(A.x) > 2 THEN x > 2 ELSE x < 2 END",
    "B AS MAX(CLASSIFIER()) = 'B'",
    "B AS FIRST(A.x, 70) > 2",
    "B AS PREV(CLASSIFIER(A)) = 'A'",
]


@pytest.mark.parametrize("define", [*COMPILED, *NOT_COMPILED])
def test_what_is_compiled(define: str) -> None:
    """And that both searches agree over many rows."""
    case = case_of(define)
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    fast = matches_by_search(plan, rows, can)
    assert (fast is None) == (define in NOT_COMPILED)
    wanted = outcome(lambda: searched(plan, rows, can))
    assert outcome(lambda: matches_of(plan, rows)) == wanted
    if fast is not None:
        assert len(fast.start) > 0


@pytest.mark.parametrize(
    "more",
    [{"big": 2**62}, {"wide": 1e300, "y": 1e-300}, {"wide": float("inf")}, {"wide": 5e-324}],
    ids=["beyond 64 bits", "far apart", "infinite", "tiny"],
)
def test_numbers_that_do_not_fit(more: Mapping[str, Any]) -> None:
    """They are searched in Python, which says what is wrong, if anything is."""
    column = "big" if "big" in more else "wide"
    case = case_of(f"A AS SUM(A.{column} + A.y * 0) > 0, B AS SUM({column}) > 0", rows=20, **more)
    if column == "big":
        case = case_of("A AS SUM(A.big) > 0", rows=20, **more)
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    assert matches_by_search(plan, rows, can) is None
    assert outcome(lambda: matches_of(plan, rows)) == outcome(lambda: searched(plan, rows, can))


@pytest.mark.parametrize(
    ("condition", "whole", "real"),
    [
        ("big > FIRST(A.wide)", 2**53 + 1, 2.0**53),
        ("FIRST(A.wide) < big", 2**53 + 1, 2.0**53),
        ("big <> FIRST(A.wide)", 2**53 + 1, 2.0**53),
        ("NOT big = FIRST(A.wide)", -(2**53) - 1, -(2.0**53)),
        ("FIRST(A.wide) NOT IN (big, 1)", 2**53 + 1, 2.0**53),
        ("SUM(B.big) < FIRST(A.wide)", 2**63 - 1, 2.0**63),
        ("SUM(B.big) >= FIRST(A.wide)", -(2**63), -(2.0**63)),
        ("FIRST(A.wide) > big", -(2**63), -0.5),
        ("big < FIRST(A.wide)", 2, 2.5),
        ("big > FIRST(A.wide)", -2, -2.5),
        ("FIRST(A.wide) <= big", 3, 2.5),
    ],
)
def test_whole_numbers_are_compared_with_doubles_as_they_are(condition: str, whole: int, real: float) -> None:
    """Neither is rounded, in both searches."""
    case = case_of(f"B AS {condition}", "A B", rows=4, big=whole, wide=real)
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    fast = matches_by_search(plan, rows, can)
    assert fast is not None
    assert (
        outcome(lambda: fast) == outcome(lambda: searched(plan, rows, can)) == ([0, 2], [1, 2], [0, 2, 4], [0, 1] * 2)
    )


def test_many_places() -> None:
    """Of more than 64 places, whose bits take several words; and more failed ways than there is memory for at first."""
    case = case_of("A AS SUM(A.x) < 200, B AS x > 8 AND COUNT(A.*) > 20, C AS SUM(A.x) > 300", "(A | B){2,40} C?")
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    assert can is not None
    assert can.shape[1] == 2
    fast = matches_by_search(plan, rows, can)
    assert fast is not None
    assert outcome(lambda: fast) == outcome(lambda: searched(plan, rows, can))


@pytest.mark.parametrize("limit", [1, 50, 3_000, 100_000])
def test_steps_are_the_same(limit: int) -> None:
    """Equal sums freely chosen: the search that takes too long ends at one row in both."""
    define = "A AS SUM(A.x) <= 40, B AS SUM(B.x) <= 40, C AS SUM(A.x) = 40 AND SUM(B.x) = 40 AND x = 9 AND y > 9.8"
    case = case_of(define, "(A | B)+ C", rows=60, limit=limit)
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    assert outcome(lambda: matches_of(plan, rows)) == outcome(lambda: searched(plan, rows, can))


@pytest.mark.long
def test_counts_that_are_compared_with_constants_stop() -> None:
    """`COUNT(A.*) > 3` tells five numbers of rows apart, so that a search takes no square of its length."""
    case = case_of("A AS x < 8, C AS COUNT(A.*) > 3 AND COUNT(B.x) >= 2 AND SUM(x) > 10000", "(A | B)+ C", 600, 40_000)
    plan = case.plan()
    rows = rows_of_case(case, plan)
    can = hopeful(plan, rows)
    wanted = outcome(lambda: searched(plan, rows, can))
    assert wanted == ([], [], [0], [])
    assert outcome(lambda: matches_of(plan, rows)) == wanted
