"""Regular expressions of contracts: Java's meaning, as an expression for RE2, which Arrow asks.

`^a.$` -> `^a[^\\n\\r\\x{85}\\x{2028}\\x{2029}]$`. Characters, classes of characters and ranges, `.`, `^`, `$`, groups,
alternatives, quantifiers and `(?s)` at the beginning mean the same to both, or can be written so. Everything else is
refused, with its name and place (java.util.regex.Pattern; RE2's syntax page).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import TextError

LINE_ENDS = "[\n\r\x85\u2028\u2029]"
LAST_LINE_END = "(?:\r\n|[\n\r\x85\u2028\u2029])$"
"""`$` is before it too, if it is at the end of a text."""
DOT_ALL, ANY = "(?s)", "(?s:.)"
"""The flag at the beginning by which `.` is every character, and such a `.`."""
_ESCAPED = r"\\(?:[dwsDWStnrf!-/:-@\[\\\]^`{-~]|x[0-9a-fA-F]{2})"
_TOKENS = re.compile(
    rf"(?P<class>\[\^?(?:{_ESCAPED}|&(?!&)|[^\[\]\\&])+\])|(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<or>\|)"
    rf"|(?P<start>\^)|(?P<end>\$)|(?P<quantifier>(?:[*+?]|\{{\d{{1,3}}(?:,(?:\d{{1,3}})?)?\}})\??)"
    rf"|(?P<one>{_ESCAPED}|[^\\^$|?*+()\[{{])",
    re.DOTALL,
)
_MEMBERS = re.compile(rf"{_ESCAPED}|.", re.DOTALL)
_OTHERWISE = {".": "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]", r"\s": "[\\t-\\r ]", r"\S": "[^\\t-\\r ]"}
_OTHERWISE_IN_CLASS = {r"\s": "\\t-\\r ", r"\S": "\\x00-\\x08\\x0E-\\x1F!-\\x{10FFFF}"}
_NAMES = (
    (r"\(\?<?[=!]", "look-around"),
    (r"\(\?>", "an atomic group"),
    (r"\(\?P?<", "a group with a name"),
    (r"\(\?", "a flag"),
    (r"\\(?:[1-9]|k)", "a back reference"),
    (r"\\[bBAGZzR]", "a boundary"),
    (r"\\[pP]", "a Unicode class"),
    (r"\\Q", "a quotation"),
    (r"\\", "an escape"),
    (r"\[\^?(?:\\.|[^\]\\])*&&", "an intersection of classes"),
    (r"\[\^?(?:\\.|[^\[\]\\])*\[", "a class within a class"),
    (r"\[", "a class that does not end, or is empty"),
    (r"\{", "a brace that is no quantifier of up to 999"),
)
HINT = "use characters, [classes], ranges, `.`, ^, $, (groups), | and quantifiers"


@dataclass(frozen=True)
class Expression:
    """`text`: for RE2. `ends`: whether `$` is in it."""

    text: str
    ends: bool


@dataclass
class _Group:
    """`empty`: whether its alternative may match nothing so far, `empty_before`: so without its last part; `ended`:
    whether `$` is in it. `any_empty`, `any_ended`: of the alternatives before."""

    offset: int
    empty: bool = True
    empty_before: bool = True
    ended: bool = False
    any_empty: bool = False
    any_ended: bool = False

    def add(self, *, may_be_empty: bool) -> None:
        self.empty_before, self.empty = self.empty, self.empty and may_be_empty

    def end(self) -> None:
        """Of an alternative."""
        self.any_empty, self.any_ended = self.any_empty or self.empty, self.any_ended or self.ended
        self.empty, self.ended = True, False


@lru_cache(maxsize=1000)
def expression_of(pattern: str) -> Expression:
    """Raises TextError for what Java and RE2 read differently, or do not read; its `offset` points into `pattern`."""
    groups, parts = [_Group(0)], []
    closed: _Group | None = None
    dot_all = pattern.startswith(DOT_ALL)
    before, offset = "start", len(DOT_ALL) if dot_all else 0
    while offset < len(pattern):
        token = _TOKENS.match(pattern, offset)
        if token is None:
            raise _unknown(pattern, offset)
        kind, text = str(token.lastgroup), token[0]
        group = groups[-1]
        if group.ended and kind in ("class", "open", "one", "start"):
            raise TextError("'$' is followed by more", offset, len(text), "`$` ends an expression, or an alternative")
        if kind == "open":
            groups.append(_Group(offset))
        elif kind == "close":
            if len(groups) == 1:
                raise TextError("a ')' without its '('", offset, 1)
            closed = groups.pop()
            closed.end()
            groups[-1].add(may_be_empty=closed.any_empty)
            groups[-1].ended |= closed.any_ended
        elif kind == "quantifier":
            _check_quantifier(text, before, closed, offset)
            if text[0] in "*?" or re.match(r"\{0+\D", text):
                group.empty = group.empty_before
        elif kind == "or":
            group.end()
        else:
            group.add(may_be_empty=kind in ("start", "end"))
            group.ended |= kind == "end"
        written = ANY if dot_all and text == "." else _OTHERWISE.get(text, text)
        parts.append(_class_of(text, offset) if kind == "class" else written)
        before, offset = ("anchor" if kind in ("start", "end") else kind), token.end()
    if len(groups) > 1:
        raise TextError("a '(' without its ')'", groups[-1].offset, 1)
    groups[0].end()
    expression = Expression("".join(parts), groups[0].any_ended)
    try:
        pc.match_substring_regex(pa.array([""], pa.string()), expression.text)
    except pa.ArrowInvalid:
        raise TextError("the expression is too large", 0, len(pattern), "smaller numbers in braces") from None
    return expression


def _check_quantifier(text: str, before: str, closed: _Group | None, offset: int) -> None:
    """Raises TextError."""
    if before == "quantifier":
        raise TextError("a possessive quantifier" if text == "+" else "two quantifiers", offset, len(text), HINT)
    if before not in ("one", "class", "close"):
        raise TextError("a quantifier of nothing", offset, len(text), HINT)
    if before == "close" and closed is not None and closed.any_empty:
        raise TextError("a quantifier of a group that may be empty", offset, len(text), "let the group match something")
    counts = [int(count) for count in re.findall(r"\d+", text)]
    if counts != sorted(counts):
        raise TextError("a quantifier whose numbers go down", offset, len(text))


def _class_of(text: str, offset: int) -> str:
    """A class for RE2. Raises TextError for a range that is none."""
    opening = "[^" if text.startswith("[^") and len(text) > 3 else "["
    members = _MEMBERS.findall(text[len(opening) : -1])
    ranges = [at for at, one in enumerate(members) if one == "-" and 0 < at < len(members) - 1]
    for at, number in enumerate(ranges):
        low, high = members[number - 1], members[number + 1]
        one_each = len(low) == 1 and len(high) == 1
        if not one_each or low > high or (at and number - ranges[at - 1] < 3):
            raise TextError(f"'{low}-{high}' is no range", offset, len(text), r"write a hyphen as \-")
    return opening + "".join(_OTHERWISE_IN_CLASS.get(one, one) for one in members) + "]"


def _unknown(pattern: str, offset: int) -> TextError:
    for text, name in _NAMES:
        if part := re.compile(text).match(pattern, offset):
            return TextError(f"{name}, which is not supported", offset, len(part[0]), HINT)
    return TextError("a part that is not supported", offset, 1, HINT)
