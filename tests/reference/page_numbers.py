"""What pages count and rank, in loops of Python over `to_pylist`: the slow and obvious version."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from trendlake.pipelines.report.amounts import Amount, amount_of
from trendlake.pipelines.report.bins import MONDAY, number_of, shared_point, unit_of
from trendlake.pipelines.report.facts import Measure, PatternFacts, Point, ResultFacts, RowResult, RunFacts, Window
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.read_rows import Span, facts_of
from trendlake.pipelines.report.summary import MOST_POINTS, ROWS_RANKED, Columns, result_row, summarise
from trendlake.pipelines.site.facts import GroupFacts, MeasureFacts, OverviewFacts
from trendlake.pipelines.site.overview import HEAT_COLUMNS, OTHERS_DRAWN
from trendlake.pipelines.site.read_overview import GROUPS_SHOWN

LARGEST = 10**38
Key = tuple[str | None, ...]
Place = tuple[Key, Window]


def text_of(value: Any) -> str | None:
    """As Spark casts it to STRING: true, 12, 2026-01-05."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, Decimal) else str(value)


def rank_of(amount: Amount, *, count: bool) -> tuple[int, float]:
    """Unknown is the least, then numbers, NaN is the largest; a count's rank is its log10, -1 for zero."""
    value: float | None = amount.log10 if amount.log10 is not None else -1.0 if amount.exact == 0 else None
    if not count:
        value = None if amount.exact is None else float(amount.exact)
    if value is None:
        return (0, 0.0)
    return (2, 0.0) if math.isnan(value) else (1, value)


def added(amounts: Sequence[Amount]) -> Amount:
    """The sum of counts: exact where each is and it has 38 digits at most, else its magnitude."""
    exact = [amount.exact for amount in amounts]
    if all(isinstance(value, int) for value in exact):
        whole = sum(int(value or 0) for value in exact)
        return Amount(whole if whole < LARGEST else None, math.log10(whole) if whole else None)
    logs = [amount.log10 for amount in amounts if amount.log10 is not None]
    top = max(logs, default=0.0)
    return Amount(None, top + math.log10(math.fsum(10.0 ** (log - top) for log in logs)) if logs else None)


def overview_of(table: pa.Table, pattern: PatternFacts, measure: str | None, *, count: bool) -> OverviewFacts:
    """As `read_overview` has it, of a pattern that does not compile. `measure`: what counts, None for the rows."""
    rows = table.to_pylist()
    layout = Layout.of(table.column_names, pattern.kind)
    groups = tuple(name for name in pattern.group_by if name in table.column_names)
    places: dict[Place, list[Amount]] = defaultdict(list)
    unit, extent = "window", None
    if not layout.windows:
        extent = (min(row[layout.owner] for row in rows), max(row[layout.owner] for row in rows))
        stretch = unit_of(*extent)
        unit = stretch.name
    for row in rows:
        key = tuple(text_of(row[name]) for name in groups)
        if layout.windows:
            window = Window(row["window_start"], row["window_end"])
        else:
            window = Window(*stretch.ends(number_of(row[layout.owner], stretch.seconds)))
        places[key, window].append(amount_of_row(row, measure, count=count))
    if layout.windows:  # a row is a window's already
        cells = [(key, window, part) for (key, window), parts in places.items() for part in parts]
    else:
        cells = [(key, window, added(parts)) for (key, window), parts in places.items()]
    by_window: dict[Window, list[Amount]] = defaultdict(list)
    by_group: dict[Key, list[Point]] = defaultdict(list)
    for key, window, amount in cells:
        by_window[window].append(amount)
        by_group[key].append(Point(window, amount))

    def choose(points: Iterable[Point]) -> Point:
        return largest(points, count=count)

    totals = [
        Point(window, added(parts)) if count else choose(Point(window, part) for part in parts)
        for window, parts in by_window.items()
    ]
    starts, ends = [point.window.start for point in totals], [point.window.end for point in totals]
    span = max(starts) - min(starts)
    bucket, heat = (shared_point(len(totals), span, most) for most in (MOST_POINTS, HEAT_COLUMNS))
    peaks = {key: choose(points) for key, points in by_group.items()}
    ordered = sorted(peaks, key=lambda key: [(text is not None, text or "") for text in key])
    ordered.sort(key=lambda key: rank_of(peaks[key].amount, count=count), reverse=True)
    return OverviewFacts(
        group_columns=groups,
        measure=Measure(measure or ("rows" if layout.windows else "matches"), count),
        unit=unit,
        rows=len(rows),
        earlier_rows=0,
        windows=len(totals),
        first=min(starts),
        last=max(ends),
        extent=extent,
        totals=thinned(totals, bucket, choose),
        bucket_seconds=bucket,
        step_seconds=(min(ends) - min(starts)).total_seconds(),
        group_count=len(peaks) if groups else 0,
        groups=tuple(
            GroupFacts(key, peaks[key].amount, thinned(by_group[key], heat, choose)) for key in ordered[:GROUPS_SHOWN]
        )
        if groups
        else (),
        heat_seconds=heat,
        others=tuple(
            MeasureFacts(other, points)
            for other in (others_of(table, pattern, measure) if layout.windows else ())
            if (points := thinned(totals_of(rows, other), bucket, partial(largest, count=other.is_count)))
        ),
    )


def others_of(table: pa.Table, pattern: PatternFacts, measure: str | None) -> list[Measure]:
    """The first of the other numbers that the pattern returns."""
    kinds = {name: table.schema.field(name).type for name in pattern.returns if name in table.column_names}
    numbers = [
        Measure(name, pa.types.is_decimal(kind) and kind.scale == 0, own=True)
        for name, kind in kinds.items()
        if name != measure and (pa.types.is_decimal(kind) or pa.types.is_floating(kind) or pa.types.is_integer(kind))
    ]
    return numbers[:OTHERS_DRAWN]


