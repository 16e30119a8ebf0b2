"""The tables under the picture: top groups, busiest windows, largest rows. Every cell is made here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.amounts import Amount, digits, percent, share, text
from trendlake.pipelines.report.facts import ResultFacts, RowResult, Window
from trendlake.pipelines.report.sparkline import sparkline
from trendlake.pipelines.report.words import clock_range, group_label, moments_label, window_label

FEWEST_FOR_SPARKS = 3


@dataclass(frozen=True)
class Number:
    """An amount as shown: `short`, and all its `digits` where short hides some."""

    short: str
    digits: str | None = None


@dataclass(frozen=True)
class GroupRow:
    """A group in the ranking; `width` is its bar in percent, `spark` SVG markup; `rest`: all other groups."""

    label: str
    number: Number
    share: str
    width: float
    spark: str
    rest: bool = False


@dataclass(frozen=True)
class WindowRow:
    """A window over all groups; `mine`: it belongs to this run and not only to the history around it."""

    label: str
    number: Number
    groups: str
    leader: str
    mine: bool


@dataclass(frozen=True)
class LargestRow:
    """One result row with all its measures."""

    group: tuple[str, ...]
    window: str
    values: tuple[Number, ...]
    keys: tuple[str, ...] = ()
    """Of each of `values` the number by which a script orders rows; empty of a text."""
    at: str = ""
    """The same of the window: its start, seconds since the epoch."""


def number(amount: Amount, decimals: int | None = None) -> Number:
    """How `amount` is shown; `decimals` holds a column of fractions together."""
    return Number(text(amount, decimals), digits(amount))


def group_rows(results: ResultFacts, log: bool) -> tuple[GroupRow, ...]:
    """The ranked groups, then all others in one row."""
    starts = [point.window.start for points in results.series.values() for point in points]
    sparks = bool(starts) and has_sparks(results)
    rows = []
    for group in results.top_groups:
        points = results.series.get(group.key, ())
        spark = sparkline(points, log, min(starts), max(starts), results.apart) if sparks else ""
        label = group_label(group.key, results.group_columns)
        part, width = _parts(group.amount, results)
        rows.append(GroupRow(label, number(group.amount), part, width, spark))
    rest = results.groups - len(results.top_groups)
    if rest:
        label = plural(rest, "other group") + ("" if results.additive else ", at most")
        part, width = _parts(results.others, results)
        rows.append(GroupRow(label, number(results.others), part, width, "", rest=True))
    return tuple(rows)


def window_rows(results: ResultFacts, since: datetime | None) -> tuple[WindowRow, ...]:
    """The busiest windows of the span, those that end after `since` marked as the run's; a lone one is no
    ranking.
    """
    if results.span_windows < 2:
        return ()
    mixed = results.windows < results.span_windows
    label = _namer([result.window for result in results.busiest])
    return tuple(
        WindowRow(
            label=label(result.window),
            number=number(result.amount),
            groups=f"{result.groups:,}",
            leader=group_label(result.leader, results.group_columns),
            mine=mixed and since is not None and result.window.end > since,
        )
        for result in results.busiest
    )


def largest_rows(rows: Sequence[RowResult], measures: Sequence[str], *, events: bool) -> tuple[LargestRow, ...]:
    """Result rows with all their `measures`. `events`: their times are those of a first and a last event."""
    decimals = [_decimals([row.values[i][1] for row in rows]) for i in range(len(measures))]
    logs = [any(_only_log(row.values[i][1]) for row in rows) for i in range(len(measures))]
    label = moments_label if events else _namer([row.window for row in rows])
    return tuple(
        LargestRow(
            group=tuple(group_label((value,), ("",)) for value in row.key),
            window=label(row.window),
            values=tuple(
                Number(value) if isinstance(value, str) else number(value, places)
                for (_, value), places in zip(row.values, decimals, strict=True)
            ),
            keys=tuple(
                "" if isinstance(value, str) else _key(value, by_log)
                for (_, value), by_log in zip(row.values, logs, strict=True)
            ),
            at=f"{row.window.start.timestamp():.6f}",
        )
        for row in rows
    )


def _only_log(value: Amount | str) -> bool:
    return isinstance(value, Amount) and value.exact is None and value.log10 is not None


def _key(amount: Amount, by_log: bool) -> str:
    """A number in the order of the amounts of a column; by their logarithms, where that is all that is known of one."""
    value = amount.log10 if by_log else amount.exact
    if value is None:
        return "-1" if by_log and amount.exact == 0 else ""
    return str(float(value))


def text_columns(rows: Sequence[RowResult]) -> frozenset[str]:
    """The measures of `rows` that are no numbers."""
    return frozenset(name for row in rows for name, value in row.values if isinstance(value, str))


def share_of(part: Amount, results: ResultFacts) -> float | None:
    """The share of `part` in the run's total; below one whenever other groups have anything."""
    fraction = share(part, results.headline)
    approximate = part.exact is None or results.headline.exact is None
    return math.nextafter(1.0, 0.0) if fraction == 1.0 and approximate and results.groups > 1 else fraction


def has_sparks(results: ResultFacts) -> bool:
    """Whether there is enough of a past to draw one."""
    return results.span_windows >= FEWEST_FOR_SPARKS


def shown_of(which: str, shown: int, count: int, thing: str, where: str) -> str:
    """`The 10 busiest of 60 windows since May`, or `4 windows since May` when that is all of them."""
    head = plural(count, thing) if shown >= count else f"The {shown} {which} of {plural(count, thing)}"
    return f"{head} {where}"


def _parts(amount: Amount, results: ResultFacts) -> tuple[str, float]:
    """Share in words (of sums only) and the bar's width: of the total, else of the largest."""
    if results.additive:
        fraction = share_of(amount, results)
        return percent(fraction), round(100 * (fraction or 0), 2)
    top = results.top_groups[0].amount
    if results.measure.is_count:
        return "", round(100 * (share(amount, top) or 0), 2)
    value, most = amount.exact, top.exact
    if value is None or most is None or most <= 0:
        return "", 0.0
    return "", round(max(0.0, 100 * value / most), 2)


def _decimals(column: Sequence[Amount | str]) -> int | None:
    """Decimals of a column of fractions: 0 when all are whole, else two; None, each its own, when tiny."""
    values = [cell.exact for cell in column if isinstance(cell, Amount) and isinstance(cell.exact, float)]
    if not values or max(abs(value) for value in values) < 1:
        return None
    return 0 if all(value == math.floor(value) for value in values) else 2


def _namer(windows: Sequence[Window]) -> Callable[[Window], str]:
    """Names windows; without the day when all start on one and are shorter than it."""
    days = {window.start.date() for window in windows}
    short = all(window.end - window.start < timedelta(days=1) for window in windows)

    def clocks(window: Window) -> str:
        return clock_range(window.start, window.end)

    return clocks if len(days) == 1 and short else window_label
