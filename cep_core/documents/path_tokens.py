"""The tokens of a path, names as XML has them, and prefixes for namespaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from trendlake.cep_core.errors import PatternSyntaxError, TrendlakeError

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
MAX_TEXT = 10_000
"""Characters of a path."""
NAME = (
    r"[A-Z_a-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C-\u200D\u2070-\u218F\u2C00-\u2FEF"
    r"\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF]"
    r"[-.0-9A-Z_a-z\u00B7\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u037D\u037F-\u1FFF\u200C-\u200D\u203F-\u2040\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF]*"
)
"""A name without a colon, as XML 1.0 (fifth edition) and its namespaces have it."""


@cache
def _token() -> re.Pattern[str]:
    """The expression for a token of a path. It is compiled at its first use: compiling takes 10 ms of every start."""
    return re.compile(
        rf"""[ \t\r\n]*(?:
    (?P<text>"[^"]*"|'[^']*')
  | (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
  | (?P<variable>\${NAME})
  | (?P<name>(?:{NAME}|\*):(?!:)(?:{NAME}|\*)|{NAME}|\*)
  | (?P<mark>//|::|\.\.|!=|<=|>=|[/@\[\]().,=<>|+\-:])
  | (?P<end>$))""",
        re.VERBOSE,
    )


class PathError(Exception):
    """A mistake in a text: the error without its place, the offset in characters, and the width."""

    def __init__(self, error: TrendlakeError, offset: int, width: int = 1) -> None:
        super().__init__(str(error))
        self.error, self.offset, self.width = error, offset, max(1, width)


@dataclass(frozen=True)
class Token:
    """`kind`: text, number, variable, name, mark or end."""

    kind: str
    text: str
    offset: int


@dataclass(frozen=True)
class Namespaces:
    """Prefixes of a file; "" for element names without one."""

    prefixes: tuple[tuple[str, str], ...] = ()

    @property
    def by_prefix(self) -> Mapping[str, str]:
        return {"xml": XML_NAMESPACE, **dict(self.prefixes)}


def tokens(text: str) -> list[Token]:
    """The tokens of a text, the last one of kind `end`."""
    if len(text) > MAX_TEXT:
        raise PathError(PatternSyntaxError(f"longer than {MAX_TEXT:,} characters"), MAX_TEXT)
    listed: list[Token] = []
    at = 0
    while True:
        match = _token().match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
            quote = text[at] in "'\""
            what = "a text that is not closed" if quote else f"'{text[at]}' is not expected here"
            raise PathError(PatternSyntaxError(what), at, len(text) - at if quote else 1)
        kind = str(match.lastgroup)
        listed.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
        if kind == "end":
            return listed
