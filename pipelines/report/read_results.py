"""A results table boiled down by Spark to what one page can show.

Nothing here collects a table: rankings, sums and series are computed in Spark, and what comes back is bounded
by the limits below. What a limit leaves out is summed into "others" and counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from pipelines.quarantine import column
from pipelines.report.amounts import Amount, total
from pipelines.report.facts import GroupKey, GroupResult, Point, ResultFacts, RowResult, Window, WindowResult
from pipelines.report.frames import Shape, between, by, grid, normal
from pipelines.report.read_run import utc

GROUPS_RANKED = 10
LINES_DRAWN = 6
"""As many colours as one tells apart."""
BARS_DRAWN = 10
WINDOWS_RANKED = 10
ROWS_RANKED = 10
ENOUGH_WINDOWS = 24
"""An interval with as many windows makes a picture by itself; a shorter one is shown with what came before
it.
"""
SPAN_WINDOWS = 60
"""About how many windows of history put a short interval in context."""
MOST_POINTS = 120
"""Points of one series; beyond, the largest window of each bucket of time stands for it."""

_BUCKETS = (60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000)
_OTHERS = "others"


@dataclass(frozen=True)
class _Ranking:
    """The groups that get a name on the page, as JSON keys, and what is known of all of them over the
    interval.
    """

    keys: tuple[str, ...]
    groups: int
    top: tuple[GroupResult, ...]
    others: Amount
    headline: Amount


def read_results(
    spark: SparkSession, path: str, version: int | None, since: datetime | None, until: datetime | None
) -> ResultFacts:
    """The results of the windows that end in `(since, until]` (all, where None) as of Delta `version` (None:
    newest).
    """
    reader = spark.read.format("delta")
    table = (reader if version is None else reader.option("versionAsOf", version)).load(path)
    shape = Shape.of(table.schema)
    mine = between(table, since, until)
    run = normal(mine, shape).cache()
    try:
        run_grid = grid(run)
        span_from = _span_from(since, until, run_grid["windows"])
        span = normal(between(table, span_from, until), shape).cache()
        try:
            span_grid = grid(span)
            additive = shape.measure.is_count and not (run_grid["overlapping"] or span_grid["overlapping"])
            ranking = _rank(run, span, shape, additive)
            all_groups = span.select("key").distinct().count()
            drawn = _drawn(len(ranking.keys), all_groups, span_grid["windows"])
            series, others_series, bucket = _series(span, shape, ranking.keys, drawn, span_grid)
            busiest = _busiest(span, shape)
        finally:
            span.unpersist()
    finally:
        run.unpersist()
    return ResultFacts(
        group_columns=shape.groups,
        measure=shape.measure,
        measures=shape.measures,
        additive=additive,
        rows=run_grid["rows"],
        windows=run_grid["windows"],
        groups=ranking.groups,
        headline=ranking.headline,
        top_groups=ranking.top,
        others=ranking.others,
        series=series,
        drawn=drawn,
        others_series=others_series,
        others_drawn=all_groups - drawn,
        busiest=busiest,
        span_windows=span_grid["windows"],
        span_from=None if span_grid["first"] is None else utc(span_grid["first"]),
        largest=_largest(mine, shape),
        step_seconds=None if span_grid["step"] is None else span_grid["step"] / 1e6,
        bucket_seconds=bucket,
        version=version,
    )


def _span_from(since: datetime | None, until: datetime | None, windows: int) -> datetime | None:
    """Where the picture starts: so many intervals back that about SPAN_WINDOWS windows are seen."""
    if since is None or until is None:
        return since
    intervals = 1 if windows >= ENOUGH_WINDOWS else SPAN_WINDOWS // max(windows, 1)
    return until - intervals * (until - since)


def _drawn(ranked: int, groups: int, windows: int) -> int:
    """How many groups the picture shows by themselves: a lone one left over is shown rather than called
    "others".
    """
    most = BARS_DRAWN if windows == 1 else LINES_DRAWN
    return min(ranked, groups if groups == most + 1 else most)


def _rank(run: DataFrame, span: DataFrame, shape: Shape, additive: bool) -> _Ranking:
    """The largest groups of the interval; of the span before it, where the interval is empty."""
    is_count = shape.measure.is_count
    ranked, groups = _top(by(run, ["key"], add=additive))
    top = tuple(
        GroupResult(_key(row, "key", shape), _amount(row, is_count), row["windows"]) for row in ranked
    )
    if not ranked:
        ranked, _ = _top(by(span, ["key"], add=additive))
    keys = tuple(row["key"] for row in ranked)
    rest = (
        by(run.where(~sf.col("key").isin(list(keys))), [], add=additive).collect()
        if groups > len(top)
        else []
    )
    others = _amount(rest[0], is_count) if rest else Amount(None)
    if additive:
        headline = total([*(group.amount for group in top), others])
    else:
        largest = by(run, ["ws", "we"], add=is_count).orderBy(sf.desc_nulls_last("o")).limit(1).collect()
        headline = _amount(largest[0], is_count) if largest else Amount(None)
    return _Ranking(keys, groups, top, others, headline)


def _top(per_group: DataFrame) -> tuple[list[Row], int]:
    per_group = per_group.cache()
    try:
        ordered = per_group.orderBy(sf.desc_nulls_last("o"), "key").limit(GROUPS_RANKED)
        return ordered.collect(), per_group.count()
    finally:
        per_group.unpersist()


def _series(
    span: DataFrame, shape: Shape, keys: Sequence[str], drawn: int, span_grid: Row
) -> tuple[dict[GroupKey, tuple[Point, ...]], tuple[Point, ...], int | None]:
    """The ranked groups' values window by window, those of all that are not drawn together, and the bucket's
    seconds.

    A ranked group that is not drawn by itself belongs to both. The windows of "others" are summed before a
    bucket's largest is taken: the largest windows of two groups need not be the same window.
    """
    is_count = shape.measure.is_count
    own = sf.when(sf.col("key").isin(list(keys)), sf.col("key"))
    rest = sf.when(~sf.col("key").isin(list(keys[:drawn])), sf.lit(_OTHERS))
    labelled = span.withColumn("series", sf.explode(sf.array(own, rest))).where(sf.col("series").isNotNull())
    values = by(labelled, ["series", "ws", "we"], add=is_count)
    bucket = None
    if span_grid["windows"] > MOST_POINTS:
        seconds = (span_grid["last"] - span_grid["first"]) / 1e6
        bucket = next((b for b in _BUCKETS if seconds / b <= MOST_POINTS), int(seconds / MOST_POINTS) + 1)
        slot = sf.floor(sf.col("ws") / sf.lit(bucket * 1_000_000)).alias("slot")
        best = sf.max_by(sf.struct("ws", "we", "x", "l"), "o").alias("best")
        values = values.groupBy("series", slot).agg(best).select("series", "best.*")
    points: dict[str, list[Point]] = {key: [] for key in [*keys, _OTHERS]}
    for row in values.select("series", "ws", "we", "x", "l").orderBy("series", "ws").collect():
        points[row["series"]].append(Point(_window(row), _amount(row, is_count)))
    others = tuple(points.pop(_OTHERS))
    return {_parse(key, shape): tuple(found) for key, found in points.items()}, others, bucket


def _busiest(span: DataFrame, shape: Shape) -> tuple[WindowResult, ...]:
    is_count = shape.measure.is_count
    rows = (
        by(span, ["ws", "we"], add=is_count)
        .orderBy(sf.desc_nulls_last("o"), "ws")
        .limit(WINDOWS_RANKED)
        .collect()
    )
    return tuple(
        WindowResult(_window(row), _amount(row, is_count), row["groups"], _key(row, "leader", shape))
        for row in rows
    )


def _largest(table: DataFrame, shape: Shape) -> tuple[RowResult, ...]:
    """The largest rows of the interval, with all their measures."""
    values = [column(name).alias(f"v{i}") for i, name in enumerate(shape.measures)]
    logs = [
        column(f"{name}_log10").alias(f"l{i}")
        for i, name in enumerate(shape.measures)
        if f"{name}_log10" in shape.companions
    ]
    rows = (
        normal(table, shape, [*values, *logs])
        .orderBy(sf.desc_nulls_last("o"), "ws", "key")
        .limit(ROWS_RANKED)
    )
    return tuple(
        RowResult(
            key=_key(row, "key", shape),
            window=_window(row),
            values=tuple((name, _value(row.asDict(), i)) for i, name in enumerate(shape.measures)),
        )
        for row in rows.collect()
    )


def _value(row: dict[str, object], index: int) -> Amount | str:
    value, log10 = row[f"v{index}"], row.get(f"l{index}")
    log = log10 if isinstance(log10, float) else None
    if value is None:
        return Amount(None, log)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, float):
        return Amount(value, log)
    return Amount.of_count(int(value), log) if value == int(value) else Amount(float(value), log)


def _window(row: Row) -> Window:
    return Window(utc(row["ws"]), utc(row["we"]))


def _amount(row: Row, is_count: bool) -> Amount:
    return Amount.of_count(row["x"], row["l"]) if is_count else Amount(row["x"])


def _key(row: Row, name: str, shape: Shape) -> GroupKey:
    return _parse(row[name], shape)


def _parse(key: str, shape: Shape) -> GroupKey:
    values: dict[str, str] = json.loads(key)
    return tuple(values.get(f"g{i}") for i in range(len(shape.groups)))
