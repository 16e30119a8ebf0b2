"""Random files of queries over random documents: the engine gives what the enumeration gives."""

from __future__ import annotations

import pytest

from tests.random.xml_joins import XmlTally, disagreement, xml_question

pytestmark = pytest.mark.random

QUESTIONS = 1_000


def test_engine_and_enumeration_agree() -> None:
    """Of questions without answers there may be many: they would prove little alone."""
    tally = XmlTally()
    for number in range(QUESTIONS):
        question = xml_question(number)
        assert disagreement(question, tally) == [], (number, question)
    assert tally.compared == QUESTIONS
    assert tally.with_answers > QUESTIONS / 10
