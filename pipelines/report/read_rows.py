"""The results of kinds whose rows are found patterns, not counts of a window: how many there were over time, and the
longest of them. Spark counts; `summary` ranks and draws the counts as it does a window's trends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cep_core.events.windows import moment, shifted
from pipelines.errors import LocalUnsupportedError
from pipelines.report.amounts import Amount
from pipelines.report.facts import Measure, PatternFacts, Point, ResultFacts, RowResult, Window
from pipelines.report.layout import Layout
from pipelines.report.summary import ROWS_RANKED, Columns, ResultRow, summarise
from pipelines.report.tally import Tally
from pipelines.results.spark_order import comparable, spark_texts
from pipelines.spark.columns import column

UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Stretches of time that rows are counted by, seconds: the shortest of which a span has few enough."""
MOST_UNITS = 120
MOST_FILLED = 10_000
"""A picture of more stretches has a point only where there are rows."""
IDS_SHOWN = 5
"""Of a list of events, as many are named."""
NOUN = Measure("matches", True)


def read_counted(
    table: DataFrame, pattern: PatternFacts, span: tuple[datetime, datetime, datetime], owner: str, within: int | None
) -> ResultFacts:
    """The rows of `table` with `owner` in the span (from, since, to): those from `since` on are the run's, the others
    its history. Stretches of time are counted from `since`, so none is of both. `within`: of an automaton, where it is
    known, microseconds: its rows do not hold the time of their first event."""
    begin, since, end = span
    _, seconds = unit_of(end - begin)
    groups = tuple(name for name in pattern.group_by if name in table.columns)
    inside = table.where((column(owner) >= sf.lit(begin)) & (column(owner) < sf.lit(end)))
    stretch = sf.floor((sf.unix_micros(owner) - sf.lit(micros(since))) / sf.lit(seconds * 10**6))
    keyed = inside.withColumn("__trendlake_stretch", stretch.cast("bigint"))
    mine = inside.where(column(owner) >= sf.lit(since))
    layout = Layout.of(table.columns, pattern.kind)
    names, longest = _longest(mine, layout, groups, within)
    return _facts(groups, span, _counted(keyed, layout, groups), names, longest, mine.count())


def read_counted_here(
    rows: pa.Table, pattern: PatternFacts, span: tuple[datetime, datetime, datetime], owner: str, within: int | None
) -> ResultFacts:
    """As `read_counted`, of the rows in the span, which are here. Raises LocalUnsupportedError."""
    begin, since, end = span
    _, seconds = unit_of(end - begin)
    groups = tuple(name for name in pattern.group_by if name in rows.column_names)
    times = rows[owner].cast(pa.int64())
    stretches = [(time - micros(since)) // (seconds * 10**6) for time in times.to_pylist()]
    keys = list(zip(*[spark_texts(rows[name]) for name in groups], stretches, strict=True))
    amounts = [Amount.of_count(1)] * rows.num_rows
    layout = Layout.of(rows.column_names, pattern.kind)
    if layout.graphs:
        counts = zip(rows["matches"].to_pylist(), rows["matches_log10"].to_pylist(), strict=True)
        amounts = [Amount.of_count(count, log) for count, log in counts]
    mine = rows.filter(pc.greater_equal(times, micros(since)))
    names, longest = _longest_here(mine, layout, groups, within)
    return _facts(groups, span, zip(keys, amounts, strict=True), names, longest, mine.num_rows)


def _facts(
    groups: tuple[str, ...], span: tuple[datetime, datetime, datetime],
    amounts: Iterable[tuple[tuple[Any, ...], Amount]], names: tuple[str, ...], longest: list[RowResult], rows: int,
) -> ResultFacts:  # fmt: skip
    """`amounts`: by (group ..., stretch), several of which may be of one; `names`, `longest`: as of `_longest`."""
    begin, since, end = span
    unit, seconds = unit_of(end - begin)
    step = timedelta(seconds=seconds)
    tallies: dict[tuple[Any, ...], Tally] = {}
    for key, amount in amounts:
        tallies.setdefault(key, Tally()).add(amount, ())
    counted = [ResultRow(key[:-1], _stretch(since, key[-1], step), tally.total(), ()) for key, tally in tallies.items()]
    facts = summarise(counted, Columns(groups, (NOUN.name,), NOUN), since)
    fill = _filler(facts, since, end, step)
    return replace(
        facts,
        series={key: fill(points) for key, points in facts.series.items()},
        others_series=fill(facts.others_series) if facts.others_series else (),
        rows=rows,
        measures=names,
        largest=tuple(longest),
        unit=unit,
        units=math.ceil((end - since).total_seconds() / seconds),
        since=since,
        step_seconds=float(seconds),
    )


def _filler(
    facts: ResultFacts, since: datetime, end: datetime, step: timedelta
) -> Callable[[tuple[Point, ...]], tuple[Point, ...]]:  # fmt: skip
    """Puts a zero where a series has no point, from the first stretch with any match: no match is a count too."""
    first = since if facts.span_from is None else min(since, facts.span_from)
    number = math.ceil((end - first) / step)

    def filled(points: tuple[Point, ...]) -> tuple[Point, ...]:
        windows = [_stretch(first, n, step) for n in range(number)]
        known = {point.window: point for point in points}
        return tuple(known.get(window, Point(window, Amount(0))) for window in windows)

    # stretches by the hundred are thinned, and a lone one is drawn as bars: both stay as they are
    all_shown = facts.bucket_seconds is None and facts.span_windows > 1 and number <= MOST_FILLED
    return filled if all_shown else lambda points: points


def _stretch(first: datetime, number: int, step: timedelta) -> Window:
    return Window(shifted(first, number * step), shifted(first, (number + 1) * step))


def unit_of(span: timedelta) -> tuple[str, int]:
    """The unit that a span is counted by, with its seconds."""
    return next(
        ((name, size) for name, size in UNITS.items() if span.total_seconds() <= size * MOST_UNITS),
        ("week", UNITS["week"]),
    )


def _counted(
    frame: DataFrame, layout: Layout, groups: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], Amount]]:  # fmt: skip
    """By group and stretch: how many matches; of graphs, how many they hold together."""
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    names = [*(f"g{i}" for i in range(len(groups))), "__trendlake_stretch"]
    if layout.graphs:
        for row in frame.select(*keys, "__trendlake_stretch", "matches", "matches_log10").toLocalIterator():
            yield tuple(row[name] for name in names), Amount.of_count(row["matches"], row["matches_log10"])
    else:
        for row in frame.select(*keys, "__trendlake_stretch").groupBy(*names).count().collect():
            yield tuple(row[name] for name in names), Amount.of_count(row["count"])


