"""Lines for people, as a command goes on. Nothing is printed for callers from Python (`trendlake.Project`), who have
its documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from trendlake.jobs.terminal.hints import as_typed

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


def say(line: str = "") -> None:
    """Prints a line on stdout."""
    if not _SILENT.get():
        print(line, flush=True)


def print_error(message: str) -> None:
    """Prints a line on stderr; the commands that it names work as typed."""
    if not _SILENT.get():
        print(as_typed(message), file=sys.stderr, flush=True)


def is_silent() -> bool:
    """Whether nothing is printed, so that no table has to be made."""
    return _SILENT.get()


@contextmanager
def silence() -> Iterator[None]:
    """Meanwhile nothing is printed by this thread."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)
