"""Plain words as values: the core schema of YAML 1.2, and a few forms beyond it. Values as words that read the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core.yaml.scalars import value_of, yaml_text
from trendlake.cep_core.yaml.source import parse_yaml

FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
CORE: list[tuple[str, Callable[[str], Any]]] = [
    (r"null|Null|NULL|~|", lambda _: None),
    (r"true|True|TRUE", lambda _: True),
    (r"false|False|FALSE", lambda _: False),
    (r"[-+]?[0-9]+", int),
    (r"0o[0-7]+", lambda word: int(word[2:], 8)),
    (r"0x[0-9a-fA-F]+", lambda word: int(word[2:], 16)),
    (FLOAT, float),
    (r"[-+]?\.(inf|Inf|INF)", lambda word: -math.inf if word[0] == "-" else math.inf),
    (r"\.(nan|NaN|NAN)", lambda _: math.nan),
]
"""As YAML 1.2.2 states them, in 10.3.2."""
BEYOND: list[tuple[str, Callable[[str], Any]]] = [
    (r"[-+]0o[0-7]+", lambda word: int(word, 8)),
    (r"[-+]0x[0-9a-fA-F]+", lambda word: int(word, 16)),
    (r"[-+]?0b[01]+", lambda word: int(word, 2)),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat),
]


NO_NUMBER = r"[-+]?(\.?_|0[box]_|[a-fA-F]|[0-9_.]+[eE][-+]?[0-9]*_)"
"""How words begin whose underscore follows no digit, or is in an exponent."""


def reference(word: str) -> Any:
    """The value by the first regular expression that fits, underscores behind a digit left out of numbers."""
    for table in (CORE, BEYOND):
        for pattern, value in table:
            if re.fullmatch(pattern, word):
                return value(word)
    number = re.sub(r"(?<=[0-9a-fA-F_.])_", "", word)
    if "_" in word and "_" not in number and not re.match(NO_NUMBER, word):
        value = reference(number)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else word
    return word


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


words = st.one_of(
    st.text("0123456789+-._eExobTZainfNul~:", max_size=8),
    st.from_regex("|".join(pattern for pattern, _ in CORE + BEYOND), fullmatch=True),
    st.from_regex(r"[-+]?(0[xob])?[0-9a-f_]{1,5}(\.[0-9_]{0,3})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["yes", "no", "on", "off", "y", "N", "1:30", "190:20:30", "0777", "<<", "=", "0x", ".", "-", "+."]),
)


@pytest.mark.random
@pytest.mark.more_in_chaos
@examples(1000)
@given(words)
def test_a_word_as_the_core_schema_has_it(word: str) -> None:
    try:
        expected = reference(word)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            value_of(word)
    else:
        assert same(value_of(word), expected)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("no", "no"),
        ("0123", 123),
        ("0o17", 15),
        ("1:30", "1:30"),
        ("1_000", 1000),
        ("-_1", "-_1"),
        (".5e3", 500.0),
        ("2024-01-02", date(2024, 1, 2)),
        ("2024-1-2", "2024-1-2"),
        ("2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5)),
        ("2024-1-2t3:04:05.5 Z", datetime(2024, 1, 2, 3, 4, 5, 500_000, UTC)),
        ("2024-01-02T03:04:05.1234567-01:30", datetime(2024, 1, 2, 3, 4, 5, 123_457, timezone(-timedelta(hours=1.5)))),
        ("2023-12-31 23:59:59.9999999", datetime(2024, 1, 1)),
    ],
)
def test_words_by_name(word: str, value: Any) -> None:
    assert same(value_of(word), value)


@pytest.mark.parametrize("word", ["2024-02-30", "2024-01-02 25:00:00", "9999-12-31 23:59:59.9999999"])
def test_a_date_that_is_none(word: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        value_of(word)


letters = st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\n\t'\"#:-\x85\u2028")
scalars = st.one_of(words, st.text(letters), st.none(), st.booleans(), st.integers(), st.floats(), st.dates())


def mappings(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(words, part, max_size=3)


parts = st.recursive(scalars, lambda part: st.lists(part, max_size=3) | mappings(part), max_leaves=6)


@pytest.mark.random
@examples(400)
@given(mappings(parts), st.sampled_from([{}, {"lists_indented": True}, {"inner_on_one_line": True}]))
def test_what_is_written_reads_as_the_same(tree: dict[str, Any], form: dict[str, bool]) -> None:
    """Texts stay texts, whatever they look like, and keys keep their order."""
    assert same(parse_yaml(yaml_text(tree, 60, **form), "f").data, tree)


def test_the_text_that_is_written() -> None:
    """As people write it: plain words where they can be, one line a value."""
    tree = {
        "name": "a",
        "where": ["A.x > 1", "[s]", "it's", "'q'"],
        "no": "no",
        "one": "1",
        "n": None,
        "at": date(2024, 1, 2),
        "big": 1e17,
        "small": 1e-7,
        "in": float("inf"),
        "text": "two\nlines",
        "inner": {"x": [], "y": {}},
    }
    assert yaml_text(tree) == (
        "name: a\nwhere:\n- A.x > 1\n- '[s]'\n- it's\n- \"'q'\"\nno: no\none: '1'\nn:\nat: 2024-01-02\n"
        'big: 1e+17\nsmall: 1e-07\nin: .inf\ntext: "two\\nlines"\ninner:\n  x: []\n  y: {}\n'
    )
    assert yaml_text({"a": [{"b": 1, "c": None}]}, lists_indented=True) == "a:\n  - b: 1\n    c:\n"
    assert yaml_text([{"a": [{"b": 1, "c": None}]}], inner_on_one_line=True) == "- a:\n  - {b: 1, c: null}\n"
