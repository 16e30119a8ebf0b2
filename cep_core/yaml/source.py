"""YAML read safely, with the place of every node kept: the basis of errors that point.

`cep_core.yaml.limits` bounds what a file may ask of its reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from trendlake.cep_core.errors import BadValueError, FileUnreadableError, Place, YamlSyntaxError
from trendlake.cep_core.yaml.limits import MAX_DEPTH, MAX_FILE, MAX_GIVEN, composed, unreadable_character
from trendlake.cep_core.yaml.scalars import yaml_text

FEW_CHARACTERS = 10_000
"""Of a file whose values are held for when it is read again."""
Path_ = tuple[str | int, ...]
_LINE_END = re.compile("\r\n|\n|\r")
"""As editors count lines, and YAML 1.2 does."""
_SPACE = " \t\n"
_SPACES, _NOTHING = re.compile("[ \t\n]*"), re.compile("")
_ANCHOR = re.compile("&[^ \t\n]*[ \t\n]*")
_BEGIN = {"'": re.compile("'"), '"': re.compile('"'), **dict.fromkeys("|>", re.compile(".*[ \t\n]*"))}
"""The text before the first character of a scalar, by its sign."""
_JOINED = re.compile(r"(\\\n[ \t]*)+")
"""Ends of lines, in double quotes, that leave nothing."""
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True)
class Source:
    """A document with its origin: `data` is plain mappings, sequences and scalars; `text` its lines ("" when given
    as data); `places` those of what `data` holds (`Node.inner`)."""

    data: Any
    name: str
    text: str = ""
    lines: tuple[str, ...] = field(default=(), repr=False)
    places: Any = field(default=None, repr=False, compare=False)

    def place(self, path: Path_, *, key: bool = False, offset: int = 0, width: int = 0) -> Place:
        """The place of the node at `path` (of its key when `key`), `offset` characters into a one-line scalar."""
        if not self.text:
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
            shown = self._value(path)
            text = shown if isinstance(shown, str) and not key else ""
            line, column = text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1)
            text = text.split("\n")[line]
            return Place(f"{self.name}{where}", line + 1, column + 1, text, max(1, min(width, len(text) - column or 1)))
        line, column = self._position(path, key)
        value = None if key else self._value(path)
        if isinstance(value, str):
            line, column = self._into_scalar(value, line, column, offset)
        text = self.lines[line] if line < len(self.lines) else ""
        if width == 0:
            rest = text[column:].split(" #")[0]
            width = len(str(path[-1])) if key and path else max(1, len(rest.rstrip()))
        return Place(self.name, line + 1, column + 1, text, max(1, min(width, len(text) - column)))

    def _value(self, path: Path_) -> Any:
        node = self.data
        for part in path:
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def _position(self, path: Path_, key: bool) -> tuple[int, int]:
        line, column, inner = 0, 0, self.places
        for depth, part in enumerate(path):
            if isinstance(inner, dict) and part in inner:
                of_key, (line, column), inner = inner[part]
                if key and depth == len(path) - 1:
                    line, column = of_key
            elif isinstance(inner, list) and isinstance(part, int) and part < len(inner):
                line, column, inner = inner[part]
            else:
                break
        return line, column

    def _into_scalar(self, value: str, line: int, column: int, offset: int) -> tuple[int, int]:
        """The line and column of character `offset` of a text that begins at a line and column."""
        if line >= len(self.lines):
            return line, column
        before = value[:offset] if value[offset:].strip(_SPACE) else value.rstrip(_SPACE)  # to the end of its last line
        written = "\n".join((self.lines[line][column:], *self.lines[line + 1 :]))
        passed = written[: _index(written, before)]
        begin = passed.rfind("\n") + 1
        return line + passed.count("\n"), (0 if begin else column) + len(passed) - begin


def _index(written: str, before: str) -> int:
    """Where the characters `before` of a value end in a scalar as it is written. Its lines may be joined or indented:
    white space with an end of line in it is passed as a whole."""
    at = _end(_ANCHOR, written, 0)
    style = written[at : at + 1]
    at = _end(_BEGIN.get(style, _NOTHING), written, at)
    for char in before:
        at = _end(_JOINED, written, at) if style == '"' else at
        space = written[at : _end(_SPACES, written, at)]
        if style == '"' and written[at : at + 1] == "\\":
            at += 2 + _HEX_DIGITS.get(written[at + 1 : at + 2], 0)
        elif style == "'" and written.startswith("''", at):
            at += 2
        elif char not in _SPACE:
            at += 1
        else:
            at += len(space) if "\n" in space else min(1, len(space))
    return _end(_JOINED, written, at) if style == '"' else at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where what the pattern fits at a place ends: there, if it fits nothing."""
    match = pattern.match(text, at)
    return match.end() if match else at


