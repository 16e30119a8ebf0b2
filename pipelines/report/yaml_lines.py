"""A YAML text cut into words for a light touch of colour; never interpreted."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^(?P<lead>\s*(?:-\s+)?)(?P<key>[A-Za-z_][\w-]*)(?P<colon>:)(?=\s|$)(?P<rest>.*)$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True)
class YamlLine:
    """One line: lead, key (may be empty), rest and comment; joined they are the line."""

    lead: str
    key: str
    rest: str
    comment: str


def yaml_lines(content: str) -> tuple[YamlLine, ...]:
    """The lines of `content`. A `#` inside quotes is not a comment: such lines stay whole."""
    return tuple(_line(line) for line in content.rstrip("\n").split("\n"))


def _line(line: str) -> YamlLine:
    hash_sign = _COMMENT.search(line)
    start = len(line) if hash_sign is None or "'" in line or '"' in line else hash_sign.start()
    body, comment = line[:start], line[start:]
    match = _LINE.match(body)
    if match is None:
        return YamlLine(body, "", "", comment)
    return YamlLine(match["lead"], match["key"], match["colon"] + match["rest"], comment)
