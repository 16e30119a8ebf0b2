"""One meaning of a text, with the C parser and without: the same values, places and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from yaml import YAMLError

from tests.conftest import ROOT
from tests.random.profile import examples
from tests.random.yaml_texts import texts
from trendlake.cep_core.errors import Place, YamlSyntaxError
from trendlake.cep_core.yaml import limits, source
from trendlake.cep_core.yaml.limits import by_c, by_python
from trendlake.cep_core.yaml.parser import ONLY_PYTHON, CParser
from trendlake.cep_core.yaml.source import parse_yaml

with_c = pytest.mark.skipif(CParser is None, reason="PyYAML has no C parser on this machine")
SHIPPED = [
    path for folder in ("conf", "examples", "data_contracts") for path in sorted((ROOT / folder).rglob("*.yaml"))
]


@pytest.fixture(params=["as here", "without C"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine as it is, and one whose PyYAML has no C parser."""
    source._held.cache_clear()
    if request.param == "without C":
        monkeypatch.setattr(limits, "CParser", None)


@with_c
@pytest.mark.random
@examples(2000)
@given(texts())
def test_what_c_reads_python_reads_alike(text: str) -> None:
    """Values, and the line and column of each key and value."""
    if ONLY_PYTHON.search(text):
        return
    try:
        node = by_c(text)
    except (YAMLError, ValueError):
        return
    other = by_python(text)
    assert repr(node.value) == repr(other.value)
    assert repr(node.inner) == repr(other.inner)


