"""Which rows of a results table belong to windows of a plan, whatever form of the pattern has made them.

A row of the plan's own form, and of most others, says by the plan's time column (`AnyPlan.owned`) which window it is
of. A form of another kind may say it by another column: a row of kind `trends` by its window, of `automaton` by its
lifetime, of the others by the events that it is of. Such a row belongs to the window in which its own time ends, as a
run of an interval computes the windows that end in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.lake.here.read import TableHere, inside
from trendlake.pipelines.spark.identifiers import quoted


class Interval(NamedTuple):
    """The columns by which rows of some kinds say of what time they are. A row ends `after` microseconds after the
    value of `last`: at 0 that is no longer part of it."""

    first: str
    last: str
    after: int

    @property
    def of_windows(self) -> bool:
        """Whether they are of whole windows (`ResultShape.of_windows`)."""
        return not self.after


INTERVALS = (
    Interval("window_start", "window_end", 0),
    Interval("lifetime_start", "lifetime_end", 1),
    Interval("start", "end", 1),
)
"""Of all kinds. Where a row has the columns of several, the first counts: a measure may be called `end`."""


def other_intervals(plan: AnyPlan, columns: Sequence[str]) -> list[Interval]:
    """Those of other kinds than `plan` that rows of a table with these `columns` may have."""
    time, there = plan.owned(range(1))[0], set(map(same_name, columns))
    return [item for item in INTERVALS if time not in item[:2] and {*item[:2]} <= there]


@dataclass(frozen=True)
class Place:
    """Rows with low <= `column` < high (microseconds) that have values in all columns of `has`, and of no group of
    columns in `lacks` in all."""

    column: str
    low: int
    high: int
    has: tuple[str, ...] = ()
    lacks: tuple[tuple[str, ...], ...] = ()

    def spark(self, alias: str = "") -> Column:
        """Whether a row, of those called `alias`, is one of them; NULL for some that are none."""

        def value(name: str) -> Column:
            return sf.col(f"{alias}.{quoted(name)}" if alias else quoted(name))

        def all_of(names: Sequence[str]) -> Column:
            return reduce(lambda a, b: a & b, [value(name).isNotNull() for name in names])

        low, high = (sf.timestamp_micros(sf.lit(moment)) for moment in (self.low, self.high))
        conditions = [value(self.column) >= low, value(self.column) < high]
        conditions += [all_of(self.has)] if self.has else []
        return reduce(lambda a, b: a & b, [*conditions, *(~all_of(names) for names in self.lacks)])

    def arrow(self, rows: pa.Table) -> pa.ChunkedArray:
        def all_of(names: Sequence[str]) -> pa.ChunkedArray:
            return reduce(pc.and_, [pc.is_valid(rows[name]) for name in names])

        mask = inside(rows, self.column, [(self.low, self.high)])
        mask = pc.and_(mask, all_of(self.has)) if self.has else mask
        return reduce(pc.and_, [mask, *(pc.invert(all_of(names)) for names in self.lacks)])


@dataclass(frozen=True)
class OwnedRows:
    """The rows of a table that belong to some windows: those at one of the `places`, which have no row in common."""

    places: tuple[Place, ...]

    @classmethod
    def of(cls, plan: AnyPlan, windows: range, columns: Sequence[str], withheld: range = range(0)) -> OwnedRows:
        """`columns`: of the table. None where there are no windows. Of windows that are `withheld` the rows of other
        kinds: a revision publishes them, and looks for rows by the plan's own time."""
        if withheld:
            time = plan.owned(withheld)[0]
            elsewhere = [place for place in cls.of(plan, withheld, columns).places if place.column != time]
            return cls((*cls.of(plan, windows, columns).places, *elsewhere))
        if not windows:
            return cls(())
        time, low, high = plan.owned(windows)
        start, end = plan.windows.since(windows[0]), plan.windows.end(windows[-1])
        own, others = set(map(same_name, plan.result_schema.names)), other_intervals(plan, columns)
        # A row of this plan has no value in a column that is not its own: who has one is of another form.
        certain = [item for item in others if not {*item[:2]} <= own]
        places, seen = list[Place](), tuple[tuple[str, ...], ...]()
        for item in certain:
            places.append(Place(item.last, start + 1 - item.after, end + 1 - item.after, item[:2], seen))
            seen = (*seen, item[:2])
        places.append(Place(time, low, high, (), seen))
        for item in others:
            if item not in certain:
                lacks = (*seen, (time,))
                places.append(Place(item.last, start + 1 - item.after, end + 1 - item.after, item[:2], lacks))
                seen = (*seen, item[:2])
        return cls(tuple(places))

    def spark(self, alias: str = "") -> Column:
        """As `Place.spark`."""
        return reduce(lambda a, b: a | b, [place.spark(alias) for place in self.places], sf.lit(False))

    def arrow(self, rows: pa.Table) -> pa.ChunkedArray:
        none = pa.chunked_array([pa.array([False] * rows.num_rows, pa.bool_())])
        return reduce(pc.or_, [place.arrow(rows) for place in self.places], none)

    def near(self, table: TableHere) -> TableHere:
        """The same table, with those files only that may hold such rows. Raises NotHereError."""
        parts = [table.near_time(place.column, [(place.low, place.high)]) for place in self.places]
        near = {file for part in parts for file in part.files}
        return table.part([file for file in table.files if file in near])
