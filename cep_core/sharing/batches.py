"""Plans of one form, collected until they are worth running as one.

A run costs a millisecond however few its events; and a slice of many events, copied for its plan, costs more than it
saves. So only plans of few events are run as one, some hundred thousand events at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trendlake.cep_core.sharing.interest import Interest

FEW_ROWS = 20_000
"""A plan of more rows is run by itself."""
FULL = 100_000
"""Rows of a batch."""
HELD = 4_000_000
"""Rows of all batches that wait."""


@dataclass
class Batch:
    """Plans of one form, by number, asked for the same windows."""

    form: Any
    windows: range | None
    numbers: list[int] = field(default_factory=list)
    interests: list[Interest] = field(default_factory=list)
    rows: int = 0


class Batches:
    """Those that are not full."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[Any, range | None], Batch] = {}
        self.held = 0

    @staticmethod
    def small(rows: int) -> bool:
        """Whether a plan of so many rows is run with others."""
        return rows <= FEW_ROWS

    def add(self, key: tuple[Any, range | None], number: int, interest: Interest) -> Iterator[Batch]:
        """Collects a plan under its form and windows; the batches that are then to be run."""
        batch = self.waiting.setdefault(key, Batch(*key))
        batch.numbers.append(number)
        batch.interests.append(interest)
        batch.rows += len(interest.rows)
        self.held += len(interest.rows)
        if batch.rows >= FULL:
            del self.waiting[key]
            self.held -= batch.rows
            yield batch
        if self.held >= HELD:
            yield from self.rest()

    def rest(self) -> Iterator[Batch]:
        """All that wait; none does then."""
        batches, self.waiting, self.held = list(self.waiting.values()), {}, 0
        yield from batches
