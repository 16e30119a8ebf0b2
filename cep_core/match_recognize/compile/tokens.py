"""SQL text as words and signs, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.language.parse import MAX_DEPTH

MAX_TEXT = 100_000
"""Characters of one text."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`[^`]+`)
    | (?P<sign><=|>=|<>|!=|\|\||[-+*/%=<>(){}\[\].,;|?^$:])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """`sort`: word, number, string, quoted, sign or end. `text`: as it is written; of `quoted` without its quotes."""

    sort: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        return (self.start, self.end)

    @property
    def upper(self) -> str:
        """The text of a word or sign in upper case; of all else a text that no word of SQL is."""
        return self.text.upper() if self.sort in ("word", "sign") else ""

    @property
    def is_name(self) -> bool:
        return self.sort in ("word", "quoted")

    @property
    def variable(self) -> str:
        """The name as that of a variable: in upper case unless quoted."""
        return self.text.upper() if self.sort == "word" else self.text

    def shown(self) -> str:
        return "the end" if self.sort == "end" else f"'{self.text}'"


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, the last one its end. Raises TextError."""
    if len(text) > MAX_TEXT:
        raise TextError(f"longer than {MAX_TEXT:,} characters", MAX_TEXT)
    result: list[Token] = []
    at = depth = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or (text.startswith("/*", at) and match.lastgroup == "sign"):
            raise _unreadable(text, at)
        sort, written = str(match.lastgroup), match.group()
        if sort != "space":
            depth += (written in ("(", "{", "[")) - (written in (")", "}", "]"))
            if depth > MAX_DEPTH:
                raise TextError(f"nested deeper than {MAX_DEPTH}", at)
            plain = written
            if sort == "quoted":
                plain = written[1:-1].replace('""', '"') if written[0] == '"' else written[1:-1]
                if not plain:
                    raise TextError("a name has at least one character", at, 2)
            result.append(Token(sort, plain, at, match.end()))
        at = match.end()
    result.append(Token("end", "", len(text), len(text)))
    return result


def _unreadable(text: str, at: int) -> TextError:
    if text.startswith("/*", at):
        return TextError("the comment has no end", at, 2, "write */ behind it")
    if text[at] in "'\"":
        what = "text" if text[at] == "'" else "name"
        return TextError(f"the {what} has no end", at, 1, f"write {text[at]} behind it")
    return TextError(f"'{text[at]}' is not expected here", at)
