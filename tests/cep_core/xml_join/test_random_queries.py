"""Random files of queries over random documents: the engine gives what an enumeration and SQL give."""

from __future__ import annotations

from typing import Any

import pytest

from cep_core import compile_query, run_plan
from tests.cep_core.xml_join.test_worked_cases import SCHEMA
from tests.random.xml_joins import XmlTally, differences, disagreement, xml_question
from tests.reference.xml_join.sql import answers_by_sql
from tests.support.xml_documents import documents_table, engine, rows_of

pytestmark = pytest.mark.random

QUESTIONS = 1_000


def test_engine_and_enumeration_agree() -> None:
    """Of questions without answers there may be many: they would prove little alone."""
    tally = XmlTally()
    for number in range(QUESTIONS):
        question = xml_question(number)
        assert disagreement(question, tally) == [], (number, question)
    assert tally.compared == QUESTIONS
    assert tally.with_answers > QUESTIONS / 15


def test_engine_and_sql_agree() -> None:
    answered = 0
    for number in range(QUESTIONS, QUESTIONS + 300):
        query, rows = xml_question(number)
        query.pop("limit_per_document", None)
        expected = answers_by_sql(query, rows)
        answered += bool(expected)
        assert differences(expected, engine(query, rows)) == [], (number, query, rows)
    assert answered > 20


def test_any_cut_into_runs_gives_the_same_rows() -> None:
    """Pitfalls 6, 9 and 11: windows one by one, each from its own documents, make up the whole."""
    several = 0
    for number in range(200):
        query, rows = xml_question(number)
        query.pop("limit_per_document", None)
        for one in query.get("queries", {"": query}).values():
            one["within"] = "2 seconds"  # of one unbounded query, a pane of a day holds all
        plan: Any = compile_query(query, SCHEMA)
        table = documents_table(rows)
        whole = rows_of(run_plan(plan, table))
        times = [row["time"] for row in rows]
        first, last = min(times) // plan.pane, max(times) // plan.pane
        parts = [rows_of(run_plan(plan, table, range(j, j + 1))) for j in range(first, last + 1)]
        assert sum(map(len, parts)) == len(whole)
        assert set().union(*parts) == whole
        several += sum(bool(part) for part in parts) > 1
    assert several > 3
