"""Random files of queries over random documents: the engine gives what an enumeration and SQL give."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

import trendlake.cep_core.xml_join.run.witnesses as witnesses_module
from tests.cep_core.xml_join.test_worked_cases import SCHEMA
from tests.random.profile import share
from tests.random.xml_joins import XmlTally, disagreement, xml_question
from tests.reference.xml_join import answers
from tests.support.xml_documents import documents_table, rows_of
from trendlake.cep_core import compile_query, run_plan

pytestmark = pytest.mark.random

QUESTIONS = share(1_000)
DAY = 86_400_000_000


def test_engine_enumeration_and_sql_agree() -> None:
    """Of questions without answers there may be many: they would prove little alone."""
    tally = XmlTally()
    for number in range(QUESTIONS):
        question = xml_question(number)
        assert disagreement(question, tally) == [], (number, question)
    assert tally.compared == QUESTIONS
    assert tally.with_answers > QUESTIONS / 15


@pytest.mark.parametrize("within", ["2 seconds", "unbounded"])
def test_any_cut_into_runs_gives_the_same_rows(within: str) -> None:
    """Pitfalls 6, 9 and 11: any runs over the windows make up the whole, each from its own documents. Documents of
    equal time come at borders too. Windows are days where a query is unbounded."""
    several = at_border = 0
    for number in range(200):
        r = Random(f"cut {number}")
        query, rows = xml_question(number)
        query.pop("limit_per_document", None)
        for one in query.get("queries", {"": query}).values():
            one["within"] = within
        plan: Any = compile_query(query, SCHEMA)
        pane = plan.pane
        assert pane == (DAY if within == "unbounded" else 2_000_000)
        step = pane // 2 // 1_000_000  # a document of an even second is at a border
        rows = [{**row, "time": row["time"] // 1_000_000 * 1_000_000 * step + row["time"] % 1_000_000} for row in rows]
        times = [row["time"] for row in rows]
        at_border += any(time % pane == 0 and times.count(time) > 1 for time in times)
        table = documents_table(rows)
        whole = rows_of(run_plan(plan, table))
        assert whole == answers(query, rows)
        first, end = min(times) // pane, max(times) // pane + 1
        cuts = sorted({first, end, *r.sample(range(first, end), r.randint(0, end - first))})
        parts = [rows_of(run_plan(plan, table, range(low, high))) for low, high in pairwise(cuts)]
        assert sum(map(len, parts)) == len(whole)
        assert set().union(*parts) == whole
        several += sum(bool(part) for part in parts) > 1
    assert several > 3
    assert at_border > 20


def test_shuffled_documents_and_witnesses_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows with the same keys, whatever the order of documents in the table and of witnesses in the engine."""
    joined = witnesses_module._joined
    answered = 0
    for number in range(share(200, least=67)):
        r = Random(f"shuffled {number}")
        query, rows = xml_question(number, most=8)
        query.pop("limit_per_document", None)
        plan: Any = compile_query(query, SCHEMA)
        first = run_plan(plan, documents_table(rows)).sort_by("answer_id")

        def shuffled(*asked: Any, r: Random = r) -> Any:
            columns = joined(*asked)
            order = r.sample(range(len(columns[0])), len(columns[0]))
            return tuple(column[order] for column in columns)

        with monkeypatch.context() as patch:
            patch.setattr(witnesses_module, "_joined", shuffled)
            for _ in range(2):
                again = run_plan(plan, documents_table(r.sample(rows, len(rows)))).sort_by("answer_id")
                assert again.equals(first), number
        answered += first.num_rows > 1
    assert answered > share(10, least=4)