@pytest.mark.random
@examples(500)
@given(texts())
def test_a_text_is_read_or_refused_at_a_place(text: str) -> None:
    """No other exception; what is read has a place for each value, in the lines that an editor shows."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    left: list[tuple[tuple[Any, ...], Any]] = []
    places: list[Place | None] = []
    try:
        document = parse_yaml(text, "f")
        left.append(((), document.data))
    except YamlSyntaxError as error:
        places.append(error.place)
    while left:
        path, node = left.pop()
        places.append(document.place(path))
        if isinstance(node, dict):
            left += [((*path, key), value) for key, value in node.items()]
        elif isinstance(node, list):
            left += [((*path, index), value) for index, value in enumerate(node)]
    for place in places:
        assert place is not None
        assert place.text == (lines[place.line - 1] if place.line <= len(lines) else "")


@with_c
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_parsed_in_c(path: Path) -> None:
    """Python reads them only where there is no C parser: it takes seven times as long."""
    text = path.read_text()
    assert ONLY_PYTHON.search(text) is None
    by_c(text)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\na: 2\n", 2, 1, 'found duplicate key "a" with value "2" (original value: "1")'),
        ("a: 1\n'1': x\n1: y\n", 3, 1, "the key '1' twice"),
        ("a: {b: [1, {c: 2, c: [x]}]}\n", 1, 19, 'found duplicate key "c" with value "[\'x\']" (original value: "2")'),
        ("a: [1, 2\nb: 3\n", 2, 2, "expected ',' or ']', but got ':'"),
        ("a: {b: 1\n", 2, 1, "expected ',' or '}', but got '<stream end>'"),
        ("a: 'x\nb: 1\n", 3, 1, "found unexpected end of stream"),
        ('é: "\\q"\n', 1, 6, "found unknown escape character 'q'"),
        ("a: b: c\n", 1, 5, "mapping values are not allowed here"),
        ("a: 1\n b: 2\n", 2, 3, "mapping values are not allowed here"),
        ("a:\n  - 1\n - 2\n", 3, 2, "expected <block end>, but found '<block sequence start>'"),
        ("a: - 1\n", 1, 4, "sequence entries are not allowed here"),
        ("a\nb: 1\n", 2, 2, "mapping values are not allowed here"),
        ("a: 1\nb\n", 3, 1, "could not find expected ':'"),
        ("a:\tb\n", 1, 3, "found character '\\t' that cannot start any token"),
        ("a:\n\tb: 1\n", 2, 1, "found character '\\t' that cannot start any token"),
        ("a: `x`\n", 1, 4, "found character '`' that cannot start any token"),
        ("a: %x\n", 1, 4, "found character '%' that cannot start any token"),
        ("a: |x\n  y\n", 1, 5, "expected chomping or indentation indicators, but found 'x'"),
        ("a: 1\n---\nb: 2\n", 2, 1, "but found another document"),
        ("a: 1\n...\nb: 2\n", 3, 1, "but found another document"),
        ("x: *a\n", 1, 4, "found undefined alias 'a'"),
        ("x: &a [*a]\n", 1, 8, "the alias 'a' stands within what it names"),
        ("x: &\n", 1, 5, "expected alphabetic or numeric character, but found '\\n'"),
        ("x: !!python/name:os.system {}\n", 1, 4, "the tag 'tag:yaml.org,2002:python/name:os.system': values are"),
        ("x: !y z\n", 1, 4, "the tag '!y': values are written plainly, without tags"),
        ("x: ! A.x > 1\n", 1, 4, "the tag '!': values are written plainly, without tags"),
        ("a: &b {c: 1}\nd: {<<: *b}\n", 2, 5, "a merge key (<<): write the keys out where they belong"),
        ("? [a, b]\n: 1\n", 1, 3, "a key is a word, not a list or a mapping"),
        (": 1\n", 1, 1, "expected <block end>, but found ':'"),
        ("a: 2024-02-30\n", 1, 4, "not a value: day is out of range for month"),
        ("a: 2024-02-30\na: 1\n", 1, 4, "not a value: day is out of range for month"),
        ("a: 1\na: 2\nb: [\n", 4, 1, "expected the node content, but found '<stream end>'"),
        ('a: "\\0"\n', 1, 4, "a NUL character"),
        ('a: "\\ud800"\n', 1, 4, "half of a surrogate pair: no character of Unicode"),
        ("😀: \x00\n", 1, 4, "unacceptable character #x0000: special characters are not allowed"),
        ("a: 1\r\nb: \ud800\n", 2, 4, "unacceptable character #xd800: special characters are not allowed"),
        (f"a: {'1' * 5000}\n", 1, 4, "a number of more than 400 digits"),
        ("a: " + "[" * 100, 1, 53, "nested deeper than 50"),
        ("a: [" + "1," * 20_000 + "]\n", 1, 39_999, "more than 20,000 values in one file"),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [" + "*a," * 1000 + "]\nc: [*b, *b]\n", 3, 5, "more than 20,000 values"),
        ("%YAML 1.1\n---\na: no\n", 1, 1, "files are read as YAML 1.2: delete the line %YAML, or write %YAML 1.2"),
        ("# \u2028\na: 1 # \x85\nb: [\u2029\n", 4, 1, "expected ',' or ']', but got '<stream end>'"),
        ("\ufeffa: 1\r\nb: [😀, é: {]\r\n", 2, 12, "expected the node content, but found ']'"),
    ],
)
def test_errors_and_their_places(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(YamlSyntaxError) as caught:
        parse_yaml(text, "f")
    place = caught.value.place
    assert place is not None
    assert message in str(caught.value)
    assert (place.line, place.column) == (line, column)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("# nothing\n", None),
        ("%YAML 1.2\n---\na: no\n...\n", {"a": "no"}),
        ("a: &x [1]\nb: *x\nc: &größe.1 2\nd: *größe.1\ne: &t true\n", {"a": [1], "b": [1], "c": 2, "d": 2, "e": True}),
        ("{pattern: A? B, x > 1 ? 2 : 3}\n", {"pattern": "A? B", "x > 1 ? 2": 3}),
        ("[a:1, b::c, :d]\n", ["a:1", "b::c", ":d"]),
        ('{"a":1, "b": 2}\n', {"a": 1, "b": 2}),
        ("a: [1,\t2\t]\nb: 3\t\n\n\t\nc: 4\t# x\n", {"a": [1, 2], "b": 3, "c": 4}),
        ("a: |\n  x\n   y\n\nb: >-\n  x\n  y\nc: 'x\n\n  y'\n", {"a": "x\n y\n", "b": "x y", "c": "x\ny"}),
        ("a: |\n  \n    x\n", {"a": "\nx\n"}),
        ("a: x\u2028b\nc: |\n  y\x85z\n", {"a": "x\u2028b", "c": "y\x85z\n"}),
        ("\ufeffa: é😀\r\nb: 1\r\n", {"a": "é😀", "b": 1}),
        ("a: =\nb: <\nnull: 1\n? c\n", {"a": "=", "b": "<", None: 1, "c": None}),
    ],
)
def test_values(text: str, data: Any) -> None:
    assert parse_yaml(text, "f").data == data


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "path", "key", "line", "column"),
    [
        ("a:\n  b: [1, x: 2]\n", ("a", "b"), False, 2, 6),
        ("a:\n  b: [1, x: 2]\n", ("a", "b"), True, 2, 3),
        ("a:\n  b: [1, x: 2]\n", ("a", "b", 1, "x"), False, 2, 13),
        ("a:\n  b: [1, x: 2]\n", ("a", "b", 1, "y"), False, 2, 10),
        ("a:\nb: 1\n", ("a",), False, 1, 3),
        ("a: {b: , c: 1}\n", ("a", "b"), False, 1, 7),
        ("a: &x [1]\nb: *x\n", ("b", 0), False, 1, 8),
        ("é: 😀😀\nb: [é, '😀', x]\n", ("b", 2), False, 2, 13),
        ("a: # \u2028\n  'x'\n", ("a",), False, 2, 4),
        ("? a\n: b\n", ("a",), False, 2, 3),
        ("- - a\n  - b\n- c", (0, 1), False, 2, 5),
        ("a: &x 'b'\n", ("a",), False, 1, 8),
    ],
)
def test_places(text: str, path: tuple[str | int, ...], key: bool, line: int, column: int) -> None:
    """Of values and keys, counted in characters; an alias stands where its anchor does."""
    place = parse_yaml(text, "f").place(path, key=key)
    assert (place.line, place.column) == (line, column)
