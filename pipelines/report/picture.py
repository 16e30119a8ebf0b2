"""From result facts to a picture: which form, which series, which scale. No drawing here, see `chart`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Literal

from trendlake.cep_core.events.windows import shifted
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.amounts import LONGEST, Amount, superscript, text, time_text
from trendlake.pipelines.report.bins import WEEK
from trendlake.pipelines.report.facts import Point, ResultFacts
from trendlake.pipelines.report.words import group_label, window_label

LOG_FROM_DECADES = 3.0
"""Counts that differ by so many orders of magnitude go on a logarithmic axis,"""
LOG_FROM_DIGITS = 15.0
"""and so do counts of so many digits."""


@dataclass(frozen=True)
class Mark:
    """A point or bar. `value` is in axis units (log10 on a logarithmic axis); None breaks the line."""

    at: datetime
    value: float | None
    label: str
    shown: str


@dataclass(frozen=True)
class Series:
    """One group's marks; `role` names its colour."""

    label: str
    role: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Picture:
    """The picture to draw. `ticks` (value, label) are given for logarithmic axes and for those of lengths of time."""

    form: Literal["lines", "bars", "nothing"]
    series: tuple[Series, ...]
    log: bool
    ticks: tuple[tuple[float, str], ...]
    whole: bool
    daily: bool
    weekly: bool
    """Whether marks are weeks, or stretches of weeks, from Monday on."""
    band: tuple[datetime, datetime] | None
    message: str = ""


def picture(facts: ResultFacts | None, since: datetime | None, noun: str) -> Picture:
    """The picture of a run whose interval starts at `since`; lines over time, bars when there is but one
    window.
    """
    if facts is None or facts.span_windows == 0:
        return Picture("nothing", (), False, (), True, False, False, None, f"No {noun} to draw")
    bars = facts.span_windows == 1
    lines: list[tuple[str, str, Sequence[Point]]] = [
        (group_label(key, facts.group_columns), f"series{i + 1}", points)
        for i, (key, points) in enumerate(list(facts.series.items())[: facts.drawn])
    ]
    if facts.others_series:
        lines.append((others_label(facts, bars), "rest", facts.others_series))
    amounts = [point.amount for _, _, points in lines for point in points]
    log = facts.measure.is_count and needs_log(amounts)
    return Picture(
        form="bars" if bars else "lines",
        series=tuple(Series(label, role, _marks(label, points, log, facts)) for label, role, points in lines),
        log=log,
        ticks=log_ticks(amounts, from_one=bars) if log else time_ticks(amounts),
        whole=facts.measure.is_count,
        daily=(facts.step_seconds or 0) >= 86_400,
        weekly=facts.unit != "window" and (facts.step_seconds or 0) >= WEEK,
        band=_band(facts, since, _step(facts)),
    )


def others_label(facts: ResultFacts, short: bool) -> str:
    """`13 other groups together`: those that are not drawn by themselves."""
    how = "" if short else " together" if facts.measure.is_count else " at most"
    return f"{plural(facts.others_drawn, 'other group')}{how}"


def needs_log(amounts: Sequence[Amount]) -> bool:
    """Whether counts span orders of magnitude, are huge, or one is known by its logarithm only."""
    logs = [amount.log10 for amount in amounts if amount.log10 is not None]
    unknown = any(amount.exact is None and amount.log10 is not None for amount in amounts)
    if not logs:
        return False
    return unknown or max(logs) >= LOG_FROM_DIGITS or max(logs) - min(logs) >= LOG_FROM_DECADES


def log_ticks(amounts: Sequence[Amount], *, from_one: bool) -> tuple[tuple[float, str], ...]:
    """At most seven whole powers of ten that enclose the amounts, as (log10, label)."""
    logs = [amount.log10 for amount in amounts if amount.log10 is not None]
    low = 0 if from_one else math.floor(min(logs))
    high = max(low + 1, math.ceil(max(logs)))
    step = next(s for e in range(12) for s in (10**e, 2 * 10**e, 5 * 10**e) if (high - low) / s <= 6)
    first = low - low % step
    values = range(first, high + (-(high - first)) % step + 1, step)
    return tuple((float(v), f"{10**v:,}" if values[-1] <= 6 else f"10{superscript(v)}") for v in values)


STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
"""Seconds between ticks of lengths of time that are shorter than a day."""


def time_ticks(amounts: Sequence[Amount]) -> tuple[tuple[float, str], ...]:
    """At most six ticks from zero on that enclose lengths of time; none of other numbers, of lengths below zero, and of
    those that are no longer than a second."""
    values = [float(amount.exact) for amount in amounts if amount.unit and amount.exact is not None]
    unit = next((amount.unit for amount in amounts if amount.unit), 0)
    most = max(values, default=0.0) / unit if unit else 0.0
    if not 1 < most < LONGEST or min(values) < 0:
        return ()
    days = (86_400 * step * 10**e for e in range(10) for step in (1, 2, 5))
    step = next(step for step in chain(STEPS, days) if most / step <= 5)
    return tuple(
        (float(at * unit), time_text(at * unit, unit)) for at in range(0, math.ceil(most / step) * step + 1, step)
    )


def _marks(label: str, points: Sequence[Point], log: bool, facts: ResultFacts) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for i, point in enumerate(points):
        if i and facts.apart(points[i - 1].window, point.window):
            marks.append(Mark(shifted(points[i - 1].window.start, _step(facts)), None, "", ""))
        value = point.amount.log10 if log else point.amount.exact
        shown = text(point.amount)
        number = None if value is None else float(value)
        marks.append(Mark(point.window.start, number, f"{label}\n{shown}\n{window_label(point.window)}", shown))
    return tuple(marks)


def _step(facts: ResultFacts) -> timedelta:
    return timedelta(seconds=facts.bucket_seconds or facts.step_seconds or 0)


def _band(facts: ResultFacts, since: datetime | None, step: timedelta) -> tuple[datetime, datetime] | None:
    """The stretch of the time axis that is this run's, half a step wider than its windows; None where it is
    all.
    """
    if since is None or facts.windows == 0 or facts.windows == facts.span_windows:
        return None
    starts = [
        point.window.start
        for points in [*facts.series.values(), facts.others_series]
        for point in points
        if point.window.end > since
    ]
    return (shifted(min(starts), -step / 2), shifted(max(starts), step / 2)) if starts else None
