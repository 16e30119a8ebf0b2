"""SKIP TO NEXT ROW: matches from all rows at once are those that are followed one by one, with the same measures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given

from tests.random.profile import examples
from tests.random.row_patterns import TYPES, Case, cases
from tests.support.row_patterns import table_of
from trendlake.cep_core import compile_query
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.forest import Forest, matches_as_forest
from trendlake.cep_core.match_recognize.run.results import result_of
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.run import matches_of

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")


def same_as_followed(plan: RowPatternPlan, table: pa.Table) -> Forest | None:
    """The forest, whose rows are compared with those of matches that are followed."""
    rows = Rows(plan, Columns(table))
    forest = matches_as_forest(plan, rows)
    if forest is None:
        return None
    followed = matches_of(plan, rows)
    for name in ("start", "number", "offset"):
        assert getattr(forest, name).tolist() == getattr(followed, name).tolist()
    assert result_of(plan, rows, forest, None).equals(result_of(plan, rows, followed, None))
    return forest


@pytest.mark.random
@pytest.mark.more_in_chaos
@examples(900)
@given(cases(10))
def test_random_patterns(case: Case) -> None:
    question = case.question
    plain = {name: node for name, node in question.defines.items() if not any(word in str(node) for word in FAR)}
    question = replace(question, defines=plain, skip=("next", ""), rows="one", within=None)
    case = replace(case, question=question)
    rows = [{key: cell for key, cell in row.items() if key != "event_id"} for row in case.rows]
    assume(rows)
    table = table_of(rows, TYPES)
    same_as_followed(plan_of(case.query, table), table)


FAR = ("'agg'", "'near'", "'label'", "'number'", "'FIRST'", "'LAST'")
"""Reads of more than the row and its neighbours."""


def plan_of(query: dict[str, Any], table: pa.Table) -> RowPatternPlan:
    plan = compile_query(query, schema_of(table))
    assert isinstance(plan, RowPatternPlan)
    return plan


def ticks(count: int) -> pa.Table:
    random = np.random.default_rng(3)
    price = np.round(100 + np.cumsum(random.normal(0, 1, count)), 2).tolist()
    rows = []
    for at in range(count):
        cells = {"p": None if at % 17 == 0 else price[at], "x": at * 7919 % 31 - 15, "s": "abc"[at % 5 % 3]}
        rows.append({"id": f"e{at:05}", "type": "T", "time": at, "sym": "uvw"[at % 3], **cells})
    return table_of(rows)


CARRIED = (
    "COUNT(*) AS n, COUNT(D.*) AS d, COUNT(D.p) AS k, SUM(p) AS total, SUM(D.p) AS fall, AVG(U.p) AS mean, "
    "SUM(x) AS w, "
    "AVG(D.x) AS m, MIN(p) AS low, MAX(U.p) AS high, ANY_VALUE(U.p) AS some, MIN(s) AS t, MAX(D.s) AS u, S.p AS p0, "
    "FIRST(D.p) AS p1, LAST(D.p) AS p2, U.p + D.x AS mixed, PREV(FIRST(D.x), 2) AS before, NEXT(U.x) AS after, "
    "FIRST(p, 2) AS third, LAST(p, 1) AS last, CLASSIFIER() AS c, MATCH_NUMBER() AS number, BOOL_AND(x > 0) AS up"
)
PATTERNS = {
    "V": "S D+ U+",
    "long": "S (D | U)* U$",
    "empty": "(D+ U)?",
    "reluctant": "S (D | U)+? U U",
    "permute": "PERMUTE(D, U, S)",
    "anchors": "^ S D* | U D",
}


def text_of(pattern: str, measures: str) -> str:
    return f"""SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY sym ORDER BY event_time MEASURES {measures}
        AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern}) DEFINE D AS x < PREV(x) OR p IS NULL, U AS x > PREV(x))"""


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_all_that_is_carried(pattern: str) -> None:
    measures = CARRIED if "S" in pattern else CARRIED.replace("S.p AS p0", "p AS p0")
    table = ticks(400)
    forest = same_as_followed(plan_of({"kind": "match_recognize", "pattern": text_of(pattern, measures)}, table), table)
    assert forest is not None
    assert len(forest.start) > 0


NOT_CARRIED = [
    "LAST(D.p, 1) AS p",
    "ARRAY_AGG(p) AS p",
    "FIRST(CLASSIFIER()) AS c",
    "COUNT(DISTINCT p) AS n",
    "MAX(CLASSIFIER()) AS c",
    "SUM(p * MATCH_NUMBER()) AS n",
]


@pytest.mark.parametrize("measures", NOT_CARRIED)
def test_what_is_followed(measures: str) -> None:
    table = ticks(50)
    plan = plan_of({"kind": "match_recognize", "pattern": text_of("S D+ U+", measures)}, table)
    assert matches_as_forest(plan, Rows(plan, Columns(table))) is None


def test_sums_beyond_64_bits() -> None:
    fixed = {"type": "T", "sym": "u", "x": 2**62, "p": None}
    table = table_of([{"id": f"e{at}", "time": at, **fixed} for at in range(3)], {"p": pa.float64()})
    plan = plan_of({"kind": "match_recognize", "pattern": text_of("S D* U?", "SUM(x) AS total")}, table)
    rows = Rows(plan, Columns(table))
    forest = matches_as_forest(plan, rows)
    assert forest is not None
    with pytest.raises(BadEventsError, match="64 bits"):
        result_of(plan, rows, forest, None)
