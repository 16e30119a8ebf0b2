"""The chart of a measure that is one of several: a line over time, drawn in a thousandth of a second. The first measure
of a page has Vega's, which takes thirty times as long and has axes for every case."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape

from trendlake.pipelines.report.amounts import Amount, text
from trendlake.pipelines.report.chart import MONTHS_FROM, Size
from trendlake.pipelines.report.picture import Mark, Picture

TOP, RIGHT, BOTTOM = 10, 12, 28
"""Pixels around the lines."""
LETTER = 6.8
"""Pixels of a letter, about."""
TICKS = 5


def line_svg(picture: Picture, size: Size) -> str:
    """SVG markup of a picture with one series of lines, in the colours of the page; each mark says what it is, for the
    labels that a script shows."""
    marks = picture.series[0].marks
    values = [mark.value for mark in marks if mark.value is not None and math.isfinite(mark.value)]
    ticks = picture.ticks or _ticks(values)
    low, high = ticks[0][0], ticks[-1][0]
    left = 12 + LETTER * max(len(label) for _, label in ticks)
    wide, tall = size.width - left - RIGHT, size.height - TOP - BOTTOM
    first, last = marks[0].at, marks[-1].at
    seconds = (last - first).total_seconds() or 1.0

    def x(at: datetime) -> float:
        return left + wide * (at - first).total_seconds() / seconds

    def y(value: float) -> float:
        return TOP + tall * (1 - (value / 2 - low / 2) / (high / 2 - low / 2))

    grid = "".join(
        f'<path class="grid" d="M{left:.1f} {y(value):.1f}H{size.width - RIGHT}"/>'
        f'<text x="{left - 8:.1f}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(label)}</text>'
        for value, label in ticks
    )
    times = "".join(
        f'<text x="{x(at):.1f}" y="{size.height - 8}" text-anchor="{anchor}">{label}</text>'
        for at, label, anchor in _times(marks, 3 if size.small else 7)
    )
    path, joined = [], False
    for mark in marks:
        known = mark.value is not None and math.isfinite(mark.value)
        if known and mark.value is not None:
            path.append(f"{'L' if joined else 'M'}{x(mark.at):.1f} {y(mark.value):.1f}")
        joined = known
    radius = 3 if len(marks) <= 40 else 2 if len(marks) <= 80 else 1.3
    points = "".join(
        f'<path class="point" d="{_circle(x(mark.at), y(mark.value), radius)}" aria-label="{escape(mark.label)}"/>'
        for mark in marks
        if mark.value is not None and math.isfinite(mark.value)
    )
    box = f'viewBox="0 0 {size.width} {size.height}" width="{size.width}" height="{size.height}"'
    return f'<svg class="line" {box}>{grid}{times}<path class="stroke" d="{"".join(path)}"/>{points}</svg>'


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0"


def _ticks(values: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Round numbers around the values, about `TICKS`; zero is one of them where that leaves the line its shape."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and (low < high / 2 or low == high):
        low = 0.0
    elif high < 0 and (high > low / 2 or low == high):
        high = 0.0
    rough = high / TICKS - low / TICKS
    if not rough > sys.float_info.min:
        low, high, rough = 0.0, 1.0, 1 / TICKS
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * one for one in (1, 2, 5, 10) if size * one >= rough)
    numbers = range(math.floor(low / step), math.ceil(high / step) + 1)
    largest = sys.float_info.max
    ticks = [max(-largest, min(at * step, largest)) for at in numbers]
    return tuple((at, text(Amount(at if step < 1 else float(round(at))))) for at in ticks)


def _times(marks: Sequence[Mark], most: int) -> list[tuple[datetime, str, str]]:
    """Some of the marks' times, with what they say and where it is put."""
    span = marks[-1].at - marks[0].at
    count = min(most, len(marks))
    picked = sorted({round(n * (len(marks) - 1) / max(count - 1, 1)) for n in range(count)})
    form = "%H:%M" if span < timedelta(days=2) else "%d %b" if span < MONTHS_FROM else "%b %Y"
    anchors = {picked[0]: "start", picked[-1]: "end"}
    return [(marks[n].at, _said(marks[n].at, form), anchors.get(n, "middle")) for n in picked]


def _said(at: datetime, form: str) -> str:
    said = f"{at:{form}}"
    return said.removeprefix("0") if form == "%d %b" else said
