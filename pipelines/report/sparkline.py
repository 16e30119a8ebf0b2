"""A line as small as a word: one group's past next to its number. Coordinates only, no text, so nothing to
escape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from trendlake.pipelines.report.facts import Point, Window

WIDTH, HEIGHT, MARGIN = 120, 26, 3


def sparkline(
    points: Sequence[Point], log: bool, first: datetime, last: datetime, apart: Callable[[Window, Window], bool]
) -> str:
    """SVG markup of `points` from `first` to `last`, on its own scale; windows `apart` break the line."""
    seen = [(point.window, value) for point in points if (value := _value(point, log)) is not None]
    if not seen:
        return ""
    high = max(value for _, value in seen)
    low = min(value for _, value in seen)
    low = low if log else min(0.0, low)
    seconds = (last - first).total_seconds() or 1.0
    path, lonely, previous = [], [], None
    for i, (window, value) in enumerate(seen):
        up = (value - low) / (high - low) if high > low else 0.5
        x = MARGIN + (window.start - first).total_seconds() / seconds * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)
        joined = previous is not None and not apart(previous, window)
        followed = i + 1 < len(seen) and not apart(window, seen[i + 1][0])
        path.append(f"{'L' if joined else 'M'}{x:.1f} {y:.1f}")
        if not joined and not followed:
            lonely.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.2"/>')
        previous = window
    end = f'<circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>'
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg class="spark" {box} aria-hidden="true"><path d="{"".join(path)}"/>{"".join(lonely)}{end}</svg>'


def _value(point: Point, log: bool) -> float | None:
    value = point.amount.log10 if log else point.amount.exact
    return None if value is None else float(value)
