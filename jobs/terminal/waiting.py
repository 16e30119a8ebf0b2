"""A sign on a terminal that a command works, while it has nothing to print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(what: str, *, silent: bool) -> Iterator[None]:
    """Meanwhile stderr says `what`, and that it goes on, if it is a terminal. Nothing is to be printed meanwhile."""
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
