"""Result rows reduced to as much as one page can show: rankings, sums and series, from reading the rows twice.

Memory goes with the number of groups and of windows, not of rows. Groups beyond a limit below are summed into "others"
and counted, never dropped.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.bins import number_of, shared_point
from trendlake.pipelines.report.facts import (
    GroupKey,
    GroupResult,
    Measure,
    Point,
    ResultFacts,
    RowResult,
    Window,
    WindowResult,
)
from trendlake.pipelines.report.tally import Tally

GROUPS_RANKED = 10
WINDOWS_RANKED = 10
ROWS_RANKED = 10
LINES_DRAWN = 6
"""As many colours as one tells apart."""
BARS_DRAWN = 10
MOST_POINTS = 200
"""Points of one series; beyond, the largest window of each bucket of time stands for it."""


class ResultRow(NamedTuple):
    """A group in a window: its amount that the report counts by, all measures by name. `own`: the part of the amount
    that is the run's, of a window that is its own in part; None where none is."""

    key: GroupKey
    window: Window
    amount: Amount
    values: tuple[tuple[str, Amount | str], ...]
    own: Amount | None


def result_row(
    key: GroupKey, window: Window, amount: Amount, values: tuple[tuple[str, Amount | str], ...], since: datetime | None
) -> ResultRow:
    """A row of a results table: the run's if its window ends after `since`."""
    return ResultRow(key, window, amount, values, amount if since is None or window.end > since else None)


@dataclass(frozen=True)
class Columns:
    """The names of the rows' groups and measures, and which measure counts."""

    groups: tuple[str, ...]
    measures: tuple[str, ...]
    measure: Measure


def summarise(
    rows: Iterable[ResultRow], columns: Columns, *, older_rows: int = 0, version: int | None = None
) -> ResultFacts:
    """The facts of `rows`, which can be iterated twice. Rows that are not the run's `own` are its history; no two rows
    have both group and window in common."""
    first = _first_pass(rows)
    is_count = columns.measure.is_count
    windows = sorted(first.windows, key=lambda window: (window.start, window.end))
    additive = is_count and not any(b.start < a.end for a, b in pairwise(windows))
    tallies = {**first.groups, **first.mine}
    ranked = heapq.nsmallest(
        GROUPS_RANKED,
        tallies,
        key=lambda key: (key not in first.mine, _descending(tallies[key].value(add=additive), key)),
    )
    top = [key for key in ranked if key in first.mine]
    drawn = _drawn(len(ranked), len(first.groups), len(windows))
    starts = [window.start for window in windows]
    bucket = shared_point(len(windows), starts[-1] - starts[0], MOST_POINTS) if windows else None
    series, others_series = _second_pass(rows, ranked, drawn, is_count, bucket)
    whole = Tally()
    for tally in first.own_windows.values():
        whole.add(tally.value(add=is_count), ())
    rest = Tally()
    for key in first.mine.keys() - set(top):
        rest.add(first.mine[key].value(add=additive), key)
    return ResultFacts(
        group_columns=columns.groups,
        measure=columns.measure,
        measures=columns.measures,
        additive=additive,
        rows=first.rows,
        windows=len(first.own_windows),
        groups=len(first.mine),
        headline=whole.value(add=additive) if whole.count else Amount(None),
        top_groups=tuple(GroupResult(key, first.mine[key].value(add=additive), first.mine[key].count) for key in top),
        others=rest.value(add=additive) if rest.count else Amount(None),
        series=series,
        drawn=drawn,
        others_series=others_series,
        others_drawn=len(first.groups) - drawn,
        busiest=_busiest(first.windows, is_count),
        span_windows=len(windows),
        span_from=windows[0].start if windows else None,
        largest=first.largest,
        older_rows=older_rows,
        step_seconds=_step(windows),
        bucket_seconds=bucket,
        version=version,
    )


