"""The results of a pattern counted by Spark, for its page: however many rows there are, few of them come here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.report.bins import MONDAY_MICROS, SECOND, unit_of
from trendlake.pipelines.report.facts import Measure, PatternFacts
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.read_rows import NOUN, number_column
from trendlake.pipelines.report.shape import Shape
from trendlake.pipelines.site.overview import Counts, Ends, Key, Peak
from trendlake.pipelines.site.totals import order, totals
from trendlake.pipelines.spark.columns import column


def counts_by_spark(spark: SparkSession, path: str, pattern: PatternFacts, plan: AnyPlan | None) -> Counts | None:
    """Those of the results at `path` as they are now; None where there is no row."""
    table = spark.read.format("delta").load(path)
    forms = {row["plan_hash"]: row["count"] for row in table.groupBy("plan_hash").count().collect()}
    if not forms:
        return None
    if Layout.of(table.columns, pattern.kind).windows:
        return _windows(table, pattern, forms)
    return _stretches(table, pattern, plan, forms)


@dataclass(frozen=True)
class SparkCounts:
    """`rows` has the group as text (`g0` ...), the window in microseconds (`ws`, `we`), the amount `x` and, of counts,
    its log10 `l`."""

    rows: DataFrame
    forms: Mapping[str | None, int]
    groups: tuple[str, ...]
    measure: Measure
    unit: str
    extent: tuple[int, int] | None = None

    @property
    def keys(self) -> list[str]:
        return [f"g{i}" for i in range(len(self.groups))]

    @cached_property
    def by_window(self) -> DataFrame:
        """`ws`, `we`, `x`, `l` over all groups."""
        if self.measure.is_count:
            frame = totals(self.rows, ["ws", "we"])
        else:
            frame = self.rows.groupBy("ws", "we").agg(sf.max("x").alias("x"), sf.first("l").alias("l"))
        return frame.persist(StorageLevel.MEMORY_AND_DISK)

    @cached_property
    def by_group(self) -> DataFrame:
        """The keys and `peak`, the largest window."""
        return self.rows.groupBy(*self.keys).agg(self._largest).persist(StorageLevel.MEMORY_AND_DISK)

    @property
    def ends(self) -> Ends:
        columns = [sf.min("ws"), sf.max("ws"), sf.min("we"), sf.max("we"), sf.count(sf.lit(1))]
        return Ends(*self.by_window.agg(*columns).collect()[0])

    @property
    def group_count(self) -> int:
        return self.by_group.count()

    def totals(self, bucket: int | None) -> list[Peak]:
        return self._points(self.by_window, [], bucket).get((), [])

    def peaks(self, most: int) -> list[tuple[Key, Peak]]:
        rows = self._peaks(most).collect()
        return [(tuple(row[name] for name in self.keys), _peak(row["peak"])) for row in rows]

    def points(self, most: int, bucket: int | None) -> Mapping[Key, list[Peak]]:
        chosen = self._peaks(most).select(*[sf.col(name).alias(f"top_{name}") for name in self.keys])
        same = [sf.col(name).eqNullSafe(sf.col(f"top_{name}")) for name in self.keys]
        shown = self.rows.join(sf.broadcast(chosen), reduce(lambda a, b: a & b, same), "left_semi")
        return self._points(shown, self.keys, bucket)

    def close(self) -> None:
        self.by_window.unpersist()
        self.by_group.unpersist()

    def _peaks(self, most: int) -> DataFrame:
        return self.by_group.orderBy(sf.col("peak.o").desc_nulls_last(), *self.keys).limit(most)

    @property
    def _largest(self) -> Column:
        """Of equal ones the earliest, as everywhere."""
        rank = order() if self.measure.is_count else sf.col("x")
        earliest = [(-sf.col(name)).alias(f"before_{name}") for name in ("ws", "we")]
        return sf.max(sf.struct(rank.alias("o"), *earliest, "ws", "we", "x", "l")).alias("peak")

    def _points(self, rows: DataFrame, keys: list[str], bucket: int | None) -> Mapping[Key, list[Peak]]:
        slot = sf.col("ws") if bucket is None else number_column(sf.col("ws"), bucket)
        points: dict[Key, list[Peak]] = defaultdict(list)
        picked = rows.withColumn("slot", slot).groupBy(*keys, "slot").agg(self._largest).orderBy("slot").collect()
        for row in picked:
            points[tuple(row[name] for name in keys)].append(_peak(row["peak"]))
        return points


def _peak(row: Any) -> Peak:
    return Peak(row["ws"], row["we"], row["x"], row["l"])


def _windows(table: DataFrame, pattern: PatternFacts, forms: Mapping[str | None, int]) -> SparkCounts:
    """Of kind trends: a row is a window's already."""
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns))
    names = shape.measures
    if shape.measure.name in names:
        i = names.index(shape.measure.name)
        x, companion = sf.col(f"v{i}"), sf.col(f"l{i}")
    else:
        x, companion = sf.lit(1), sf.lit(0.0)
    if shape.measure.is_count:
        x = x.cast("decimal(38,0)")
        log = sf.coalesce(companion, sf.when(x > 0, sf.log10(x.cast("double"))))
    else:
        x, log = x.cast("double"), sf.lit(None).cast("double")
    rows = table.select(*shape.columns())
    keys = [f"g{i}" for i in range(len(shape.groups))]
    rows = rows.select(*keys, "ws", "we", x.alias("x"), log.alias("l"))
    return SparkCounts(rows, forms, shape.groups, shape.measure, "window")


def _stretches(
    table: DataFrame, pattern: PatternFacts, plan: AnyPlan | None, forms: Mapping[str | None, int]
) -> SparkCounts:
    """Of the other kinds: rows are counted (of graphs, what they hold) by stretches of time."""
    groups = tuple(name for name in pattern.group_by if name in table.columns)
    layout = Layout.of(table.columns, pattern.kind)
    owner = plan.owned(range(1))[0] if plan else layout.owner
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    if layout.graphs:
        x, log = column("matches").cast("decimal(38,0)"), column("matches_log10")
    else:
        x, log = sf.lit(1).cast("decimal(38,0)"), sf.lit(0.0)
    time = sf.unix_micros(column(owner))
    rows = table.select(*keys, time.alias("t"), x.alias("x"), log.alias("l"))
    first, last = rows.agg(sf.min("t"), sf.max("t")).collect()[0]
    unit = unit_of(moment(first), moment(last))
    start = number_column(sf.col("t"), unit.seconds) * (unit.seconds * SECOND) + MONDAY_MICROS
    cut = rows.withColumns({"ws": start, "we": start + unit.seconds * SECOND})
    names = [f"g{i}" for i in range(len(groups))]
    return SparkCounts(totals(cut, [*names, "ws", "we"]).drop("n"), forms, groups, NOUN, unit.name, (first, last))
