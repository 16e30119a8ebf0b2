"""FOLD whose instances are runs of neighbours: one pass for all of them gives the sets by definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.algebra import AlgebraTally, Case, disagreement, rows_of
from tests.random.profile import examples
from trendlake.cep_core.algebra.run import fold, runs

pytestmark = pytest.mark.random

GO = (
    "",
    "$2.x > $.x",
    "$2.x <= $.x",
    "$2.y >= $.y",
    "$2.y < $.y",
    "$2.x > $.y",
    "$2.x > $.n AND $2.y <= $.y",
    "$2.s >= $.s",
)
KEEP = ("", "$2.s = $.s", "$2.x > 0", "DUR <= 3 seconds", "$1.x = $2.x AND $1.n > 0", "DUR < 3 seconds AND $2.n = $.n")
COLUMNS = "event_id, x, n, y, s"


@st.composite
def questions(draw: st.DrawFn) -> Case:
    """FOLDs of FOLDs over points; of the events of one type mostly no two share a time."""
    rows = [
        {**row, "time": row["time"] if draw(st.integers(0, 4)) == 0 else at}
        for at, row in enumerate(draw(rows_of(12, wide=False, big=False)))
    ]
    one, two, three = (f"FOLD{{{draw(st.sampled_from(KEEP))}, {draw(st.sampled_from(GO))}, }}" for _ in range(3))
    right = draw(st.sampled_from(("A", "EVENTS")))
    text = f"SELECT {COLUMNS} FROM {right} PUBLISH q SELECT {COLUMNS} FROM q {one} q PUBLISH first "
    more = draw(
        st.sampled_from(
            ("FROM first", f"FROM first {two} q", f"SELECT {COLUMNS} FROM FILTER{{x >= 1}}(first {two} q) {three} q")
        )
    )
    query: dict[str, Any] = {"kind": "algebra", "pattern": text + more}
    query["within"] = draw(st.sampled_from(("3 seconds", "5 seconds", "20 seconds")))
    if draw(st.booleans()):
        query["partition_by"] = ["k"]
    return Case(query, rows, draw(st.permutations(range(len(rows)))))


@examples(150)
@given(questions())
def test_runs(case: Case) -> None:
    assert disagreement(case, AlgebraTally()) == []


def test_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass is used where no two events share a time, and not where two do."""
    taken: list[bool] = []

    def seen(*arguments: Any) -> Any:
        result = runs.runs_of(*arguments)
        taken.append(result is not None)
        return result

    monkeypatch.setattr(fold, "runs_of", seen)
    query = {"kind": "algebra", "pattern": "FROM A FOLD{, $2.x > $.x, } A", "within": "9 seconds"}
    values: dict[str, Any] = {"type": "A", "n": 0, "y": 0.0, "s": "", "b": True, "k": None, "start": None}
    rows = [{**values, "id": f"e{at}", "time": at, "x": at} for at in range(4)]
    assert disagreement(Case(query, rows, [0, 1, 2, 3]), AlgebraTally()) == []
    assert taken == [True] * len(taken)
    assert taken
    taken.clear()
    rows[1]["time"] = 2
    assert disagreement(Case(query, rows, [0, 1, 2, 3]), AlgebraTally()) == []
    assert not taken[0]
