"""The meaning of the columns of a results table, by the names that a kind gives them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS

WINDOW, LIFETIME, INTERVAL = ("window_start", "window_end"), ("lifetime_start", "lifetime_end"), ("start", "end")
"""The columns of times of a row: of a window, or of a found pattern."""
TIMES = {"trends": WINDOW, "automaton": LIFETIME}
"""By kind; of the others it is `INTERVAL`."""


def present(wanted: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Of the columns `wanted`, written in letters of any case, those of a table that has `names`."""
    known = {same_name(name): name for name in names}
    return tuple(known[same_name(name)] for name in wanted if same_name(name) in known)


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
        """Of a pattern of a kind, whose columns are `names`: those of its plan or, where it does not compile, of its
        table. That may have the columns of other kinds, which the pattern has been of, or of those alone."""
        own = TIMES.get(kind, INTERVAL)
        times = next((item for item in (own, WINDOW, LIFETIME, INTERVAL) if {*item} <= {*names}), own)
        named = kind in ("algebra", "xml_join") and times == own
        graphs = times == INTERVAL and not named and "matches_log10" in names
        return cls(times == WINDOW, times == LIFETIME, graphs, named)

    @property
    def times(self) -> tuple[str, str]:
        """The columns of times of a row."""
        return WINDOW if self.windows else LIFETIME if self.lifetimes else INTERVAL

    @property
    def owner(self) -> str:
        """The column that says which stretch of time a row belongs to, if it is no window's."""
        return "lifetime_end" if self.lifetimes else "end"

    @property
    def hidden(self) -> frozenset[str]:
        """Columns that are not shown as values of a row."""
        ids = () if self.named or self.lifetimes or self.windows else ("match_id", "graph", "matches_log10")
        return PROVENANCE_COLUMNS | {*self.times, *ids}
