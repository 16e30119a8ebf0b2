"""Charts of further measures: whatever the numbers, all marks are within the picture and in their order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.chart import NARROW, WIDE
from trendlake.pipelines.report.picture import Mark, Picture, Series, time_ticks
from trendlake.pipelines.site.line import line_svg

START = datetime(2026, 1, 5, tzinfo=UTC)
VALUES = st.one_of(st.none(), st.floats(), st.floats(-1000, 1000), st.integers(0, 9).map(float))


def picture(values: Sequence[float | None], ticks: tuple[tuple[float, str], ...] = ()) -> Picture:
    marks = tuple(Mark(START + timedelta(days=n), value, f'<a "{n}">&', "") for n, value in enumerate(values))
    return Picture("lines", (Series("x", "series1", marks),), False, ticks, False, True, False, None)


@given(st.lists(VALUES, min_size=2, max_size=40))
@example([-1.7e308, 1.7e308])
@example([0.0, 5e-324])
@example([-1e300, -1e300])
@example([math.nan, None])
def test_every_number_is_in_the_picture(values: Sequence[float | None]) -> None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    for size in (WIDE, NARROW):
        root = ElementTree.fromstring(line_svg(picture(values), size))
        points = [one.get("d", "") for one in root.iter("path") if one.get("class") == "point"]
        places = [tuple(map(float, re.findall(r"-?\d+\.\d", point)[:2])) for point in points]
        assert len(places) == len(known)
        assert all(-3.1 <= x <= size.width and 0 <= y <= size.height for x, y in places)
        by_value = sorted(zip(known, places, strict=True), key=lambda one: one[0])
        assert all(above[1] <= below[1] for (_, below), (_, above) in pairwise(by_value))


def test_lengths_of_time_have_ticks_of_clocks() -> None:
    """From zero on, in steps of a clock; none of other numbers."""
    seconds = [Amount(value, None, 1) for value in (600.0, 8_100.0)]
    assert [label for _, label in time_ticks(seconds)] == [
        "0:00:00",
        "0:30:00",
        "1:00:00",
        "1:30:00",
        "2:00:00",
        "2:30:00",
    ]
    days = [Amount(value * 86_400_000_000, None, 1_000_000) for value in (3, 9)]
    labels = ["0:00:00", *(f"{n} days 0:00:00" for n in range(2, 11, 2))]
    assert [label for _, label in time_ticks(days)] == labels
    assert time_ticks([Amount(600.0)]) == time_ticks([Amount(-1.0, None, 1)]) == time_ticks([]) == ()
    root = ElementTree.fromstring(line_svg(picture([600.0, 8_100.0], time_ticks(seconds)), WIDE))
    assert "2:30:00" in [one.text for one in root.iter("text")]
