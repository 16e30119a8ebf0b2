"""YAML read safely, with the place of every node kept: the basis of errors that point.

ruamel's round-trip loader builds plain data only (no tags, no objects), refuses repeated keys and keeps positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from cep_core.errors import FileUnreadableError, Place, YamlSyntaxError

MAX_FILE = 1_000_000
"""Bytes of one YAML file."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """A document with its origin: `data` is plain mappings, sequences and scalars; `text` its lines ("" when given
    as data)."""

    data: Any
    name: str
    text: str = ""
    lines: tuple[str, ...] = field(default=(), repr=False)

    def place(self, path: Path_, *, key: bool = False, offset: int = 0, width: int = 0) -> Place:
        """The place of the node at `path` (of its key when `key`), `offset` characters into a one-line scalar."""
        if not self.text:
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
            shown = self._value(path)
            text = shown if isinstance(shown, str) and not key else ""
            return Place(f"{self.name}{where}", 1, offset + 1, text, max(1, width))
        line, column = self._position(path, key)
        text = self.lines[line] if line < len(self.lines) else ""
        if not key:
            line, column, text, offset = self._into_scalar(path, line, column, text, offset)
        if width == 0:
            rest = text[column:].split(" #")[0]
            width = len(str(path[-1])) if key and path else max(1, len(rest.rstrip()))
        return Place(
            self.name,
            line + 1,
            column + offset + 1,
            text,
            max(1, min(width, max(1, len(text) - column - offset))),
        )

    def _value(self, path: Path_) -> Any:
        node = self.data
        for part in path:
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def _position(self, path: Path_, key: bool) -> tuple[int, int]:
        node, line, column = self.data, 0, 0
        for depth, part in enumerate(path):
            last = depth == len(path) - 1
            if isinstance(node, CommentedMap) and part in node:
                line, column = node.lc.key(part) if key and last else node.lc.value(part)
            elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
                line, column = node.lc.item(part)
            else:
                break
            node = node[part]
        return line, column

    def _into_scalar(self, path: Path_, line: int, column: int, text: str, offset: int) -> tuple[int, int, str, int]:
        """Move from a scalar's start to its content: past a quote, or to the right line of a block."""
        value = self._value(path)
        head = text[column : column + 1]
        if not isinstance(value, str):
            return line, column, text, offset
        if head in ("'", '"'):
            return line, column + 1, text, offset
        if head in ("|", ">"):
            before = value[:offset]
            line += 1 + (before.count("\n") if head == "|" else 0)
            text = self.lines[line] if line < len(self.lines) else ""
            column = len(text) - len(text.lstrip())
            offset = len(before) - (before.rfind("\n") + 1) if head == "|" else offset
        return line, column, text, offset


def read_yaml(path: str | Path) -> Source:
    """The file at `path`. Raises FileUnreadableError, YamlSyntaxError (also for a repeated key or a document of
    several)."""
    try:
        raw = Path(path).read_bytes()
        if len(raw) > MAX_FILE:
            raise FileUnreadableError(f"{path} is larger than {MAX_FILE} bytes")
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadableError(f"cannot read {path}: {error}") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> Source:
    """YAML text with `name` as its origin in errors."""
    lines = tuple(text.splitlines())
    yaml = YAML(typ="rt")
    yaml.max_depth = 50
    try:
        data = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(name, 1, 1)
        if mark is not None:
            shown = lines[mark.line] if mark.line < len(lines) else ""
            place = Place(name, mark.line + 1, mark.column + 1, shown)
        problem = (error.problem or error.context or "not YAML").split("\n")[0]
        raise YamlSyntaxError(problem, place=place) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise YamlSyntaxError(str(error).split("\n")[0], place=Place(name, 1, 1)) from None
    return Source(data, name, text, lines)


def from_data(data: Mapping[str, Any], name: str = "query") -> Source:
    """A mapping given directly, as in a notebook."""
    return Source(data, name)


def plain(node: Any) -> Any:
    """ruamel's nodes as dict, list and scalars."""
    if isinstance(node, Mapping):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
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


__all__ = ["Source", "from_data", "parse_yaml", "plain", "read_yaml"]