def totals_of(rows: Sequence[Mapping[str, Any]], other: Measure) -> list[Point]:
    """Of each window the sum of a count, the largest of another number, where that is known."""
    by_window: dict[Window, list[Amount]] = defaultdict(list)
    for row in rows:
        if other.is_count or row[other.name] is not None:
            amount = amount_of_row(row, other.name, count=other.is_count)
            by_window[Window(row["window_start"], row["window_end"])].append(amount)
    if other.is_count:
        return [Point(window, added(parts)) for window, parts in by_window.items()]
    return [largest([Point(window, part) for part in parts], count=False) for window, parts in by_window.items()]


def amount_of_row(row: Mapping[str, Any], measure: str | None, *, count: bool) -> Amount:
    if measure is None:
        return Amount(1, 0.0)
    value, log = row[measure], row.get(f"{measure}_log10")
    if not count:
        return Amount(None if value is None else float(value))
    whole = None if value is None else int(value)
    return Amount(whole, log if log is not None else math.log10(whole) if whole else None)


def largest(points: Iterable[Point], *, count: bool) -> Point:
    """Of equal ones the earliest."""
    return max(
        points,
        key=lambda point: (
            rank_of(point.amount, count=count),
            -point.window.start.timestamp(),
            -point.window.end.timestamp(),
            (point.amount.exact is not None, point.amount.exact or 0),
        ),
    )


def thinned(
    points: Iterable[Point], bucket: int | None, choose: Callable[[Iterable[Point]], Point]
) -> tuple[Point, ...]:
    """In order of time; of each bucket the largest."""
    slots: dict[Any, list[Point]] = defaultdict(list)
    for point in points:
        start = point.window.start
        slots[start if bucket is None else (start - MONDAY) // timedelta(seconds=bucket)].append(point)
    return tuple(choose(slots[slot]) for slot in sorted(slots))


def results_of(
    table: pa.Table, pattern: PatternFacts, run: RunFacts, span: Span, measure: Measure, measures: Sequence[str]
) -> ResultFacts:
    """As `read_results` has it, of a pattern that does not compile. `span`: of the picture; `measures`: the columns
    that are shown."""
    layout = Layout.of(table.column_names, pattern.kind)
    groups = tuple(name for name in pattern.group_by if name in table.column_names)
    time = "window_end" if layout.windows else layout.owner
    low, high = (span.begin, span.until) if layout.windows else (span.low, span.high)
    micro = timedelta(microseconds=1 if layout.windows else 0)  # of windows the last moment belongs to the span
    near = [row for row in table.to_pylist() if low + micro <= row[time] < high + micro]
    rows = [row for row in near if row["plan_hash"] == run.plan_hash]

    def key_of(row: Mapping[str, Any]) -> Key:
        return tuple(text_of(row[name]) for name in groups)

    def values_of(row: Mapping[str, Any]) -> tuple[tuple[str, Amount | str], ...]:
        return tuple((name, amount_of(row[name], row.get(f"{name}_log10"))) for name in measures)

    if layout.windows:
        counted = []
        for row in rows:
            values = values_of(row)
            amount = dict(values)[measure.name]
            assert isinstance(amount, Amount)
            amount = amount if measure.is_count else Amount(amount.exact)
            window = Window(row["window_start"], row["window_end"])
            counted.append(result_row(key_of(row), window, amount, values, run.interval_from))
        columns = Columns(groups, tuple(measures), measure)
        return summarise(counted, columns, older_rows=len(near) - len(rows), version=run.results_version)
    amounts = []
    for row in rows:
        stretch, own = number_of(row[time], span.unit.seconds), span.since <= row[time] < span.until
        held = amount_of_row(row, "matches", count=True) if layout.graphs else Amount.of_count(1)
        amounts.append(((*key_of(row), stretch, own), held))
    mine = [row for row in rows if span.since <= row[time] < span.until]
    apart = ["match_id", *measures, *groups]
    longest = [
        RowResult(key_of(row), Window(row["start"], row["end"]), values_of(row))
        for row in longest_of(mine, apart, graphs=layout.graphs, most=ROWS_RANKED)
    ]
    facts = facts_of(groups, span, amounts, tuple(measures), longest, len(mine))
    return replace(facts, older_rows=len(near) - len(rows), version=run.results_version)


def longest_of(
    rows: Sequence[Mapping[str, Any]], apart: Sequence[str], *, graphs: bool, most: int
) -> list[Mapping[str, Any]]:
    """The rows from whose `start` to `end` most time passes, or, of `graphs`, with most matches."""
    ordered = sorted(rows, key=lambda row: [in_order(row[name]) for name in apart])
    ordered.sort(key=lambda row: row["end"], reverse=True)
    if graphs:
        ordered.sort(key=lambda row: in_order(row["matches_log10"]), reverse=True)
    else:
        ordered.sort(key=lambda row: row["end"] - row["start"], reverse=True)
    return ordered[:most]


def in_order(value: Any) -> tuple[Any, ...]:
    """Spark's order: NULL first, NaN last, lists item by item."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, [in_order(item) for item in value]) if isinstance(value, list) else (1, value)


def reasons_of(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str | None, str | None, int]]:
    """Rule, reason and how many rows have both; the most frequent first."""
    counts = Counter((row["rule"], row["reason"]) for row in rows)
    return sorted(
        ((rule, reason, n) for (rule, reason), n in counts.items()),
        key=lambda item: (-item[2], in_order(item[0]), in_order(item[1])),
    )