def _shown(names: Sequence[str], layout: Layout, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table that are shown of a row."""
    return tuple(name for name in names if name not in layout.hidden | set(groups))


def _longest(
    frame: DataFrame, layout: Layout, groups: tuple[str, ...], within: int | None
) -> tuple[tuple[str, ...], list[RowResult]]:  # fmt: skip
    """The names of the columns shown, and the rows from whose first event to the last most time passes."""
    if layout.lifetimes:  # a run's lifetime ends a fixed time after its first event
        end = sf.col("lifetime_start")
        start = end if within is None else sf.timestamp_micros(sf.unix_micros("lifetime_end") - sf.lit(within))
        order = [(sf.unix_micros("lifetime_end") - sf.unix_micros("lifetime_start")).asc()]
    else:
        start, end = column("start"), column("end")
        order = [(sf.unix_micros(end) - sf.unix_micros(start)).desc()]
    if layout.graphs:
        order = [column("matches_log10").desc()]
    names = _shown(frame.columns, layout, groups)
    apart = map(column, _told_apart(frame.columns, layout, names, groups))
    ranked = frame.orderBy(*order, end.desc(), *apart).limit(ROWS_RANKED)
    shown = [column(name).alias(f"v{i}") for i, name in enumerate(names)]
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    logs = [column("matches_log10").alias("log")] if layout.graphs else []
    times = [sf.unix_micros(start).alias("ws"), sf.unix_micros(end).alias("we")]
    rows = []
    for row in ranked.select(*keys, *times, *shown, *logs).collect():
        values = tuple(
            (name, _value(row[f"v{i}"], row["log"] if logs and name == "matches" else None))
            for i, name in enumerate(names)
        )
        key = tuple(row[f"g{i}"] for i in range(len(groups)))
        rows.append(RowResult(key, Window(moment(row["ws"]), moment(row["we"])), values))
    return names, rows


def _longest_here(
    rows: pa.Table, layout: Layout, groups: tuple[str, ...], within: int | None
) -> tuple[tuple[str, ...], list[RowResult]]:  # fmt: skip
    """As `_longest`. Raises LocalUnsupportedError for values whose text is not certain."""
    names = _shown(rows.column_names, layout, groups)
    if any(pa.types.is_timestamp(rows[name].type) or (pa.types.is_nested(rows[name].type) and not
           pa.types.is_list(rows[name].type)) for name in names):  # fmt: skip
        raise LocalUnsupportedError("times and structures among the values")
    automaton = layout.lifetimes
    first, last = (rows[name].cast(pa.int64()).to_pylist() for name in layout.times)
    graphs = rows["matches_log10"].to_pylist() if layout.graphs else None
    start = [time - within for time in last] if automaton and within is not None else first
    end = first if automaton else last
    rank = graphs or [(b - a) * (-1 if automaton else 1) for a, b in zip(first, last, strict=True)]
    apart = [rows[name].to_pylist() for name in _told_apart(rows.column_names, layout, names, groups)]
    order = sorted(range(rows.num_rows), key=lambda at: [comparable(values[at]) for values in apart])
    order.sort(key=lambda at: (comparable(rank[at]), end[at]), reverse=True)
    chosen = rows.take(pa.array(order[:ROWS_RANKED], pa.int64()))
    texts = [spark_texts(chosen[name]) for name in groups]
    columns = {name: chosen[name].to_pylist() for name in names}
    results = []
    for i, at in enumerate(order[:ROWS_RANKED]):
        log = graphs[at] if graphs else None
        values = tuple((name, _value(columns[name][i], log if name == "matches" else None)) for name in names)
        key = tuple(text[i] for text in texts)
        results.append(RowResult(key, Window(moment(start[at]), moment(end[at])), values))
    return names, results


def _told_apart(columns: Sequence[str], layout: Layout, names: Iterable[str], groups: Iterable[str]) -> list[str]:
    """The columns that order equals, so that the order stays the same from report to report."""
    ids = [] if layout.named else [name for name in ("match_id", "end_event") if name in columns]
    return [*ids, *names, *groups]


def _value(value: Any, log10: float | None) -> Amount | str:
    if value is None:
        return Amount(None, log10)
    if isinstance(value, list):
        ids = [str(item) for item in value]
        shown = ids if len(ids) <= IDS_SHOWN else [*ids[: IDS_SHOWN - 2], "…", ids[-1]]
        return " → ".join(shown) + (f" ({len(ids)})" if len(ids) > IDS_SHOWN else "")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    return Amount(value) if isinstance(value, float) else Amount.of_count(value, log10)


def micros(at: datetime) -> int:
    """Since the epoch."""
    return (at - moment(0)) // timedelta(microseconds=1)
