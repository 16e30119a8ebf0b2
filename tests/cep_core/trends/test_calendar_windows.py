"""Calendar windows beside a walk over days, and the arithmetic of their numbers."""

from __future__ import annotations

import os
import random
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.agreement import TALLIES, Tally
from tests.random.calendars import NEAR, calendar_questions, disagreement
from tests.random.profile import examples
from tests.reference import calendar
from trendlake.cep_core.events.windows import DAY, CalendarWindows
from trendlake.cep_core.events.zones import Clock, zone, zone_names

pytestmark = pytest.mark.random

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.more_in_chaos
@examples(600)
@given(calendar_questions())
def test_kernels_agree_with_a_walk_over_days(question: Any) -> None:
    """Random patterns, both changes of clocks of ten zones and more, skipped days, days that begin at any time."""
    assert disagreement(question, TALLIES.setdefault("calendar", Tally())) == []


@st.composite
def windows(draw: st.DrawFn) -> tuple[CalendarWindows, int]:
    """Windows and a moment near a change of their clock."""
    name = draw(st.sampled_from(sorted(NEAR)))
    day = datetime.fromisoformat(draw(st.sampled_from(NEAR[name]))).replace(tzinfo=UTC)
    moment = (day - EPOCH) // timedelta(microseconds=1) + draw(st.integers(-3 * DAY, 3 * DAY))
    months = draw(st.booleans())
    shift = draw(st.sampled_from((0, 0, 90 * 60_000_000, DAY // 6))) + draw(st.integers(0, 27)) * DAY * months
    lengths = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    return CalendarWindows(*lengths, draw(st.integers(-9, 9)), name, months, shift), moment


@examples(1_000)
@given(windows())
def test_windows_of_a_moment(drawn: tuple[CalendarWindows, int]) -> None:
    """What is said of one is said of many; the windows that hold a moment are those that it lies in."""
    asked, moment = drawn
    near = range(asked.at(moment) - 20, asked.at(moment) + 20)
    assert [j for j in near if asked.start(j) <= moment < asked.end(j)] == list(asked.holding(moment))
    assert asked.after(moment) == next(j for j in near if asked.end(j) > moment)
    assert asked.at(moment) == [j for j in near if asked.start(j) <= moment][-1]
    first, last = asked.held(np.array([moment]))
    assert (first[0], last[0]) == (asked.after(moment), asked.at(moment))
    numbers = np.array(near)
    assert asked.starts(numbers).tolist() == [asked.start(j) for j in near]
    assert asked.ends(numbers).tolist() == [asked.end(j) for j in near]
    assert all(asked.end(j) - asked.start(j) <= asked.longest for j in near)
    since = asked.since(near[0])
    assert since == max(asked.end(j) for j in range(near[0] - 5, near[0]) if asked.end(j) < asked.end(near[0]))


@examples(200)
@given(windows(), st.integers(1, 10 * DAY), st.integers(1, 10 * DAY))
def test_intervals_own_each_window_once(drawn: tuple[CalendarWindows, int], one: int, other: int) -> None:
    """However they are cut; windows that do not exist belong to none or one."""
    asked, start = drawn
    middle, end = start + one, start + one + other
    parts = [asked.ending_in(start, middle), asked.ending_in(middle, end)]
    existing = [j for part in parts for j in part if asked.exists(j)]
    assert existing == [j for j in asked.ending_in(start, end) if asked.exists(j)]
    assert all(asked.exists(part[0]) and asked.exists(part[-1]) for part in parts if part)


def test_the_skipped_day_of_apia() -> None:
    """It is no window, and its neighbours touch."""
    days = CalendarWindows(1, 1, 0, "Pacific/Apia")
    skipped = (datetime(2011, 12, 30, tzinfo=UTC) - EPOCH).days
    assert [days.exists(j) for j in range(skipped - 1, skipped + 2)] == [True, False, True]
    assert days.end(skipped - 1) == days.start(skipped + 1)
    assert days.skips
    assert not CalendarWindows(1, 1, 0, "America/New_York").skips


@pytest.mark.parametrize("name", sorted(zone_names())[::7])
def test_clocks_are_those_of_zoneinfo(name: str) -> None:
    """At random moments of the years 2 to 9998, most of them since 1900."""
    clock, info, random = Clock.of(name), zone(name), np.random.default_rng(len(name))
    far = random.integers(-62_100_000_000, 253_300_000_000, 40)
    for second in (*far.tolist(), *random.integers(-2_200_000_000, 4_200_000_000, 160).tolist()):
        local = datetime.fromtimestamp(second, UTC).astimezone(info).utcoffset()
        assert local is not None
        assert clock.offset(second * 10**6) == local // timedelta(microseconds=1)


@examples(300)
@given(st.sampled_from(sorted(NEAR)), st.integers(0, 40_000), st.sampled_from((0, 90, 150, 240, 1_439)))
def test_a_day_begins_where_a_walk_finds_it(name: str, day: int, minutes: int) -> None:
    """Also at a time that the clock skips or shows twice."""
    reading = datetime(1970, 1, 1) + timedelta(days=day, minutes=minutes)
    first = Clock.of(name).first((reading - datetime(1970, 1, 1)) // timedelta(microseconds=1))
    assert EPOCH + timedelta(microseconds=first) == calendar.begins(reading, name)


LAST_YEAR = 2021
"""Later years are left out: the database of a Java may be older than the package's."""


def test_days_begin_where_java_says() -> None:
    """3,000 dates, a third of them near a change of clocks, skipped days too."""
    drawn = random.Random(3)
    names = sorted(NEAR)
    near = [(name, date.fromisoformat(day)) for name in names for day in NEAR[name]]
    dates = [(name, day + timedelta(days=k)) for name, day in near if day.year <= LAST_YEAR for k in range(-30, 31)]
    days = (date(LAST_YEAR, 12, 31) - date(1970, 1, 1)).days
    while len(dates) < 3_000:
        dates.append((drawn.choice(names), date(1970, 1, 1) + timedelta(days=drawn.randint(0, days))))
    asked = "".join(f"{name} {day}\n" for name, day in dates)
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    source = Path(__file__).parents[2] / "support" / "DayStarts.java"
    said = subprocess.run([java, source], input=asked, capture_output=True, text=True, check=True).stdout.split()
    ours = [CalendarWindows(1, 1, 0, name).start((day - date(1970, 1, 1)).days) // 10**6 for name, day in dates]
    differences = [(one, mine, his) for one, mine, his in zip(dates, ours, map(int, said), strict=True) if mine != his]
    assert differences == []
    assert len(dates) >= 3_000
