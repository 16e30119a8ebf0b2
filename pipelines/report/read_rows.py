"""The results of kinds whose rows are found patterns, not counts of a window: how many there were over time, and the
longest of them. Spark counts; `summary` ranks and draws the counts as it does a window's trends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.report.amounts import Amount, amount_of
from trendlake.pipelines.report.bins import MONDAY_MICROS, SECOND, Unit, number_of, number_of_micros, unit_of
from trendlake.pipelines.report.facts import Measure, PatternFacts, Point, ResultFacts, RowResult, Window
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.summary import ROWS_RANKED, Columns, ResultRow, summarise
from trendlake.pipelines.report.tally import Tally
from trendlake.pipelines.results.spark_order import comparable, spark_texts
from trendlake.pipelines.spark.columns import column

NOUN = Measure("matches", True)
STRETCH, OWN = "__trendlake_stretch", "__trendlake_own"


@dataclass(frozen=True)
class Span:
    """The range that a picture shows: the run's rows from `since` to `until` (not included), and what came before from
    `begin` on. It is widened to whole stretches of `unit`, from `low` to `high`, so that each has all of its rows: as
    many as on the pattern's page."""

    begin: datetime
    since: datetime
    until: datetime

    @property
    def unit(self) -> Unit:
        return unit_of(self.begin, self.until)

    @property
    def low(self) -> datetime:
        return self.unit.ends(number_of(self.begin, self.unit.seconds))[0]

    @property
    def high(self) -> datetime:
        return self.unit.ends(number_of(self.until - timedelta(microseconds=1), self.unit.seconds))[1]


def read_counted(table: DataFrame, pattern: PatternFacts, span: Span, owner: str, within: int | None) -> ResultFacts:
    """The rows of `table` with `owner` in the span. `within`: of an automaton, where it is known, microseconds: its
    rows do not hold the time of their first event."""
    groups = tuple(name for name in pattern.group_by if name in table.columns)
    inside = table.where((column(owner) >= sf.lit(span.low)) & (column(owner) < sf.lit(span.high)))
    own = (column(owner) >= sf.lit(span.since)) & (column(owner) < sf.lit(span.until))
    stretch = number_column(sf.unix_micros(owner), span.unit.seconds)
    keyed = inside.withColumns({STRETCH: stretch, OWN: own})
    mine = inside.where(own)
    layout = Layout.of(table.columns, pattern.kind)
    names, longest = _longest(mine, layout, groups, within)
    return _facts(groups, span, _counted(keyed, layout, groups), names, longest, mine.count())


def read_counted_here(rows: pa.Table, pattern: PatternFacts, span: Span, owner: str, within: int | None) -> ResultFacts:
    """As `read_counted`, of the rows in the widened span, which are here. Raises LocalUnsupportedError."""
    groups = tuple(name for name in pattern.group_by if name in rows.column_names)
    times = rows[owner].cast(pa.int64())
    own = pc.and_(pc.greater_equal(times, micros(span.since)), pc.less(times, micros(span.until)))
    stretches = [number_of_micros(time, span.unit.seconds) for time in times.to_pylist()]
    keys = list(zip(*[spark_texts(rows[name]) for name in groups], stretches, own.to_pylist(), strict=True))
    amounts = [Amount.of_count(1)] * rows.num_rows
    layout = Layout.of(rows.column_names, pattern.kind)
    if layout.graphs:
        counts = zip(rows["matches"].to_pylist(), rows["matches_log10"].to_pylist(), strict=True)
        amounts = [Amount.of_count(count, log) for count, log in counts]
    mine = rows.filter(own)
    names, longest = _longest_here(mine, layout, groups, within)
    return _facts(groups, span, zip(keys, amounts, strict=True), names, longest, mine.num_rows)


