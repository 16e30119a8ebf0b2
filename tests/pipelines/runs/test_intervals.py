"""Intervals of windows, as commands take them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trendlake.cep_core import Pattern, load_pattern
from trendlake.cep_core.events.windows import CalendarWindows, Windows
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.revision.scope import backfills
from trendlake.pipelines.runs.intervals import END, LocalTimes, interval_of, options_of

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


def pattern(**keys: str) -> Pattern:
    query = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)"}, "within": "1 day"}
    return load_pattern({**query, "time_zone": "America/New_York", **keys})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2013-02-01", "2013-02-01T05:00"),
        ("2013-07-01", "2013-07-01T04:00"),
        ("2013-02-01T09:30", "2013-02-01T14:30"),
        ("2013-02-01T09:30Z", "2013-02-01T09:30"),
        ("2013-02-01T09:30+01:00", "2013-02-01T08:30"),
        ("2013-03-10T02:30", "2013-03-10T07:00"),
        ("2013-11-03T01:30", "2013-11-03T05:30"),
    ],
)
def test_times_of_a_pattern_are_local(text: str, moment: str) -> None:
    """Without an offset; a time that the clock skips is the moment of the change, and of one shown twice the first
    counts."""
    expected = micros_of(moment, "--from")
    assert LocalTimes.of(pattern()).micros(text, "--from") == expected
    assert LocalTimes.of(pattern(within="6 hours")).micros(text, "--from") == expected


def test_a_date_alone_begins_with_its_day() -> None:
    """February is February for days from four o'clock, too; and for months that begin on the 15th."""
    times = LocalTimes.of(pattern(origin="2013-01-01T04:00"))
    assert times.micros("2013-02-01", "--from") == micros_of("2013-02-01T09:00", "--from")
    assert times.micros("2013-02-01T00:00", "--from") == micros_of("2013-02-01T05:00", "--from")
    assert times.written(times.micros("2013-02-01", "--from")) == "2013-02-01"
    monthly = LocalTimes.of(pattern(within="1 month", origin="2013-01-15T04:00"))
    assert monthly.micros("2013-02-01", "--from") == micros_of("2013-02-01T09:00", "--from")


def test_a_remark_names_the_moment() -> None:
    """Of a time that is skipped or shown twice, and of no other."""
    times = LocalTimes.of(pattern())
    skipped = "--from 2013-03-10T02:30 is skipped by the clocks of America/New_York: 2013-03-10T03:00:00-04:00 is meant"
    assert times.remark("2013-03-10T02:30", "--from") == skipped
    repeated = "--to 2013-11-03T01:30 comes twice on the clocks of America/New_York: 2013-11-03T01:30:00-04:00 is meant"
    assert times.remark("2013-11-03T01:30", "--to") == repeated
    for text in ("2013-03-10", "2013-03-10T03:00", "2013-11-03T01:30Z"):
        assert times.remark(text, "--from") is None


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "UTC"])
@pytest.mark.parametrize("origin", ["2009-01-01", "2009-01-01T02:30", "2009-01-01T01:30"])
def test_local_options_mean_their_windows(zone: str, origin: str) -> None:
    """Written and read again, over the changes of clocks of some years."""
    read = pattern(time_zone=zone, origin=origin)
    times, windows = LocalTimes.of(read), CalendarWindows(1, 1, 0, zone, False, LocalTimes.of(read).day_begins)
    for j in range(14_200, 16_200, 1 if zone == "Pacific/Apia" else 3):
        if windows.exists(j):
            options = options_of(windows, j, j, times).split()
            start, end = times.micros(options[1], options[0]), times.micros(options[3], options[2])
            assert list(windows.ending_in(start, end)) == [j]
