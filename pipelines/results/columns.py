"""The columns of a pattern's result rows that hold their time, and the order in which rows are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.plan import ResultShape


def time_of(plan: AnyPlan) -> str:
    """The column that says which window a row is of."""
    return plan.owned(range(1))[0]


def rank_of(plan: AnyPlan) -> str:
    """The column whose greatest values come first: the logarithm of a count, else the rows' time."""
    return plan.result_shape.rank or time_of(plan)


def ranking_of(plan: AnyPlan) -> str:
    """The name for the first rows: those with the largest counts, or the latest."""
    return "busiest" if rank_of(plan).endswith("_log10") else "latest"


LISTED_IDS = ("events", "optional_events", "witness")
"""Sorts of columns that hold lists of event ids."""
IDS = (*LISTED_IDS, "event", "document", "end_event", "graph", "match")
"""Sorts of columns that name the events of a row, or the row."""
GROUPS = ("parameter", "group", "partition", "query")
"""Sorts of columns that say whose row it is."""
TIMES = ("window_start", "window_end", "start", "end", "lifetime_start", "lifetime_end")
IDS_OF_ROWS = ("match_id", "answer_id")
STARTS = {"window_start": "window_end", "lifetime_start": "lifetime_end"}
"""With the ends of windows, which follow from their starts."""


@dataclass(frozen=True)
class Reading:
    """The columns of results as people read them: the answer first, then whose and when it is, and ids last. Machines
    read them in the order of `AnyPlan.result_schema`."""

    measures: tuple[str, ...]
    groups: tuple[str, ...]
    times: tuple[str, ...]
    ids: tuple[str, ...]
    """Ids of events, lists of them and graphs; last the ids of rows."""
    companions: frozenset[str]
    """The logarithms of counts."""
    listed_ids: frozenset[str]
    """Those of `ids` that hold lists of event ids."""
    shape: ResultShape

    @classmethod
    def of(cls, plan: AnyPlan) -> Reading:
        shape, names = plan.result_shape, plan.result_schema.names

        def of_sorts(sorts: Sequence[str]) -> tuple[str, ...]:
            chosen = {name for sort in sorts for name in shape.columns.get(sort, ())}
            return tuple(name for name in names if name in chosen)

        others = (*IDS, *GROUPS, "log10", "window_date")
        mine = {*of_sorts([sort for sort in shape.columns if sort not in others])}
        groups, dates = of_sorts(GROUPS), of_sorts(("window_date",))
        listed = frozenset((*of_sorts(LISTED_IDS), *shape.listed_ids))
        events = {*of_sorts(IDS), *listed}
        own = {*mine, *groups}  # a pattern may give its columns the names of other kinds' columns
        times = tuple(name for name in names if name not in own and (name in TIMES or name in dates))
        rows = tuple(name for name in names if name in IDS_OF_ROWS and name not in own)
        ids = (*(name for name in names if name in events and name not in rows), *rows)
        companions = {name for name in names if name.removesuffix("_log10") in names and name.endswith("_log10")} - mine
        rest = {*groups, *times, *ids, *companions}
        measures = tuple(name for name in names if name not in rest)
        return cls(measures, groups, times, ids, frozenset(companions), listed, shape)

    def unit(self, name: str) -> int:
        """Of a column of lengths of time, how many of its unit make a second; 0 of another one."""
        micros = name in self.shape.durations or name in self.shape.micros
        return 1_000_000 if micros else int(name in self.shape.seconds)

    @property
    def every(self) -> tuple[str, ...]:
        """The columns in order, without the logarithms of counts."""
        return (*self.measures, *self.groups, *self.times, *self.ids)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that people are shown, in order: without the logarithm of each count and the ends of windows."""
        times = tuple(name for name in self.times if name not in STARTS.values())
        return (*self.measures, *self.groups, *times, *self.ids)

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Of `names`, the columns of a table, those that people are shown, in order; one that the plan does not have is
        shown last. The end of a window is shown where its start is not."""
        shown = [name for name in self.shown if name in names]
        ends = [end for start, end in STARTS.items() if end in names and start not in names]
        own = {*self.every, *self.companions}
        return (*shown, *ends, *(name for name in names if name not in own))
