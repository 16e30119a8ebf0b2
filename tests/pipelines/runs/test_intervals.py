"""Intervals of windows, as commands take them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trendlake.cep_core.events.windows import Windows
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.revision.scope import backfills
from trendlake.pipelines.runs.intervals import END, interval_of, options_of

DAY = 86_400_000_000


@pytest.mark.parametrize(
    "windows",
    [
        Windows(DAY, DAY),
        Windows(3 * DAY, DAY, 7),
        Windows(2 * DAY, DAY // 7, -5 * DAY),
        Windows(1_500, 1_000),
        Windows(4_000 * 366 * DAY + DAY, DAY, -4_000 * 366 * DAY),
    ],
)
@pytest.mark.parametrize("stretch", [(0, 0), (-700_000, -699_000), (3, 40)])
def test_the_options_mean_these_windows(windows: Windows, stretch: tuple[int, int]) -> None:
    """Written and read again: sliding windows, some of a millisecond, some that hold all history, years of three
    digits."""
    first, last = stretch
    options = options_of(windows, first, last).split()
    start, end = micros_of(options[1], options[0]), micros_of(options[3], options[2])
    assert windows.ending_in(start, end) == range(first, last + 1)


def test_times_are_written_as_short_as_they_can_be() -> None:
    """Midnight is a date."""
    day = int(datetime(2010, 3, 24, tzinfo=UTC).timestamp()) * 10**6 // DAY
    assert options_of(Windows(DAY, DAY), day, day + 1) == "--from 2010-03-24 --to 2010-03-26"
    assert options_of(Windows(DAY, DAY // 2), 2 * day, 2 * day).endswith("--from 2010-03-24T12:00:00 --to 2010-03-25")


def test_windows_that_end_after_the_year_9999() -> None:
    """A time that cannot be written is that of the last moment that can."""
    windows = Windows(DAY, DAY)
    last = END // DAY
    assert interval_of(windows, last, last) == (last * DAY, END)


def test_many_stretches_are_one_command() -> None:
    """Up to three have a command each, which leaves out what lies between them."""
    windows = Windows(DAY, DAY)
    few = [(0, 1), (3, 4), (6, 6)]
    assert [stretch for stretch, _ in backfills(windows, "x", few)] == few
    (one,) = backfills(windows, "x", [*few, (8, 8)])
    assert one == ((0, 8), "backfill x --from 1970-01-01 --to 1970-01-10")
