"""Patterns over the same rows run together, and give the rows that each gives alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cep_core.match_recognize.test_forest import ticks
from tests.support.row_patterns import rows_of
from trendlake.cep_core import compile_query, run_plan, run_plans
from trendlake.cep_core.errors import SearchTooLongError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.match_recognize.run.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")

BEGIN = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY sym ORDER BY event_time MEASURES COUNT(*) AS n, SUM(B.x) AS total "
)
TEXTS = [
    "PATTERN (A B+) DEFINE B AS x < PREV(x, 2) + $k)",
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) DEFINE B AS SUM(x) < $k)",
    "PATTERN ((A | B){2,3}) DEFINE B AS x < FIRST(A.x + $k) AND CLASSIFIER() = 'B')",
]


def query(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "match_recognize", "pattern": BEGIN + text, **more}


@pytest.mark.parametrize("text", TEXTS, ids=["local", "of the start", "registers"])
def test_a_family_has_the_rows_of_its_members(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ticks(300)
    schema = schema_of(table)
    family = compile_query(query(text, for_each={"k": [0, 3, 5, 40, 7]}), schema)
    ordered = 0
    by_itself = Rows._ordered

    def counted(rows: Rows, *keys: Any) -> Any:
        nonlocal ordered
        ordered += 1
        return by_itself(rows, *keys)

    monkeypatch.setattr(Rows, "_ordered", counted)
    rows = rows_of(run_plan(family, table))
    assert ordered == 1
    alone = []
    for k in (0, 3, 5, 40, 7):
        plan = compile_query(query(text.replace("$k", str(k))), schema)
        alone += [{"k": k, **row} for row in rows_of(run_plan(plan, table))]
    assert rows
    assert sorted(map(str, rows)) == sorted(map(str, alone))


def test_an_error_is_of_the_pattern_that_has_it() -> None:
    table = ticks(100)
    limits = (1_000, 2, 1_000)
    text = TEXTS[1].replace("$k", "1000")
    plans = [compile_query(query(text, limit_per_start=limit), schema_of(table)) for limit in limits]
    answers = dict(run_plans(plans, table))
    assert isinstance(answers[1], SearchTooLongError)
    for number in (0, 2):
        assert answers[number].equals(run_plan(plans[number], table))