@dataclass(frozen=True)
class _FirstPass:
    """Tallies by group and by window, of the run and of the whole span, and the run's largest rows."""

    mine: Mapping[GroupKey, Tally]
    groups: Mapping[GroupKey, Tally]
    own_windows: Mapping[Window, Tally]
    windows: Mapping[Window, Tally]
    rows: int
    largest: tuple[RowResult, ...]


def _first_pass(rows: Iterable[ResultRow]) -> _FirstPass:
    mine: dict[GroupKey, Tally] = defaultdict(Tally)
    own_windows: dict[Window, Tally] = defaultdict(Tally)
    groups: dict[GroupKey, Tally] = defaultdict(Tally)
    windows: dict[Window, Tally] = defaultdict(Tally)

    def tallied() -> Iterator[ResultRow]:
        for row in rows:
            groups[row.key].add(row.amount, row.key)
            windows[row.window].add(row.amount, row.key)
            if row.own is not None:
                own_windows[row.window].add(row.own, row.key)
                mine[row.key].add(row.own, row.key)
                yield row

    by_size = heapq.nsmallest(
        ROWS_RANKED, tallied(), key=lambda row: (*_descending(row.amount, row.key), row.window.start)
    )
    return _FirstPass(
        mine,
        groups,
        own_windows,
        windows,
        sum(tally.count for tally in mine.values()),
        tuple(RowResult(row.key, row.window, row.values) for row in by_size),
    )


def _second_pass(
    rows: Iterable[ResultRow], ranked: Sequence[GroupKey], drawn: int, is_count: bool, bucket: int | None
) -> tuple[dict[GroupKey, tuple[Point, ...]], tuple[Point, ...]]:
    """Window by window, the amounts of the ranked groups, and of all that are not drawn by themselves together; a
    ranked group that is not drawn belongs to both."""
    series: dict[GroupKey, list[Point]] = {key: [] for key in ranked}
    apart = set(ranked[:drawn])
    together: dict[Window, Tally] = defaultdict(Tally)
    for row in rows:
        if row.key in series:
            series[row.key].append(Point(row.window, row.amount))
        if row.key not in apart:
            together[row.window].add(row.amount, row.key)
    others = [Point(window, tally.value(add=is_count)) for window, tally in together.items()]
    return {key: _thin(points, bucket) for key, points in series.items()}, _thin(others, bucket)


def _thin(points: Iterable[Point], bucket: int | None) -> tuple[Point, ...]:
    """In order of time; of each bucket, the largest."""
    ordered = sorted(points, key=lambda point: point.window.start)
    if bucket is None:
        return tuple(ordered)
    best: dict[int, Point] = {}
    for point in ordered:
        slot = number_of(point.window.start, bucket)
        if slot not in best or point.amount.order > best[slot].amount.order:
            best[slot] = point
    return tuple(best.values())


def _busiest(windows: Mapping[Window, Tally], is_count: bool) -> tuple[WindowResult, ...]:
    top = heapq.nsmallest(
        WINDOWS_RANKED, windows.items(), key=lambda item: (*_descending(item[1].value(add=is_count), ()), item[0].start)
    )
    return tuple(WindowResult(window, tally.value(add=is_count), tally.count, tally.leader) for window, tally in top)


def _drawn(ranked: int, groups: int, windows: int) -> int:
    """How many groups the picture shows by themselves: a lone one left over is shown rather than called "others"."""
    most = BARS_DRAWN if windows == 1 else LINES_DRAWN
    return min(ranked, groups if groups == most + 1 else most)


def _step(windows: Sequence[Window]) -> float | None:
    steps = [(b.start - a.start).total_seconds() for a, b in pairwise(windows)]
    return min((step for step in steps if step > 0), default=None)


def _descending(amount: Amount, key: GroupKey) -> tuple[tuple[float, ...], tuple[tuple[bool, str], ...]]:
    """Largest first; among equals by name, NULL last."""
    return tuple(-part for part in amount.order), tuple((value is None, value or "") for value in key)
