"""Moments and windows at the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import CI
from trendlake.cep_core.events.windows import BEGINNING, END, Windows, WindowsAhead, both, clock_text, moment

TIMES = st.integers(BEGINNING, END)


@given(TIMES)
@CI
def test_every_moment_of_the_calendar_is_a_text(micros: int) -> None:
    """And the text is read as the same moment."""
    assert datetime.fromisoformat(clock_text(micros)).replace(tzinfo=UTC) == moment(micros)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (BEGINNING, "0001-01-01T00:00:00"),
        (BEGINNING - 1, "0001-01-01T00:00:00"),
        (END, "9999-12-31T23:59:59.999999"),
        (END + 1, "9999-12-31T23:59:59.999999"),
        (-1, "1969-12-31T23:59:59.999999"),
        (0, "1970-01-01T00:00:00"),
    ],
)
def test_bounds_beyond_the_calendar_are_its_ends(micros: int, text: str) -> None:
    """A window may begin before the first moment there is."""
    assert clock_text(micros) == text


@given(TIMES, TIMES, st.integers(1, 10**18), st.integers(1, 10**12), st.integers(-(10**17), 10**17))
@CI
def test_windows_after_a_time(start: int, end: int, within: int, slide: int, origin: int) -> None:
    """`after` is the first that ends later; `ending_in` those that end in an interval; `both` what two have."""
    windows = Windows(within, slide, origin)
    first = windows.after(start)
    assert windows.end(first) > start >= windows.end(first - 1)
    ending = windows.ending_in(*sorted((start, end)))
    assert all(windows.end(j) in range(min(start, end) + 1, max(start, end) + 1) for j in (*ending[:1], *ending[-1:]))
    assert windows.since(first) == windows.end(first - 1)
    at = windows.at(start)
    assert windows.start(at) <= start < windows.start(at + 1)
    held = windows.holding(start)
    firsts, lasts = windows.held(np.array([start]))
    assert (firsts[0], lasts[0]) == (first, at) == (held.start, held.stop - 1)
    numbers = np.array([first, at])
    assert windows.starts(numbers).tolist() == [windows.start(first), windows.start(at)]
    assert windows.ends(numbers).tolist() == [windows.end(first), windows.end(at)]
    assert both(held, ending) == both(ending, held)
    assert not both(held, range(held.stop, held.stop + 5))


@given(st.integers(-(10**6), 10**6), st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 1000))
@CI
def test_windows_that_read_ahead(time: int, within: int, slide: int, ahead: int) -> None:
    """They end where others do, and hold events behind that; they are complete when those are known."""
    windows, plain = WindowsAhead(within, slide, 3, ahead), Windows(within, slide, 3)
    assert windows.ending_in(time, time + 5000) == plain.ending_in(time, time + 5000)
    near = range(windows.at(time) - 2 * windows.overlap - 2, windows.at(time) + 2)
    holding = [j for j in near if windows.start(j) <= time < windows.end(j) + ahead]
    assert holding == list(windows.holding(time))
    assert len(holding) <= windows.overlap
    assert [end[0] for end in windows.held(np.array([time]))] == [windows.holding(time).start, windows.at(time)]
    last = windows.complete(time)
    assert windows.span(range(last, last + 1))[1] <= time < windows.span(range(last + 1, last + 2))[1]
