"""The text in the parentheses of PATTERN to its tree."""

from __future__ import annotations

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.match_recognize.compile import syntax as r
from trendlake.cep_core.match_recognize.compile.reader import Reader
from trendlake.cep_core.match_recognize.compile.tokens import Token

MOST_DIGITS = 18
"""Digits of a bound."""
MOST_PERMUTED = 8


class PatternReader(Reader):
    """Reads one pattern; mistakes that leave its structure clear are collected in `errors`, others are raised."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        super().__init__(tokens)
        self.text = text
        self.errors: list[TextError] = []

    def pattern(self) -> r.Part:
        start = self.here
        options = [self._sequence()]
        while self.takes("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else r.Alternatives(tuple(options), self._span(start))

    def _span(self, start: Token) -> tuple[int, int]:
        return (start.start, self.tokens[max(self.at - 1, 0)].end)

    def _closes(self) -> bool:
        return self.ended or self.here.text in (")", "|", ",") or self._is_end_of_exclusion()

    def _is_end_of_exclusion(self) -> bool:
        return self.here.text == "-" and self.ahead().text == "}"

    def _sequence(self) -> r.Part:
        start = self.here
        parts: list[r.Part] = []
        while not self._closes():
            parts.append(self._part())
        if not parts:
            return r.Empty((start.start, start.start))
        return parts[0] if len(parts) == 1 else r.Sequence(tuple(parts), self._span(start))

    def _part(self) -> r.Part:
        start = self.here
        part = self._primary()
        bounds = self._quantifier(start)
        if bounds is None:
            return part
        low, high = bounds
        greedy = not self.takes("?")
        span = self._span(start)
        again = self.here
        if self._quantifier(start) is not None or self._repeats():
            while self._quantifier(start) is not None or self.takes("?"):
                pass
            written = self.text[span[0] : span[1]]
            self.errors.append(
                TextError(
                    "two quantifiers",
                    again.start,
                    self.tokens[self.at - 1].end - again.start,
                    f"put {written} in parentheses",
                )
            )
        return r.Repeat(part, low, high, greedy, span)

    def _repeats(self) -> bool:
        return self.here.text == "?"

    def _quantifier(self, start: Token) -> tuple[int, int | None] | None:
        """The bounds of a quantifier; None where there is none."""
        sign = self.here
        if sign.sort != "sign":
            return None
        if sign.text in ("*", "+", "?"):
            self.take()
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign.text]
        if sign.text != "{" or self.ahead().text == "-":
            return None
        self.take()
        low = self._bound()
        comma = self.takes(",")
        high = self._bound() if comma else low
        if not self.sees("}") or (low is None and not comma):
            raise self.unexpected("expected a quantifier such as {2}, {2,}, {,3} or {2,3}")
        end = self.take()
        written, width = self.text[sign.start : end.end], end.end - sign.start
        if high == 0:
            what = self.text[start.start : end.end]
            self.errors.append(TextError(f"{what} matches nothing", sign.start, width, "an upper bound is 1 or more"))
            return 0, 1
        if low is not None and high is not None and high < low:
            self.errors.append(TextError(f"{written} has its bounds the wrong way round", sign.start, width))
            return high, low
        return low or 0, high

    def _bound(self) -> int | None:
        token = self.here
        if token.sort != "number":
            return None
        if not token.text.isdigit() or len(token.text) > MOST_DIGITS:
            raise self.unexpected("expected a whole number")
        self.take()
        return int(token.text)

    def _primary(self) -> r.Part:
        token = self.here
        if token.text in ("^", "$") and token.sort == "sign":
            self.take()
            return r.Anchor(token.text == "$", token.span)
        if self.sees("{") and self.ahead().text == "-":
            self.take()
            self.take()
            body = self.pattern()
            if not self._is_end_of_exclusion():
                raise self.unexpected("expected -} behind {-")
            self.take()
            self.take()
            return r.Excluded(body, self._span(token))
        if self.takes("("):
            if self.takes(")"):
                return r.Empty(self._span(token))
            body = self.pattern()
            self.expect(")")
            return body
        if token.upper == "PERMUTE" and self.ahead().text == "(" and token.sort == "word":
            return self._permute()
        if token.is_name:
            self.take()
            return r.Variable(token.variable, token.span)
        raise self.unexpected("expected a variable, ( or ^")

    def _permute(self) -> r.Part:
        start = self.take()
        self.take()
        parts = [self.pattern()]
        while self.takes(","):
            parts.append(self.pattern())
        self.expect(")")
        span = self._span(start)
        if len(parts) > MOST_PERMUTED:
            message = f"PERMUTE has {len(parts)} parts"
            self.errors.append(TextError(message, span[0], span[1] - span[0], f"at most {MOST_PERMUTED} are possible"))
            return r.Sequence(tuple(parts), span)
        return parts[0] if len(parts) == 1 else r.Permute(tuple(parts), span)
