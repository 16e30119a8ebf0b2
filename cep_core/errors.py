"""The mistakes a user can make, one class each, with a stable code, a place and a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_ERRORS = 100
"""The number of mistakes of one file that are reported; the last report says that there are more."""
MAX_MESSAGE = 1_000
"""Characters of a message or hint: what it quotes of a file may be of any length."""
MAX_LINE = 160
"""Characters shown of the line a mistake is in; BEFORE of them before its place."""
BEFORE = 100


def readable(text: str) -> str:
    """`text` as any terminal and log can show it: characters that are not printed (controls, halves of surrogate pairs,
    marks of direction) by their numbers, the middle of what is very long left out."""
    if len(text) > MAX_MESSAGE:
        text = f"{text[: MAX_MESSAGE - 200]} [...] {text[-150:]}"
    return "\n".join(_plain(line) for line in text.split("\n"))


def _plain(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else " " if char == "\t" else f"\\u{ord(char):04x}" for char in line)


@dataclass(frozen=True)
class Place:
    """Where a mistake stands: `line` and `column` count from 1; `text` is that line, `width` the caret's length."""

    file: str
    line: int
    column: int
    text: str = ""
    width: int = 1

    def __str__(self) -> str:
        return f"{readable(self.file)}:{self.line}:{self.column}"

    def pointed(self) -> tuple[str, str]:
        """The line, or the part of a long one around the place, and the carets below it."""
        start = max(0, min(self.column - 1, len(self.text)) - BEFORE)
        shown, end = self.text[start : start + MAX_LINE], self.column - 1 - start
        before = _plain(shown[:end])
        carets = "^" * min(max(1, self.width), max(1, MAX_LINE - end))
        return before + _plain(shown[end:]), " " * (len(before) + max(0, end - len(shown))) + carets


class TrendlakeError(Exception):
    """Base of every error that the user can fix: no traceback is shown for it."""

    code = "TRENDLAKE"

    def __init__(self, message: str, *, place: Place | None = None, hint: str | None = None) -> None:
        self.message = readable(message)
        self.place = place
        self.hint = readable(hint) if hint else hint
        super().__init__(self.message)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        lines = [f"{where}[{self.code}] {self.message}"]
        if self.place and self.place.text:
            lines.extend(f"    {line}" for line in self.place.pointed())
        if self.hint:
            lines.append(f"    {self.hint}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows in place of a traceback."""
        return str(self).split("\n")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.place, self.hint))


def _rebuild(kind: type[TrendlakeError], message: str, place: Place | None, hint: str | None) -> TrendlakeError:
    return kind(message, place=place, hint=hint)


class FileUnreadableError(TrendlakeError):
    """The file does not exist, or is not text."""

    code = "FILE_UNREADABLE"


class YamlSyntaxError(TrendlakeError):
    """The file is not YAML, or repeats a key."""

    code = "YAML_SYNTAX"


class UnknownKeyError(TrendlakeError):
    """A key that no pattern file has."""

    code = "UNKNOWN_KEY"


class BadValueError(TrendlakeError):
    """A key is missing, or its value is not of the kind the key takes."""

    code = "BAD_VALUE"


class PatternSyntaxError(TrendlakeError):
    """A pattern, condition, measure or duration does not parse."""

    code = "SYNTAX"