def _facts(
    groups: tuple[str, ...],
    span: Span,
    amounts: Iterable[tuple[tuple[Any, ...], Amount]],
    names: tuple[str, ...],
    longest: list[RowResult],
    rows: int,
) -> ResultFacts:
    """`amounts`: by (group ..., stretch, whether it is the run's), where a key may be repeated; `names`, `longest`: as
    of `_longest`."""
    tallies: dict[tuple[Any, ...], Tally] = {}
    own: dict[tuple[Any, ...], Tally] = {}
    for (*place, is_own), amount in amounts:
        key = tuple(place)
        tallies.setdefault(key, Tally()).add(amount, ())
        if is_own:
            own.setdefault(key, Tally()).add(amount, ())
    unit = span.unit
    counted = [
        ResultRow(key[:-1], Window(*unit.ends(key[-1])), tally.total(), (), own[key].total() if key in own else None)
        for key, tally in tallies.items()
    ]
    facts = summarise(counted, Columns(groups, (NOUN.name,), NOUN))
    first, last = (number_of(at, unit.seconds) for at in (span.since, span.until - timedelta(microseconds=1)))
    fill = _filler(facts, unit, first, last)
    return replace(
        facts,
        series={key: fill(points) for key, points in facts.series.items()},
        others_series=fill(facts.others_series) if facts.others_series else (),
        rows=rows,
        measures=names,
        largest=tuple(longest),
        unit=unit.name,
        units=last - first + 1,
        since=span.since,
        step_seconds=float(unit.seconds),
    )


def _filler(facts: ResultFacts, unit: Unit, first: int, last: int) -> Callable[[tuple[Point, ...]], tuple[Point, ...]]:
    """Puts a zero where a series has no point, from the first stretch with any match on: no match is a count too.
    `first`, `last`: the run's stretches."""
    if facts.span_from is not None:
        first = min(first, number_of(facts.span_from, unit.seconds))
    windows = [Window(*unit.ends(number)) for number in range(first, last + 1)]

    def filled(points: tuple[Point, ...]) -> tuple[Point, ...]:
        known = {point.window: point for point in points}
        return tuple(known.get(window, Point(window, Amount(0))) for window in windows)

    # stretches by the hundred are thinned, and a lone one is drawn as bars: both stay as they are
    return filled if facts.bucket_seconds is None and facts.span_windows > 1 else lambda points: points


def number_column(moments: Column, seconds: int) -> Column:
    """`number_of_micros` of a column."""
    return sf.floor((moments - sf.lit(MONDAY_MICROS)) / sf.lit(seconds * SECOND)).cast("bigint")


def _counted(frame: DataFrame, layout: Layout, groups: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], Amount]]:
    """By group, stretch and whether it is the run's: how many matches; of graphs, how many they hold together."""
    keys = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(groups)]
    names = [*(f"g{i}" for i in range(len(groups))), STRETCH, OWN]
    if layout.graphs:
        for row in frame.select(*keys, STRETCH, OWN, "matches", "matches_log10").toLocalIterator():
            yield tuple(row[name] for name in names), Amount.of_count(row["matches"], row["matches_log10"])
    else:
        for row in frame.select(*keys, STRETCH, OWN).groupBy(*names).count().collect():
            yield tuple(row[name] for name in names), Amount.of_count(row["count"])


def _shown(names: Sequence[str], layout: Layout, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table that are shown of a row."""
    return tuple(name for name in names if name not in layout.hidden | set(groups))


def _longest(
    frame: DataFrame, layout: Layout, groups: tuple[str, ...], within: int | None
) -> tuple[tuple[str, ...], list[RowResult]]:
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
            (name, amount_of(row[f"v{i}"], row["log"] if logs and name == "matches" else None))
            for i, name in enumerate(names)
        )
        key = tuple(row[f"g{i}"] for i in range(len(groups)))
        rows.append(RowResult(key, Window(moment(row["ws"]), moment(row["we"])), values))
    return names, rows


def _longest_here(
    rows: pa.Table, layout: Layout, groups: tuple[str, ...], within: int | None
) -> tuple[tuple[str, ...], list[RowResult]]:
    """As `_longest`. Raises LocalUnsupportedError for values whose text is not certain."""
    names = _shown(rows.column_names, layout, groups)
    if any(
        pa.types.is_timestamp(rows[name].type)
        or (pa.types.is_nested(rows[name].type) and not pa.types.is_list(rows[name].type))
        for name in names
    ):
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
        values = tuple((name, amount_of(columns[name][i], log if name == "matches" else None)) for name in names)
        key = tuple(text[i] for text in texts)
        results.append(RowResult(key, Window(moment(start[at]), moment(end[at])), values))
    return names, results


def _told_apart(columns: Sequence[str], layout: Layout, names: Iterable[str], groups: Iterable[str]) -> list[str]:
    """The columns that order equals, so that the order stays the same from report to report."""
    ids = [] if layout.named else [name for name in ("match_id", "end_event") if name in columns]
    return [*ids, *names, *groups]


def micros(at: datetime) -> int:
    """Since the epoch."""
    return (at - moment(0)) // timedelta(microseconds=1)
