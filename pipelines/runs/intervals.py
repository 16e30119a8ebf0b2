"""Intervals of windows as a command takes them: `--from A --to B` means the windows that end in (A, B]."""

from __future__ import annotations

from trendlake.cep_core.events.windows import BEGINNING, END, Windows, clock_text


def interval_of(windows: Windows, first: int, last: int) -> tuple[int, int]:
    """The interval, microseconds, of the windows `first` to `last` (included)."""
    start, end = windows.since(first), windows.end(last)
    return min(max(start, BEGINNING), END - 1), min(max(end, BEGINNING + 1), END)


def options_of(windows: Windows, first: int, last: int) -> str:
    """`--from 2026-01-05 --to 2026-01-07T12:00:00`: the interval of the windows `first` to `last` (included)."""
    start, end = interval_of(windows, first, last)
    return f"--from {written(start)} --to {written(end)}"


def written(micros: int) -> str:
    """A time, microseconds since the epoch, as short as it can be written: midnight as a date, UTC."""
    return clock_text(micros).removesuffix("T00:00:00")
