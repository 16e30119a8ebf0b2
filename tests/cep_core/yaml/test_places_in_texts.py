"""Where in a file a character of a value is, however the value is written: errors in conditions point there."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core.yaml.source import parse_yaml

CONDITION = "A.v > 1 AND A.foo > 2"


@pytest.mark.parametrize(
    "written",
    [
        "A.v > 1 AND A.foo > 2",
        "&w A.v > 1 AND A.foo > 2",
        "&w 'A.v > 1 AND A.foo > 2'",
        "A.v > 1\n    AND A.foo > 2",
        "'A.v > 1\n\n    AND A.foo > 2'",
        '"A.v > 1 \\\n    AND \\\n    A.foo > 2"',
        '"\\u0041.v > 1\\n\\tAND A.foo > 2"',
        "|\n    A.v > 1 AND\n      A.foo > 2",
        "&w |2- # a comment\n      A.v > 1 AND\n\n      A.foo > 2",
        ">\n    A.v > 1 AND\n    A.foo\n    > 2",
        "\n    A.v > 1 AND A.foo > 2",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_name_in_a_condition_is_pointed_at(written: str, end: str) -> None:
    """Behind anchors, escapes and joined lines too: the line and column of an editor."""
    text = f"where:\n  - {written}\nb: A.foo\n".replace("\n", end)
    document = parse_yaml(text, "f")
    place = document.place(("where", 0), offset=document.data["where"][0].index("A.foo"), width=5)
    assert place.text[place.column - 1 :].startswith("A.foo")
    assert place.text == text.split(end)[place.line - 1]
    assert place.line < text.count(end)
    assert place.width == 5


def test_the_end_of_a_block_is_the_end_of_its_last_line() -> None:
    """Where a text ends too early: not the line after it, which belongs to another key."""
    document = parse_yaml("a: |\n  A.v >\nb: 1\n", "f")
    place = document.place(("a",), offset=len(document.data["a"]))
    assert (place.line, place.column) == (2, 8)


WORDS = st.one_of(
    st.text("abc", min_size=1, max_size=6), st.sampled_from(["it's", 'a"b', "\\\\", "é😀", "#", "- x", "x:"])
)


@pytest.mark.random
@examples(1000)
@given(
    st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\n", "\n\n", "\n  "])), min_size=1, max_size=12),
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([10, 40, 4096]),
    st.booleans(),
)
def test_each_word_of_a_written_value_is_found(
    words: list[tuple[str, str]], style: str | None, width: int, plain: bool
) -> None:
    """PyYAML's writer folds, escapes and indents; a word of letters stands at its place in the file."""
    value = "".join(word + space for word, space in words).rstrip()
    text = yaml.safe_dump({"k": [value, "x"]}, default_style=style, width=width, allow_unicode=plain)
    assume(yaml.safe_load(text)["k"][0] == value)  # its writer breaks indented lines of the style >, for its reader too
    document = parse_yaml(text, "f")
    assert document.data["k"][0] == value
    at = 0
    for word, space in words:
        if word.isalpha() and word.isascii():
            place = document.place(("k", 0), offset=at, width=len(word))
            assert place.text[place.column - 1 :].startswith(word)
            assert place.text == text.split("\n")[place.line - 1]
        at += len(word + space)
