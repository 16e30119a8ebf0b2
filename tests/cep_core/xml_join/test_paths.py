"""Paths: random ones select what libxml2's own XPath selects, and texts beyond the subset are refused by name."""

from __future__ import annotations

from random import Random

import pytest
from lxml import etree

from tests.random.xml_joins import NAMESPACES, elements, paths
from trendlake.cep_core.documents.document import Reader
from trendlake.cep_core.documents.path_parser import parse_path
from trendlake.cep_core.documents.path_tokens import Namespaces, PathError
from trendlake.cep_core.errors import BadPatternError, NotSupportedError, PatternSyntaxError, UnknownPrefixError
from trendlake.cep_core.xml_join.compile.plan import Definition
from trendlake.cep_core.xml_join.run.walk import Walker

KNOWN = Namespaces(tuple(NAMESPACES.items()))


@pytest.mark.random
def test_paths_select_what_libxml2_selects() -> None:
    """`//x` of XPath is below the document or a node in both; `*:x` is written as a test of local names there."""
    selected = 0
    for number in range(1_500):
        r = Random(number)
        root = Reader().root(elements(r))
        steps = paths(r)
        if "*:" in steps:
            continue
        text = f"//*{steps}"
        _, path = parse_path(text, KNOWN)
        rows = Walker([Definition(-1, path)]).walk(root)
        numbers = {element: place for place, element in enumerate(root.iter())}
        wanted = set()
        for node in root.getroottree().xpath(text, namespaces=NAMESPACES):
            if isinstance(node, str):
                wanted.add((numbers[node.getparent()], node.attrname))
            else:
                wanted.add((numbers[node], None))
        assert {(row[2], row[3]) for row in rows} == wanted, (number, text, etree.tostring(root))
        assert len(rows) == len(wanted)
        selected += bool(rows)
    assert selected > 300


@pytest.mark.parametrize(
    ("text", "error", "offset"),
    [
        ("$p/ancestor::k", NotSupportedError, 3),
        ("$p/..", NotSupportedError, 3),
        ("$p/.", NotSupportedError, 3),
        ("$p/k[1]", NotSupportedError, 5),
        ("$p/k[last()]", NotSupportedError, 5),
        ("$p/k[position() = 1]", NotSupportedError, 5),
        ("$p/text()", NotSupportedError, 3),
        ("$p/k[count(a) = 1]", NotSupportedError, 5),
        ("$p/k | $p/l", NotSupportedError, 5),
        ("$p/k[a + 1 = 2]", NotSupportedError, 7),
        ("$p/k[a = 1 + 1]", NotSupportedError, 11),
        ("$p/k[. < 'b']", NotSupportedError, 7),
        ("$p/k[a = b]", NotSupportedError, 9),
        ("$p/k[a = $b]", NotSupportedError, 9),
        ("$p/k[/a]", NotSupportedError, 5),
        ("$p/k[$a = 1]", NotSupportedError, 5),
        ("$p/xml:*", NotSupportedError, 3),
        ("$p/k[contains(a, 'x')]", NotSupportedError, 14),
        ("$p/n:k", UnknownPrefixError, 3),
        ("$p/@a/k", BadPatternError, 5),
        ("/@a", BadPatternError, 1),
        ("$p", PatternSyntaxError, 0),
        ("p/k", PatternSyntaxError, 0),
        ("$p/k[a", PatternSyntaxError, 6),
        ("$p/k[.]", PatternSyntaxError, 6),
        ("$p/k[a = 'x]", PatternSyntaxError, 9),
        ("$p/k['x' = a]", PatternSyntaxError, 5),
        ("$p/k[a = 1e5]", PatternSyntaxError, 10),
        ("$p//", PatternSyntaxError, 4),
        ("", PatternSyntaxError, 0),
    ],
)
def test_a_text_that_is_no_path(text: str, error: type[Exception], offset: int) -> None:
    with pytest.raises(PathError) as refusal:
        parse_path(text, KNOWN)
    assert type(refusal.value.error) is error
    assert refusal.value.offset == offset


def test_words_are_names_where_an_operand_begins() -> None:
    _, path = parse_path("$p/and[or and not or and = 'x']", KNOWN)
    root = Reader().root("<p><and><or/><not/></and><and><and>x</and></and><and><or/></and></p>")
    assert [row[2] for row in Walker([Definition(-1, parse_path("/p/and", KNOWN)[1])]).walk(root)] == [1, 4, 6]
    _, whole = parse_path("/p/and[or and not or and = 'x']", KNOWN)
    assert [row[2] for row in Walker([Definition(-1, whole)]).walk(root)] == [1, 4]
    assert path.steps == whole.steps[1:]
