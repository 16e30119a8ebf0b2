"""All that a pattern has published, boiled down in Spark to what a chart and a heat map show.

However many groups and windows there are, few rows come here: the totals of at most `MOST_POINTS` stretches of time,
and the `GROUPS_SHOWN` largest groups in at most `HEAT_COLUMNS` of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from pipelines.report.amounts import Amount
from pipelines.report.facts import Measure, PatternFacts, Point, Window
from pipelines.report.read_rows import MOST_UNITS, NOUN, UNITS
from pipelines.report.read_run import utc
from pipelines.report.shape import Shape
from pipelines.report.summary import BUCKETS, MOST_POINTS
from pipelines.site.facts import GroupFacts, OverviewFacts
from pipelines.site.totals import order, totals
from pipelines.spark.columns import column

GROUPS_SHOWN = 24
HEAT_COLUMNS = 60
SECOND = 10**6


@dataclass(frozen=True)
class _Counted:
    """Result rows of one shape: `rows` has the group as text (`keys`), the window in microseconds (`ws`, `we`), the
    amount `x` and, of counts, its log10 `l`."""

    rows: DataFrame
    groups: tuple[str, ...]
    measure: Measure
    unit: str

    @property
    def keys(self) -> list[str]:
        return [f"g{i}" for i in range(len(self.groups))]

    @property
    def rank(self) -> Column:
        return order() if self.measure.is_count else sf.col("x")


def read_overview(spark: SparkSession, path: str, pattern: PatternFacts, plan: AnyPlan | None) -> OverviewFacts | None:
    """The results at `path` as they are now; None where there is no row. `plan`: the pattern's, where it compiles."""
    table = spark.read.format("delta").load(path)
    forms = {row["plan_hash"]: row["count"] for row in table.groupBy("plan_hash").count().collect()}
    if not forms:
        return None
    counted = _windows(table, pattern) if "window_start" in table.columns else _stretches(table, pattern, plan)
    by_window = _by_window(counted).persist(StorageLevel.MEMORY_AND_DISK)
    by_group = _by_group(counted).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        ends = [sf.min("ws"), sf.max("ws"), sf.min("we"), sf.max("we"), sf.count(sf.lit(1))]
        first, last, first_end, until, windows = by_window.agg(*ends).collect()[0]
        bucket, heat = (_bucket(windows, last - first, most) for most in (MOST_POINTS, HEAT_COLUMNS))
        peaks = by_group.orderBy(sf.col("peak.o").desc_nulls_last(), *counted.keys).limit(GROUPS_SHOWN)
        return OverviewFacts(
            group_columns=counted.groups,
            measure=counted.measure,
            unit=counted.unit,
            rows=sum(forms.values()),
            earlier_rows=_earlier(forms, plan, first, until),
            windows=windows,
            first=utc(first),
            last=utc(until),
            totals=_points(by_window, [], bucket, counted)[()],
            bucket_seconds=bucket,
            step_seconds=(plan.windows.slide if plan and counted.unit == "window" else first_end - first) / SECOND,
            group_count=by_group.count() if counted.groups else 0,
            groups=_groups(counted, peaks, heat) if counted.groups else (),
            heat_seconds=heat,
        )
    finally:
        by_window.unpersist()
        by_group.unpersist()


def _windows(table: DataFrame, pattern: PatternFacts) -> _Counted:
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
    return _Counted(rows.select(*keys, "ws", "we", x.alias("x"), log.alias("l")), shape.groups, shape.measure, "window")


