"""The meaning of the columns of a results table, by the names that a kind gives them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS

LIFETIME, INTERVAL = ("lifetime_start", "lifetime_end"), ("start", "end")
"""The columns of times of a row that is a found pattern."""


@dataclass(frozen=True)
class Layout:
    """`windows`: a row is a group in a window. `lifetimes`: a run of an automaton. `graphs`: all matches that end at
    one event."""

    windows: bool
    lifetimes: bool
    graphs: bool
    named: bool
    """Whether columns other than the interval have the names that the query gives them: any."""

    @classmethod
    def of(cls, names: Collection[str], kind: str) -> Layout:
        """Of a table with the columns `names`, of a pattern of a kind."""
        if kind in ("algebra", "xml_join"):
            return cls(windows=False, lifetimes=False, graphs=False, named=True)
        return cls("window_start" in names, "lifetime_end" in names, "matches_log10" in names, named=False)

    @property
    def times(self) -> tuple[str, str]:
        """The columns of times of a row, if it is no window's."""
        return LIFETIME if self.lifetimes else INTERVAL

    @property
    def owner(self) -> str:
        """The column that says which stretch of time a row belongs to, if it is no window's."""
        return "lifetime_end" if self.lifetimes else "end"

    @property
    def hidden(self) -> frozenset[str]:
        """Columns that are not shown as values of a row."""
        ids = () if self.named or self.lifetimes else ("match_id", "graph", "matches_log10")
        return PROVENANCE_COLUMNS | {*self.times, *ids}
