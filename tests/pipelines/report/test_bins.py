"""Stretches of time are those of a calendar: weeks begin on Monday, and the year's ends do not matter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendlake.cep_core.events.windows import moment as moment_at
from trendlake.pipelines.error_text import plural, several
from trendlake.pipelines.report.bins import (
    LENGTHS,
    MONDAY_MICROS,
    MOST_UNITS,
    SECOND,
    UNITS,
    number_of,
    number_of_micros,
    shared_point,
    unit_of,
)
from trendlake.pipelines.report.facts import Window
from trendlake.pipelines.report.words import extent_label, moments_label

MOMENTS = st.datetimes(timezones=st.just(UTC))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(MOMENTS, MOMENTS)
def test_a_span_is_cut_into_few_stretches(first: datetime, last: datetime) -> None:
    """Each moment is in the stretch of its number; from year 1 to 9999."""
    first, last = sorted((first, last))
    unit = unit_of(first, last)
    low, high = number_of(first, unit.seconds), number_of(last, unit.seconds)
    assert high - low <= MOST_UNITS
    for moment, number in ((first, low), (last, high)):
        start, end = unit.ends(number)
        assert start <= moment <= end
        assert number_of_micros((moment - EPOCH) // timedelta(microseconds=1), unit.seconds) == number
    assert unit.seconds in (*UNITS.values(), *LENGTHS)


@given(MOMENTS, st.sampled_from([seconds for seconds in LENGTHS if seconds <= 86_400]))
def test_stretches_of_a_day_and_less_are_the_clock_s(moment: datetime, seconds: int) -> None:
    """They begin at multiples of their length from midnight."""
    start = moment_at(number_of(moment, seconds) * seconds * SECOND + MONDAY_MICROS)
    assert (start - start.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds() % seconds == 0


@given(MOMENTS, st.sampled_from([seconds for seconds in LENGTHS if seconds >= UNITS["week"]]))
def test_weeks_and_longer_stretches_begin_on_monday(moment: datetime, seconds: int) -> None:
    """The first one that a date can be in, too: 1 January of year 1 was a Monday."""
    start = moment_at(number_of(moment, seconds) * seconds * SECOND + MONDAY_MICROS)
    assert start.weekday() == 0
    assert start.time() == datetime.min.time()


@pytest.mark.parametrize(
    ("days", "name"),
    [
        (1 / 48, "minute"),
        (2, "hour"),
        (60, "day"),
        (61, "week"),
        (420, "week"),
        (421, "2-week stretch"),
        (3000, "8-week stretch"),
    ],
)
def test_the_unit_of_a_span(days: float, name: str) -> None:
    """The shortest that makes few stretches."""
    assert unit_of(EPOCH, EPOCH + timedelta(days=days)).name == name


def test_many_windows_share_points() -> None:
    """Few have each their own."""
    assert shared_point(200, timedelta(days=200), 200) is None
    assert shared_point(201, timedelta(days=200), 200) == 172_800
    assert shared_point(10_000, timedelta(days=1), 200) == 600


def test_words() -> None:
    """Of stretches in the plural, and of the time from a first moment to a last, which is no window's."""
    assert (plural(1, "week"), plural(2, "4-week stretch"), several("day")) == ("1 week", "2 4-week stretches", "days")
    midnight = datetime(2026, 1, 5, tzinfo=UTC)
    two_days = Window(midnight, midnight + timedelta(days=2))
    assert extent_label(midnight, midnight) == "5 Jan 2026, 00:00"
    assert extent_label(midnight, midnight + timedelta(hours=1)) == "5 Jan 2026, 00:00\u00a0–\u00a001:00"
    assert extent_label(midnight, two_days.end) == "Mon 5 Jan 2026 – Wed 7 Jan 2026"
    assert moments_label(two_days) == "5 Jan 2026, 00:00 – 7 Jan 2026, 00:00"
