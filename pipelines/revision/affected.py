"""The parts that changed events touch: pairs of a unit of the work and a window, and the reading and keeping of those
only.

Exact by what a plan promises: the rows of a window depend on the events in it, and events that differ on `unit_key`
share no result row, be they events of a NOT or not: a NOT whose events do not have to agree on a column leaves that
column out of `unit_key`. The value of a column that the results do not show is unknown for a published row: then a unit
is coarser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DoubleType

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import BEGINNING, END
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.notes import Work
from trendlake.pipelines.results.windows import (
    MOST,
    Stretch,
    event_windows,
    fewer,
    row_window,
    shown_unit,
    united,
    within,
)
from trendlake.pipelines.runs.code_versions import versions_of_revision
from trendlake.pipelines.spark.columns import column, earliest

WINDOW = "__trendlake_window"
UNIT = "__trendlake_unit"


@dataclass(frozen=True)
class Affected:
    """Windows in stretches (first and last, both included; in order, disjoint): of those in `whole` every unit; of the
    others the `pairs` only (columns `UNIT`0, `UNIT`1 ... and `WINDOW`), whose windows are `touched`.
    Where windows hold all that was before, `WINDOW` is the first of a unit, and those after it are also its own."""

    plan: AnyPlan
    whole: tuple[Stretch, ...] = ()
    touched: tuple[Stretch, ...] = ()
    pairs: DataFrame | None = None

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        return tuple(united([(first, last + 1) for first, last in (*self.whole, *self.touched)], last=True))

    @property
    def windows(self) -> range:
        """From the first to the last of them."""
        return range(self.stretches[0][0], self.stretches[-1][1] + 1) if self.stretches else range(0)

    @property
    def count(self) -> int:
        return sum(last - first + 1 for first, last in self.stretches)

    @property
    def interval(self) -> tuple[int | None, int]:
        """The half-open time range of the windows (not empty), microseconds; without a start if they hold all history:
        that start is before the year 1."""
        windows, affected = self.plan.windows, self.windows
        start = None if windows.endless else max(windows.start(affected[0]), BEGINNING)
        return start, min(windows.end(affected[-1]), END)

    def events(self, time_name: str, starts: Iterable[str] = ()) -> Column:
        """Whether a row's time, or its interval, is in the windows, or between windows that `MOST` joined; never
        NULL. `time_name`: the column with the time of events; `starts`: those with the times at which they begin."""
        time, windows = column(time_name), self.plan.windows
        begins = earliest(time_name, starts)
        spans = [windows.span(range(first, last + 1)) for first, last in self.stretches]
        ends = united([(max(start, BEGINNING), min(end, END + 1)) for start, end in spans])
        inside = [
            (time >= sf.timestamp_micros(sf.lit(start))) & (begins < sf.timestamp_micros(sf.lit(end)))
            for start, end in fewer(ends, MOST)
        ]
        return sf.coalesce(reduce(lambda a, b: a | b, inside, sf.lit(False)), sf.lit(False))

    def of_units(self, events: DataFrame) -> DataFrame:
        """The events of the units, and perhaps others: rows that they make are not kept."""
        if self.whole or self.pairs is None or not shown_unit(self.plan):
            return events
        return events.join(self.pairs.drop(WINDOW).distinct(), self._same_unit(), "semi")

    def rows(self, results: DataFrame) -> DataFrame:
        """Of result rows those that belong to the windows and units."""
        if not self.stretches:
            return results.limit(0)
        time = column(self.plan.owned(self.windows)[0])
        slices = fewer([slice_of(self.plan, *stretch) for stretch in self.stretches], MOST)
        near = [time.between(sf.timestamp_micros(sf.lit(a)), sf.timestamp_micros(sf.lit(b - 1))) for a, b in slices]
        nearby = results.where(reduce(lambda a, b: a | b, near))
        inside = within(row_window(self.plan), self.whole)
        if self.pairs is None:
            return nearby.where(inside)
        window, others = row_window(self.plan), nearby.where(~inside)
        if self.plan.windows.endless:
            others = others.where(within(window, self.touched))
            same = window >= sf.col(WINDOW)
        else:
            same = window == sf.col(WINDOW)
        others = others.join(self.pairs, [*self._same_unit(), same], "semi")
        return nearby.where(inside).unionByName(others) if self.whole else others

    def _same_unit(self) -> list[Column]:
        names = enumerate(shown_unit(self.plan))
        return [unit_value(self.plan, name).eqNullSafe(sf.col(f"{UNIT}{i}")) for i, name in names]


def unit_value(plan: AnyPlan, name: str) -> Column:
    """A column of a unit, of the source or of the results, as the kernels read it (`cep_core.events.normalise`): in the
    type that results have, so that values which are one there are one unit; of doubles a NaN is a NULL. That -0.0 is
    0.0 Spark knows by itself, where it joins and where it tells rows apart."""
    kind = from_arrow_type(plan.result_schema.field(name).type)
    value = column(name).cast(kind)
    return sf.nanvl(value, sf.lit(None)) if isinstance(kind, DoubleType) else value


def touched_by(
    plan: AnyPlan, good: DataFrame | None, published: Sequence[Stretch], whole: Sequence[Stretch]
) -> Affected:
    """The windows of `whole`, and the pairs that changed good events (plan columns) touch among those `published`."""
    if good is None or not published:
        return Affected(plan, tuple(whole))
    if plan.event_types is not None and plan.schema.event_type in good.columns:
        good = good.where(column(plan.schema.event_type).isin(list(plan.event_types)))
    low, high = published[0][0], published[-1][1]
    first, last = event_windows(plan)
    units = [unit_value(plan, name).alias(f"{UNIT}{i}") for i, name in enumerate(shown_unit(plan))]
    if plan.windows.endless:
        firsts = good.select(*units, sf.greatest(first, sf.lit(low)).alias(WINDOW)).where(sf.col(WINDOW) <= high)
        return _from_windows_on(plan, firsts, published, whole)
    ends = good.select(*units, sf.greatest(first, sf.lit(low)).alias("a"), sf.least(last, sf.lit(high)).alias("b"))
    ends = ends.where(sf.col("a") <= sf.col("b")).distinct()
    ends = ends.withColumn(WINDOW, sf.explode(sf.sequence("a", "b"))).drop("a", "b")
    pairs = ends.where(within(sf.col(WINDOW), published)).distinct().persist(StorageLevel.MEMORY_AND_DISK)
    touched = [row[0] for row in pairs.select(WINDOW).distinct().collect()]
    return Affected(plan, tuple(whole), tuple(united([(j, j + 1) for j in touched], last=True)), pairs)


def _from_windows_on(
    plan: AnyPlan, firsts: DataFrame, published: Sequence[Stretch], whole: Sequence[Stretch]
) -> Affected:
    """As `touched_by`, where an event touches a window and all after it. `firsts`: the units of changed events, with
    the first `WINDOW` of each event."""
    units = [name for name in firsts.columns if name != WINDOW]
    pairs = firsts.groupBy(*units).agg(sf.min(WINDOW).alias(WINDOW)).persist(StorageLevel.MEMORY_AND_DISK)
    start = pairs.agg(sf.min(WINDOW)).collect()[0][0]
    touched = () if start is None else tuple((max(a, start), b) for a, b in published if b >= start)
    if not units:
        pairs.unpersist()
        return Affected(plan, tuple(united([(a, b + 1) for a, b in (*whole, *touched)], last=True)))
    return Affected(plan, tuple(whole), touched, pairs)


def work_of_revision(plan: AnyPlan, affected: Affected, *, local: bool) -> Work:
    """The note of a revision that computed the pairs of `affected`. Where it computed some groups of a window, or there
    are too many stretches to name, it notes that a part was computed: too little is claimed then, never too much."""
    whole = not local and not shown_unit(plan)
    computed = affected.stretches if whole else affected.whole
    in_part: Sequence[Stretch] = () if whole else affected.touched
    if len(computed) > MOST:
        computed, in_part = (), (*computed, *in_part)
    parts = fewer(united([(first, last + 1) for first, last in in_part], last=True), MOST) if in_part else ()
    slices, in_part_slices = (tuple(slice_of(plan, *stretch) for stretch in some) for some in (computed, parts))
    return Work(versions_of_revision(plan, local=local), slices, in_part_slices)
