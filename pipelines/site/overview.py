"""The data of a chart and a heat map of all that a pattern has published: `Counts`, counted here or by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple, Protocol

from trendlake.pipelines.report.facts import Measure

HEAT_COLUMNS = 60
Key = tuple[str | None, ...]
"""A group: the text of each grouping column."""


class Peak(NamedTuple):
    """The largest window of some: its ends in microseconds, its amount `x` and, of counts, the log10 `l`."""

    ws: int
    we: int
    x: Decimal | int | float | None
    l: float | None  # noqa: E741 - as the column


class Ends(NamedTuple):
    """Of all windows, microseconds: first and last start, first and last end; how many there are."""

    first: int
    last: int
    first_end: int
    until: int
    windows: int


class Counts(Protocol):
    """All rows of a results table. A bucket is a number of seconds whose largest window stands for all, None where each
    stands for itself."""

    @property
    def forms(self) -> Mapping[str | None, int]:
        """Rows by plan hash."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The grouping columns."""

    @property
    def measure(self) -> Measure: ...

    @property
    def unit(self) -> str:
        """The word for a window."""

    @property
    def ends(self) -> Ends: ...

    @property
    def extent(self) -> tuple[int, int] | None:
        """Of rows that are counted by stretches of time: the first and the last moment of one, microseconds."""

    @property
    def group_count(self) -> int: ...

    def totals(self, bucket: int | None) -> list[Peak]:
        """Over all groups, in order of time."""

    def peaks(self, most: int) -> list[tuple[Key, Peak]]:
        """The largest groups with their largest windows, the largest first."""

    def points(self, most: int, bucket: int | None) -> Mapping[Key, list[Peak]]:
        """Of each of the largest groups, in order of time."""

    def close(self) -> None:
        """Frees what is held in memory."""
