"""Texts for people: an exception as one line (what failed, and the deepest cause), a count with its noun."""

from __future__ import annotations

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.redaction import redacted

LENGTH = 2000
"""Characters of a line."""
CAUSES = 10
"""Causes of an exception that are looked at."""
_NO_NEWS = ("Traceback (most recent call last):", "Driver stacktrace:", "An error occurred while calling ")


def in_words(error: Exception) -> str:
    """Its code or class and its message, without secrets. Of Java's errors, and those of Spark's workers, the message
    of each cause and no stack: of a long one the middle is left out, as the last cause says most."""
    if isinstance(error, TrendlakeError):
        said = f"[{error.code}] {error.message}"
    else:
        said = f"{type(error).__name__}: {' '.join(_messages(str(error)))}"
    said = redacted(" ".join(said.split()))
    if len(said) <= LENGTH:
        return said
    return f"{said[: LENGTH // 2 - 5]} [...] {said[-LENGTH // 2 + 5 :]}"


def full_text(error: BaseException) -> str:
    """The messages of the exception and of each of its causes, in one line, without a stack and uncut."""
    said: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(said) < CAUSES:
        said.append(f"{type(cause).__name__}: {' '.join(_messages(str(cause)))}")
        cause = cause.__cause__
    return redacted(" ".join(" ".join(said).split()))


def _messages(text: str) -> list[str]:
    """The lines of a message that are no stack, each once."""
    lines = [line.lstrip(": ") for line in text.splitlines() if line and not line[0].isspace()]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith(_NO_NEWS)))


def plural(count: int, noun: str) -> str:
    """`1 window`, `1,234 windows`."""
    return f"{count:,} {noun if count == 1 else several(noun)}"


def several(noun: str) -> str:
    """`windows`, `4-week stretches`."""
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"