def read_yaml(path: str | Path) -> Source:
    """The file at `path`. Raises FileUnreadableError, YamlSyntaxError (also for a repeated key, a document of several,
    tags, and what is beyond the limits of `cep_core.yaml.limits`)."""
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileUnreadableError(f"cannot read {name}: {error}", place=Place(name, 1, 1)) from None
    if len(raw) > MAX_FILE:
        raise FileUnreadableError(f"{name} is larger than {MAX_FILE:,} bytes", place=Place(name, 1, 1))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        start = before.rfind("\n") + 1
        place = Place(name, before.count("\n") + 1, len(before) - start + 1, before[start:])
        raise FileUnreadableError(f"{name} is not text in UTF-8: {error.reason}", place=place) from None
    return parse_yaml(text, name)


def parse_yaml(text: str, name: str) -> Source:
    """YAML text with `name` as its origin in errors. Its `data` is not to be changed: the same text gives it again."""
    lines = tuple(_LINE_END.split(text))
    try:
        node = _held(text) if len(text) <= FEW_CHARACTERS else composed(text)
    except MarkedYAMLError as error:
        raise YamlSyntaxError(_problem(error), place=_place(error, name, lines)) from None
    except ReaderError as error:
        line, column = _line_and_column(text, error.position)
        problem = str(error).split("\n")[0]
        raise YamlSyntaxError(problem, place=Place(name, line + 1, column + 1, lines[line])) from None
    except (YAMLError, ValueError) as error:
        problem = str(error).split("\n")[0] or "not YAML"
        raise YamlSyntaxError(problem, place=Place(name, 1, 1, lines[0] if lines else "")) from None
    source = Source(node.value, name, text, lines, node.inner)
    _keys_once(source)
    return source


_held = lru_cache(maxsize=200)(composed)
"""Patterns are read for their run, for their page and by their neighbours; contracts by every pattern over them."""


def _problem(error: MarkedYAMLError) -> str:
    return str(error.problem or error.context or "not YAML").split("\n")[0]


def _place(error: MarkedYAMLError, name: str, lines: tuple[str, ...]) -> Place:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Place(name, 1, 1)
    return Place(name, mark.line + 1, mark.column + 1, lines[mark.line] if mark.line < len(lines) else "")


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    """Of a character, from 0."""
    before = _LINE_END.split(text[:at])
    return len(before) - 1, len(before[-1])


def _keys_once(source: Source) -> None:
    """Raises YamlSyntaxError where two keys of a mapping are one when they are read as words: 1 and "1"."""
    seen: set[int] = set()
    left: list[tuple[Path_, Any]] = [((), source.data)]
    while left:
        path, node = left.pop()
        if isinstance(node, str) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Mapping):
            words: set[str] = set()
            for key in node:
                if str(key) in words:
                    raise YamlSyntaxError(f"the key '{key}' twice", place=source.place((*path, key), key=True))
                words.add(str(key))
                left.append(((*path, key), node[key]))
        elif isinstance(node, Sequence):
            left.extend(((*path, index), value) for index, value in enumerate(node))


def from_data(data: Mapping[str, Any], name: str = "query") -> Source:
    """A mapping given directly, as in a notebook. Raises BadValueError for one that is nested deeper than a file may
    be, or holds more than MAX_GIVEN values, and for text that no file can hold."""
    place = Place(name, 1, 1)
    nodes = 0
    left: list[tuple[int, Any]] = [(0, data)]
    while left:
        depth, node = left.pop()
        nodes += 1
        if depth > MAX_DEPTH:
            raise BadValueError(f"nested deeper than {MAX_DEPTH}", place=place)
        if nodes > MAX_GIVEN:
            raise BadValueError(f"more than {MAX_GIVEN:,} values", place=place)
        if isinstance(node, str):
            if (problem := unreadable_character(node)) is not None:
                raise BadValueError(problem, place=place)
        elif isinstance(node, Mapping):
            left.extend((depth + 1, item) for pair in node.items() for item in pair)
        elif isinstance(node, Sequence | AbstractSet):
            left.extend((depth + 1, item) for item in node)
    return Source(data, name)


def plain(node: Any) -> Any:
    """A copy of what a document holds, its keys as words."""
    if isinstance(node, Mapping):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str | bytes):
        return [plain(value) for value in node]
    if isinstance(node, str):
        return str(node)
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float):
        return float(node)
    return node


__all__ = ["Source", "from_data", "parse_yaml", "plain", "read_yaml", "yaml_text"]