def _stretches(table: DataFrame, pattern: PatternFacts, plan: AnyPlan | None) -> _Counted:
    """Of the other kinds: rows are counted (of graphs, what they hold) by stretches of time."""
    groups = tuple(name for name in pattern.group_by if name in table.columns)
    owner = plan.owned(range(1))[0] if plan else "end" if "end" in table.columns else "lifetime_end"
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    if "matches_log10" in table.columns:
        x, log = column("matches").cast("decimal(38,0)"), column("matches_log10")
    else:
        x, log = sf.lit(1).cast("decimal(38,0)"), sf.lit(0.0)
    time = sf.unix_micros(column(owner))
    rows = table.select(*keys, time.alias("t"), x.alias("x"), log.alias("l"))
    first, last = rows.agg(sf.min("t"), sf.max("t")).collect()[0]
    most = min(MOST_UNITS, HEAT_COLUMNS)
    known = [(name, size) for name, size in UNITS.items() if last - first <= size * SECOND * most]
    unit, seconds = known[0] if known else ("", next(b for b in _buckets() if last - first <= b * SECOND * most))
    start = sf.floor(sf.col("t") / (seconds * SECOND)).cast("bigint") * (seconds * SECOND)
    cut = rows.withColumns({"ws": start, "we": start + seconds * SECOND})
    names = [f"g{i}" for i in range(len(groups))]
    said = unit or f"stretch of {seconds // UNITS['day']} days"
    return _Counted(totals(cut, [*names, "ws", "we"]).drop("n"), groups, NOUN, said)


def _by_window(counted: _Counted) -> DataFrame:
    """`ws`, `we`, `x`, `l` over all groups."""
    if counted.measure.is_count:
        return totals(counted.rows, ["ws", "we"])
    return counted.rows.groupBy("ws", "we").agg(sf.max("x").alias("x"), sf.first("l").alias("l"))


def _by_group(counted: _Counted) -> DataFrame:
    """The keys and `peak`, the largest window."""
    return counted.rows.groupBy(*counted.keys).agg(_largest(counted))


def _largest(counted: _Counted) -> Column:
    return sf.max(sf.struct(counted.rank.alias("o"), "ws", "we", "x", "l")).alias("peak")


def _groups(counted: _Counted, peaks: DataFrame, heat: int | None) -> tuple[GroupFacts, ...]:
    ranked = peaks.collect()
    renamed = peaks.select(*[sf.col(name).alias(f"top_{name}") for name in counted.keys])
    same = [sf.col(name).eqNullSafe(sf.col(f"top_{name}")) for name in counted.keys]
    shown = counted.rows.join(sf.broadcast(renamed), reduce(lambda a, b: a & b, same), "left_semi")
    points = _points(shown, counted.keys, heat, counted)
    groups = []
    for row in ranked:
        key = tuple(row[name] for name in counted.keys)
        groups.append(GroupFacts(key, _amount(row["peak"], counted.measure), points[key]))
    return tuple(groups)


def _points(
    rows: DataFrame, keys: list[str], bucket: int | None, counted: _Counted
) -> dict[tuple[str | None, ...], tuple[Point, ...]]:
    """By key, in order of time: the largest window of each stretch of `bucket` seconds, or each."""
    slot = sf.col("ws") if bucket is None else sf.floor(sf.col("ws") / (bucket * SECOND))
    points_of: dict[tuple[str | None, ...], list[Point]] = defaultdict(list)
    picked = rows.withColumn("slot", slot).groupBy(*keys, "slot").agg(_largest(counted)).orderBy("slot").collect()
    for row in picked:
        peak = row["peak"]
        window = Window(utc(peak["ws"]), utc(peak["we"]))
        points_of[tuple(row[name] for name in keys)].append(Point(window, _amount(peak, counted.measure)))
    return defaultdict(tuple, {key: tuple(points) for key, points in points_of.items()})


def _amount(peak: Row, measure: Measure) -> Amount:
    return Amount.of_count(peak["x"], peak["l"]) if measure.is_count else Amount(peak["x"])


def _bucket(windows: int, span: int, most: int) -> int | None:
    """Seconds of time that share a point, None where each window has its own. `span`: microseconds."""
    if windows <= most:
        return None
    return next(b for b in _buckets() if span / SECOND / b <= most - 1)


def _buckets() -> list[int]:
    """Round lengths of time, then twice as long again and again."""
    return [*BUCKETS, *(BUCKETS[-1] * 2**i for i in range(1, 40))]


def _earlier(forms: dict[str | None, int], plan: AnyPlan | None, first: int, until: int) -> int:
    """Rows of a form that the pattern does not have now; not told where it does not compile."""
    if plan is None:
        return 0
    windows = plan.windows.ending_in(first, until + plan.windows.within)
    current = {plan.hash, *(known for _, known in plan.stretches(windows))}
    return sum(rows for form, rows in forms.items() if form not in current)
