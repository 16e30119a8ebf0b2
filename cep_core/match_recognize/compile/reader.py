"""Tokens read one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.match_recognize.compile.syntax import Name
from trendlake.cep_core.match_recognize.compile.tokens import Token


class Reader:
    """A place in `tokens`, whose last one is an end."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, by: int = 1) -> Token:
        return self.tokens[min(self.at + by, len(self.tokens) - 1)]

    @property
    def ended(self) -> bool:
        return self.here.sort == "end"

    def take(self) -> Token:
        token = self.here
        if token.sort != "end":
            self.at += 1
        return token

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words of SQL or signs."""
        return all(self.ahead(by).upper == word for by, word in enumerate(words))

    def takes(self, *words: str) -> bool:
        """Passes these words, if they are the next tokens."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, sign: str, hint: str | None = None) -> Token:
        if not self.sees(sign):
            raise self.unexpected(f"expected {sign}", hint)
        return self.take()

    def unexpected(self, expected: str, hint: str | None = None) -> TextError:
        """The mistake that here stands something else."""
        token = self.here
        return TextError(f"{expected}, found {token.shown()}", token.start, max(1, token.end - token.start), hint)

    def name(self, what: str) -> Name:
        token = self.here
        if not token.is_name:
            raise self.unexpected(f"expected {what}")
        self.take()
        return Name(token.text, token.variable, token.span)

    def past(self, *stops: str) -> None:
        """Goes to the next of `stops` that is in no parenthesis which begins here, or to the end."""
        depth = 0
        while not self.ended:
            sign = self.here.text if self.here.sort == "sign" else ""
            if not depth and self.here.upper in stops:
                return
            depth += (sign in ("(", "{", "[")) - (sign in (")", "}", "]"))
            if depth < 0:
                return
            self.take()
