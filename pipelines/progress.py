"""The work that goes on in this process, for who shows it: `jobs.terminal.waiting` does, on a terminal or in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple


class Count(NamedTuple):
    """`done` of `total` `units`, a plural; None where it is not known how many are to come."""

    done: int
    total: int | None
    units: str

    def __str__(self) -> str:
        """`3 of 12 chunks`."""
        return f"{self.done:,} {'' if self.total is None else f'of {self.total:,} '}{self.units}"


@dataclass(eq=False)
class Work:
    """Work in words (`what`), with a count of its `units`, "" where there is none. `asked`: gives the count where
    another program does the work, None where it has begun nothing. `began`: by `time.monotonic`."""

    what: str
    units: str = ""
    total: int | None = None
    asked: Callable[[], Count | None] | None = None
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def advance(self, count: int = 1) -> None:
        """So many more units are done."""
        self.done += count

    @property
    def count(self) -> Count | None:
        if self.asked is not None:
            return self.asked()
        return Count(self.done, self.total, self.units) if self.units else None


_GOING: list[Work] = []


@contextmanager
def doing(
    what: str, units: str = "", total: int | None = None, asked: Callable[[], Count | None] | None = None
) -> Iterator[Work]:
    """Meanwhile the work is among those that are `going`."""
    work = Work(what, units, total, asked)
    _GOING.append(work)
    try:
        yield work
    finally:
        _GOING.remove(work)


def going() -> tuple[Work, ...]:
    """The work that goes on, each a part of the one before where they are of one thread."""
    return tuple(_GOING)