class TextError(PatternSyntaxError, ValueError):
    """A syntax error that knows its offset (characters) and width in the text."""

    def __init__(self, message: str, offset: int, width: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset
        self.width = width

    def __reduce__(self) -> tuple[object, ...]:
        return (TextError, (self.message, self.offset, self.width, self.hint))


class BadPatternError(TrendlakeError):
    """The pattern parses but has no meaning: it can be empty, or an operator stands where it may not."""

    code = "BAD_PATTERN"


class UnknownVariableError(TrendlakeError):
    """A name that no part of the pattern defines."""

    code = "UNKNOWN_VARIABLE"


class UnknownParameterError(TrendlakeError):
    """A `$name` that `for_each` does not define, or that stands where no parameter may."""

    code = "UNKNOWN_PARAMETER"


class UnknownTypeError(TrendlakeError):
    """An event type the source does not have."""

    code = "UNKNOWN_TYPE"


class UnknownAttributeError(TrendlakeError):
    """A column the source does not have."""

    code = "UNKNOWN_ATTRIBUTE"


class TypeMismatchError(TrendlakeError):
    """An operator or function over values it does not take."""

    code = "TYPE_MISMATCH"


class BadConditionError(TrendlakeError):
    """A condition that is none of local, equivalence and adjacent, or a measure that is no aggregate."""

    code = "BAD_CONDITION"


class NotSupportedError(TrendlakeError):
    """The language has it; this version of the engine does not yet. Never answered with a guess."""

    code = "NOT_SUPPORTED"


class WindowTooLargeError(TrendlakeError):
    """A window needs more memory than the worker has."""

    code = "WINDOW_TOO_LARGE"


class TooManyMatchesError(TrendlakeError):
    """A partition has as many matches in a window as `limit_per_partition` allows, or more: none is left out."""

    code = "TOO_MANY_MATCHES"


class BadEventsError(TrendlakeError):
    """The events given do not have the columns or types the plan reads."""

    code = "BAD_EVENTS"


class LookupRepeatedError(TrendlakeError):
    """Two different rows of a reference table hold for one key at one moment: which of them counts is not known."""

    code = "LOOKUP_REPEATED"


class EngineFailureError(TrendlakeError):
    """The engine failed on one of several patterns, for lack of memory or by a mistake of its own."""

    code = "ENGINE_FAILURE"


class UnknownPrefixError(TrendlakeError):
    """A prefix of a name in a path that `namespaces` does not define."""

    code = "UNKNOWN_PREFIX"


class TooManyAnswersError(TrendlakeError):
    """A query has more answers that end with one document than `limit_per_document` allows: none is left out."""

    code = "TOO_MANY_ANSWERS"


class SkipFailedError(TrendlakeError):
    """AFTER MATCH SKIP names a row that a match does not have, or its first one, so that matching cannot go on."""

    code = "SKIP_FAILED"


class SearchTooLongError(TrendlakeError):
    """The search for a match from one row takes more steps than `limit_per_start` allows: no match is given up."""

    code = "SEARCH_TOO_LONG"


class LimitError(TrendlakeError):
    """A partition has more rows of a result in a pane than `limit_per_partition` allows: none is left out."""

    code = "LIMIT"


class PatternWarning(UserWarning):
    """A condition without effect, or one that is never true."""


class AssumptionWarning(UserWarning):
    """An assumption of `evaluate` about events that do not say it: the zone of their times, the order of their
    texts."""


class DocumentWarning(UserWarning):
    """Documents that are left out, because they break a rule of XML documents."""


class MoreErrors(TrendlakeError):  # noqa: N818 - it stands for several
    """The number of further mistakes in a file with many."""

    code = "MORE"


class PatternErrors(TrendlakeError):  # noqa: N818 - it is several
    """All the mistakes of one file, together."""

    code = "PATTERN"

    def __init__(self, errors: Iterable[TrendlakeError]) -> None:
        parts = tuple(errors)
        if len(parts) > MAX_ERRORS + 1:
            more = MoreErrors("and more: fix these first", place=parts[MAX_ERRORS].place)
            parts = (*parts[:MAX_ERRORS], more)
        self.errors: tuple[TrendlakeError, ...] = parts
        count = len(parts)
        super().__init__(f"{count} error{'s' if count != 1 else ''}")

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.errors,))


def in_words_of_yaml(error: Mapping[str, Any]) -> str:
    """The fault of a value, from pydantic's description of the error."""
    cause = error.get("ctx", {}).get("error")
    if cause is not None:
        return str(cause)
    if error["type"] in ("tuple_type", "list_type"):
        return f"expected a list, found {error['input']!r}"
    if error["type"] == "too_short" and error["ctx"]["actual_length"] == 0:
        return "the list is empty"
    return str(error["msg"])


def did_you_mean(word: str, words: Iterable[str]) -> str | None:
    """`did you mean 'x'?` for the closest known word, else the list of known ones, else None."""
    names = list(dict.fromkeys(words))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if names and len(names) <= 20:
        return "known: " + ", ".join(names)
    return None
