"""The results of kinds whose rows are found patterns, not counts of a window: how many there were over time, and the
longest of them. Spark counts; `summary` ranks and draws the counts as it does a window's trends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core.patterns.model import PROVENANCE_COLUMNS
from pipelines.report.amounts import Amount
from pipelines.report.facts import GroupKey, Measure, PatternFacts, Point, ResultFacts, RowResult, Window
from pipelines.report.read_run import utc
from pipelines.report.summary import ROWS_RANKED, Columns, ResultRow, summarise
from pipelines.report.tally import Tally
from pipelines.spark.columns import column

UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Stretches of time that rows are counted by, seconds: the shortest of which a span has few enough."""
MOST_UNITS = 120
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
    unit, seconds = unit_of(end - begin)
    groups = tuple(name for name in pattern.group_by if name in table.columns)
    inside = table.where((column(owner) >= sf.lit(begin)) & (column(owner) < sf.lit(end)))
    stretch = sf.floor((sf.unix_micros(owner) - sf.lit(micros(since))) / sf.lit(seconds * 10**6))
    keyed = inside.withColumn("__stretch", stretch.cast("bigint"))
    rows = list(_counted(keyed, groups, since, timedelta(seconds=seconds)))
    facts = summarise(rows, Columns(groups, (NOUN.name,), NOUN), since)
    mine = inside.where(column(owner) >= sf.lit(since))
    names, longest = _longest(mine, groups, within)
    fill = _filler(facts, since, end, timedelta(seconds=seconds))
    return replace(
        facts,
        series={key: fill(points) for key, points in facts.series.items()},
        others_series=fill(facts.others_series) if facts.others_series else (),
        rows=mine.count(),
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
    windows = [Window(first + n * step, first + (n + 1) * step) for n in range(math.ceil((end - first) / step))]

    def filled(points: tuple[Point, ...]) -> tuple[Point, ...]:
        known = {point.window: point for point in points}
        return tuple(known.get(window, Point(window, Amount(0))) for window in windows)

    # stretches by the hundred are thinned, and a lone one is drawn as bars: both stay as they are
    return filled if facts.bucket_seconds is None and facts.span_windows > 1 else lambda points: points


def unit_of(span: timedelta) -> tuple[str, int]:
    """The unit that a span is counted by, with its seconds."""
    return next(
        ((name, size) for name, size in UNITS.items() if span.total_seconds() <= size * MOST_UNITS),
        ("week", UNITS["week"]),
    )


def _counted(frame: DataFrame, groups: tuple[str, ...], since: datetime, step: timedelta) -> Iterator[ResultRow]:
    """A row for each group and stretch: how many matches; of graphs, how many they hold together."""
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    names = [*(f"g{i}" for i in range(len(groups))), "__stretch"]
    tallies: dict[tuple[Any, ...], Tally] = {}
    if "matches_log10" in frame.columns:
        for row in frame.select(*keys, "__stretch", "matches", "matches_log10").toLocalIterator():
            amount = Amount.of_count(row["matches"], row["matches_log10"])
            tallies.setdefault(tuple(row[name] for name in names), Tally()).add(amount, ())
    else:
        for row in frame.select(*keys, "__stretch").groupBy(*names).count().collect():
            tally = tallies.setdefault(tuple(row[name] for name in names), Tally())
            tally.add(Amount.of_count(row["count"]), ())
    for key, tally in tallies.items():
        group: GroupKey = key[:-1]
        window = Window(since + key[-1] * step, since + (key[-1] + 1) * step)
        yield ResultRow(group, window, tally.total(), ())


def _longest(
    frame: DataFrame, groups: tuple[str, ...], within: int | None
) -> tuple[tuple[str, ...], list[RowResult]]:  # fmt: skip
    """The names of the columns shown, and the rows from whose first event to the last most time passes."""
    if "lifetime_end" in frame.columns:  # a run's lifetime ends a fixed time after its first event
        end = sf.col("lifetime_start")
        start = end if within is None else sf.timestamp_micros(sf.unix_micros("lifetime_end") - sf.lit(within))
        order = [(sf.unix_micros("lifetime_end") - sf.unix_micros("lifetime_start")).asc()]
        hidden = {*groups, "lifetime_start", "lifetime_end", *PROVENANCE_COLUMNS}
    else:
        start, end = column("start"), column("end")
        order = [(sf.unix_micros(end) - sf.unix_micros(start)).desc()]
        hidden = {"match_id", "start", "end", "graph", "matches_log10", *PROVENANCE_COLUMNS}
    if "matches_log10" in frame.columns:
        order = [column("matches_log10").desc()]
    names = tuple(name for name in frame.columns if name not in hidden)
    ranked = frame.orderBy(*order, end.desc(), *_told_apart(frame, names)).limit(ROWS_RANKED)
    shown = [column(name).alias(f"v{i}") for i, name in enumerate(names)]
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    logs = [column("matches_log10").alias("log")] if "matches_log10" in frame.columns else []
    times = [sf.unix_micros(start).alias("ws"), sf.unix_micros(end).alias("we")]
    rows = []
    for row in ranked.select(*keys, *times, *shown, *logs).collect():
        values = tuple(
            (name, _value(row[f"v{i}"], row["log"] if logs and name == "matches" else None))
            for i, name in enumerate(names)
        )
        key = tuple(row[f"g{i}"] for i in range(len(groups)))
        rows.append(RowResult(key, Window(utc(row["ws"]), utc(row["we"])), values))
    return names, rows


def _told_apart(frame: DataFrame, names: Iterable[str]) -> list[Column]:
    """An order among equals that stays the same from report to report."""
    return [column(name) for name in ("match_id", "end_event", *names) if name in frame.columns]


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


def micros(moment: datetime) -> int:
    """Since the epoch."""
    return (moment - utc(0)) // timedelta(microseconds=1)
