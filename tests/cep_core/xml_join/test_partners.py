"""Documents that may be in an answer with a changed one: none that is in one is left out, whatever its markup."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pytest
from lxml import etree

from tests.cep_core.xml_join.test_worked_cases import SCHEMA
from tests.random.profile import share
from tests.random.xml_joins import elements, xml_question
from tests.support.xml_documents import engine
from trendlake.cep_core import compile_query
from trendlake.cep_core.documents.document import HARDENED
from trendlake.cep_core.documents.predicates import normalised
from trendlake.cep_core.xml_join.run import partners as partners_of
from trendlake.cep_core.xml_join.run.partners import Partners
from trendlake.cep_core.xml_join.run.text_search import MOST_BYTES, TextSearch

pytestmark = pytest.mark.random

CHARACTERS = ("a", "b", "ab", " ", "\n", "\t", "é", "\U0001f600", "&", "<", "]", ">", "'", "--", "x" * 60)


def every(count: int) -> Any:
    return np.ones(count, np.bool_)


def text_of(r: Random) -> str:
    return "".join(r.choice(CHARACTERS) for _ in range(r.randint(1, 5)))


def written(r: Random, text: str) -> str:
    """Markup whose text is `text`, cut into pieces of every sort."""
    pieces = []
    for character in text:
        point = ord(character)
        forms = [escape(character), f"&#{point};", f"&#x{point:x};", f"<![CDATA[{character}]]>", escape(character)]
        pieces.append(r.choice(forms) + r.choice(("", "", "", "<!-- > & --> ", "<?a b > ?>", "<b/>", "<i>", "</i>")))
    depth, parts = 0, []
    for piece in pieces:
        body = piece
        if piece.endswith("</i>"):
            body, depth = (piece, depth - 1) if depth else (piece[:-4], depth)
        elif piece.endswith("<i>"):
            depth += 1
        parts.append(body)
    return "".join(parts) + "</i>" * depth


def document_of(r: Random) -> str:
    quote = r.choice("'\"")
    value = escape(text_of(r), {quote: "&quot;" if quote == '"' else "&#39;", "\n": r.choice(("\n", "&#10;"))})
    head = r.choice(("", '<?xml version="1.0" encoding="latin-1"?>', "<!-- a > b -->", "\ufeff", " \n"))
    return f"{head}<r k={quote}{value}{quote} l='>'>{written(r, text_of(r))}<s>{written(r, text_of(r))}</s></r>"


def texts_in(document: str) -> Iterable[str]:
    """The document's string value and its attributes' values, as lxml reads them, spaces collapsed."""
    root = etree.fromstring(document.encode(), etree.XMLParser(**HARDENED))
    yield normalised("".join(root.itertext()))
    for element in root.iter():
        yield from map(normalised, element.attrib.values())


def beginning(text: str) -> bytes:
    return normalised(text).encode()[:MOST_BYTES]


def test_texts_in_documents_are_those_that_lxml_reads() -> None:
    r, present = Random("search"), 0
    for _ in range(300):
        documents = [document_of(r) for _ in range(4)]
        parts = [r.choice(list(texts_in(document))) for document in documents]
        looked_for = {text for text in (*map(normalised, parts), normalised(text_of(r)), "ab", "b a") if text}
        texts = {text: 1 << (37 * number) for number, text in enumerate(looked_for)}
        words = 5
        for kind in (pa.string(), pa.large_string()):
            array = pa.array(["<r/>", *documents], kind).slice(1)
            marks = TextSearch(texts, words).marks(array, every(len(documents)))
            for document, row in zip(documents, marks.tolist(), strict=True):
                actual = sum(word << (64 * place) for place, word in enumerate(row))
                expected = sum(
                    mark
                    for text, mark in texts.items()
                    if any(beginning(text) in v.encode() for v in texts_in(document))
                )
                assert actual == expected, (document, texts)
                present += expected != 0
    assert present > 1_000


def test_documents_that_are_not_understood_have_every_text() -> None:
    documents = [
        "<a>&b;</a>",
        "<!DOCTYPE a><a/>",
        "<a>&#x;</a>",
        "<a>&#99999999;</a>",
        "<a b='",
        "<a><![CDATA[",
        "<a>&",
    ]
    marks = TextSearch({"text": 1}, 2).marks(pa.array(documents), every(len(documents)))
    assert (marks == 2**64 - 1).all()
    asked = np.arange(len(documents)) == 0
    marks = TextSearch({"text": 1}, 2).marks(pa.array(documents), asked)
    assert (marks[1:] == 0).all()


def test_all_documents_of_answers_are_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each document as the changed one, beside the answers of all documents."""
    answered = left_out = 0
    for number in range(share(600)):
        query, rows = xml_question(number, most=6)
        query.pop("limit_per_document", None)
        r = Random(number)
        rows += [{"id": f"more{n}", "time": r.randint(0, 4) * 1_000_000, "xml": elements(r)} for n in range(3)]
        plan: Any = compile_query(query, SCHEMA)
        answers = [dict(answer) for answer in engine(query, rows)]
        texts = pa.array([row["xml"] for row in rows])
        for changed in ([0], [1, len(rows) - 1]):
            try:
                partners = Partners(plan, texts.take(pa.array(changed)))
            except ValueError:
                continue
            may = partners.among(texts, every(len(rows)))
            with monkeypatch.context() as patch:
                patch.setattr(partners_of, "SAMPLE", 1)  # of the others rare values are asked about first
                assert partners.among(texts, every(len(rows))).tolist() == may.tolist(), (number, changed)
            ids = {rows[at]["id"] for at in changed}
            pairs = [{answer["left_id"], answer["right_id"]} for answer in answers]
            needed = {one for pair in pairs if pair & ids for one in pair}
            others = {row["id"] for row, near in zip(rows, may, strict=True) if near}
            assert needed - ids <= others, (number, changed)
            answered += bool(needed)
            left_out += len(rows) - len(others)
    assert answered > share(40)
    assert left_out > share(1_000)


def test_what_any_document_may_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan: Any = compile_query(
        {
            "kind": "xml_join",
            "left": {"a": "/a", "k": "$a/k"},
            "right": {"b": "/b", "l": "$b/l"},
            "operator": "join",
            "where": ["$k = $l"],
            "within": "1 hour",
            "return": {},
        },
        SCHEMA,
    )
    assert Partners(plan, pa.array(["<c/>"])).among(pa.array(["<b><l>1</l></b>"]), every(1)).tolist() == [False]
    assert Partners(plan, pa.array(["<a><k>1</k></a>"])).among(pa.array(["<b><l>1</l></b>"]), every(1)).tolist() == [
        True
    ]
    for empty in ("<a><k> </k></a>", "<a><k>1</k><k/></a>"):
        with pytest.raises(ValueError, match="any document"):
            Partners(plan, pa.array([empty]))
    monkeypatch.setattr(partners_of, "MOST_CHANGED", 1)
    with pytest.raises(ValueError, match="many documents"):
        Partners(plan, pa.array(["<c/>", "<c/>"]))
