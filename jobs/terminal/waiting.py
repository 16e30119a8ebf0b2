"""A sign on a terminal that a command works, while it has nothing to print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(what: str, *, silent: bool) -> Iterator[None]:
    """Meanwhile stderr says `what`, and that it goes on, if it is a terminal. Nothing is to be printed meanwhile."""
    if silent or not sys.stderr.isatty():  # a notebook has colours, and is no terminal
        yield
        return
    with Console(stderr=True).status(what):
        yield
