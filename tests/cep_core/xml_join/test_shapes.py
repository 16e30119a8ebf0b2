"""Documents that are alike but for their texts are walked once, and answer as the enumeration says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from lxml import etree

from tests.random.profile import share
from tests.random.xml_joins import VALUES, XmlTally, disagreement, xml_question
from trendlake.cep_core.documents.document import Reader
from trendlake.cep_core.xml_join.run import shapes
from trendlake.cep_core.xml_join.run.walk import Walker


def other_texts(r: Random, xml: str) -> str:
    """The document with other texts and values of attributes."""
    root = Reader().root(xml)
    for element in root.iter():
        if element.text:
            element.text = r.choice(VALUES)
        for name in element.attrib:
            if not name.startswith("{http://www.w3.org/XML/"):
                element.set(name, r.choice(VALUES))
    return etree.tostring(root, encoding="unicode")


@pytest.mark.random
def test_alike_as_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = 0
    walk = Walker.walk

    def counted(self: Walker, root: Any) -> Any:
        nonlocal walked
        walked += 1
        return walk(self, root)

    monkeypatch.setattr(Walker, "walk", counted)
    tally, documents = XmlTally(), 0
    for number in range(share(400, least=134)):
        r = Random(f"alike {number}")
        query, rows = xml_question(1_000_000 + number, most=3)
        more = [
            {**row, "id": f"{row['id']}-{turn}", "xml": other_texts(r, row["xml"])} for row in rows for turn in "ab"
        ]
        documents += len(rows) + len(more)
        assert disagreement((query, [*rows, *more]), tally) == [], number
    assert tally.with_answers > share(20, least=7)
    assert walked < documents * 0.75


def test_a_long_document_and_many_shapes_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_ELEMENTS", 3)
    monkeypatch.setattr(shapes, "MOST_SHAPES", 2)
    tally = XmlTally()
    for number in range(60):
        assert disagreement(xml_question(number), tally) == [], number
    assert tally.with_answers > 3
