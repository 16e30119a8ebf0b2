"""Notes of publications in a time zone: their stored form, and which windows the offsets in them make stale."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tests.pipelines.results.test_coverage import SCHEMA
from trendlake.cep_core import compile_query
from trendlake.cep_core.events import zones
from trendlake.cep_core.events.windows import CalendarWindows
from trendlake.cep_core.events.zones import Clock
from trendlake.pipelines.results.coverage import Claim, claim_of, claimed_windows, covered, grid_of, slice_of
from trendlake.pipelines.results.notes import Note, Work, Zone
from trendlake.pipelines.results.row_versions import differing, row_versions, stale_rows
from trendlake.pipelines.runs.source_versions import Versions

QUERY = {"kind": "trends", "pattern": "A+", "return": {"n": "COUNT(*)"}, "within": "1 day"}
DAILY = compile_query({**QUERY, "time_zone": "America/New_York", "origin": "2013-01-01T04:00"}, SCHEMA)
HOUR = 3_600_000_000
FIRST, LAST = 15_706, 15_706 + 364
"""2013."""
STORED = {
    "grid": {
        "column": "window_start",
        "origin": 1_357_030_800_000_000,
        "slide": 86_400_000_000,
        "lead": 86_400_000_000,
        "within": 90_000_000_000,
        "calendar": {
            "within": 1,
            "slide": 1,
            "origin": 15_706,
            "zone": "America/New_York",
            "months": False,
            "shift": 14_400_000_000,
        },
    },
    "zone": {
        "name": "America/New_York",
        "database": "2026f",
        "offsets": [
            [1_357_030_800_000_000, -18_000],
            [1_362_898_800_000_000, -14_400],
            [1_383_458_400_000_000, -18_000],
        ],
    },
}
"""As version 0.4 writes it: later ones read it."""


def year(first: int = 0, last: int = 364) -> tuple[int, int]:
    """The slice of days of 2013."""
    return slice_of(DAILY, first, last)


def note() -> Note:
    """Of the year, three offsets."""
    start, end = DAILY.windows.start(0), DAILY.windows.end(364)
    zone = Zone("America/New_York", "2026f", Clock.of("America/New_York").within(start, end))
    return Note("form", Versions.one(1), (year(),), grid=grid_of(DAILY), work=Work({"trends": 3}, (year(),)), zone=zone)


def test_the_stored_form() -> None:
    """It is read as it was written; notes of patterns without a zone have neither key."""
    stored = note().as_json()
    assert stored["zone"] == STORED["zone"]
    assert stored["grid"] == STORED["grid"]
    again = Note.from_json(stored)
    assert (again.zone, again.grid) == (note().zone, note().grid)
    assert again.grid is not None
    assert again.grid.calendar is not None
    assert again.grid.calendar.windows == DAILY.windows
    hourly = compile_query({**QUERY, "within": "1 hour"}, SCHEMA)
    plain = Note("form", Versions.one(1), (), grid=grid_of(hourly)).as_json()
    assert "zone" not in plain
    assert "calendar" not in plain["grid"]


def test_windows_of_a_claim() -> None:
    """The slice is that of its windows; of a form with another calendar those that it meets."""
    claim = claim_of(note(), 1)
    assert claim is not None
    assert claimed_windows(DAILY, claim, *year(3, 7)) == (3, 7)
    (segment,) = covered(DAILY, [claim])
    assert (segment.first, segment.last) == (0, 364)
    weekly = compile_query({**QUERY, "within": "1 week", "time_zone": "Europe/Berlin"}, SCHEMA)
    first, last = claimed_windows(weekly, claim, *year(3, 16))
    low, high = year(3, 16)
    assert weekly.windows.start(first) <= low < weekly.windows.start(first + 1)
    assert weekly.windows.start(last) < high <= weekly.windows.start(last + 1)
    matches = compile_query({"kind": "matches", "pattern": "SEQ(A a, B b)", "within": "3 hours"}, SCHEMA)
    first, last = claimed_windows(matches, claim, *year(3, 3))
    start, end = DAILY.windows.start(3), DAILY.windows.end(3)
    assert matches.windows.end(last) >= end
    assert matches.windows.end(first - 1) <= start + 24 * HOUR


@pytest.mark.parametrize(
    ("noted", "now", "stretches"),
    [
        ([(0, 1)], [(0, 1)], []),
        ([(0, 1), (5, 2)], [(0, 1), (7, 2)], [(5, 7)]),
        ([(0, 1), (5, 2)], [(0, 1)], [(5, 9)]),
        ([(0, 1), (5, 2), (8, 1)], [(0, 1), (4, 2), (8, 1)], [(4, 5)]),
        ([(0, 3)], [(0, 1), (4, 2)], [(0, 4), (4, 9)]),
        ([(0, 1), (20, 2)], [(0, 1), (30, 2)], []),
    ],
)
def test_where_offsets_differ(
    noted: list[tuple[int, int]], now: list[tuple[int, int]], stretches: list[tuple[int, int]]
) -> None:
    """Before the end of the range, 9."""
    assert list(differing(noted, now, 9)) == stretches


def stale(claims: list[Claim]) -> list[tuple[int, int]]:
    rows = stale_rows(DAILY, ((0, 364),), row_versions(DAILY, claims))
    return [] if rows is None else list(rows.clocks)


def test_windows_that_touch_a_difference(monkeypatch: Any) -> None:
    """And one at each side. To compute them again ends it; to compute some groups of them does not."""
    claim = claim_of(note(), 1)
    assert claim is not None
    assert stale([claim]) == []
    real = zones._clock

    def moved(name: str) -> Clock:
        clock = real(name)
        autumn = clock.moments == 1_383_458_400_000_000
        return Clock(np.where(autumn, clock.moments + 30 * 60_000_000, clock.moments), clock.offsets)

    monkeypatch.setattr(zones, "_clock", moved)
    day = (datetime(2013, 11, 2, tzinfo=UTC) - datetime(2013, 1, 1, tzinfo=UTC)).days
    assert isinstance(DAILY.windows, CalendarWindows)
    assert stale([claim]) == [(day - 1, day + 1)]
    start, end = year(day - 1, day)
    zone = Zone("America/New_York", "x", Clock.of("America/New_York").within(start, end))
    in_part = Note("form", Versions.one(2), (year(),), work=Work({"trends": 3}, (), ((start, end),)), zone=zone)
    whole = Note("form", Versions.one(3), (year(),), work=Work({"trends": 3}, ((start, end),)), zone=zone)
    again = [claim_of(one, version) for version, one in enumerate((in_part, whole), start=2)]
    assert stale([claim, *(one for one in again[:1] if one)]) == [(day - 1, day + 1)]
    assert stale([claim, *(one for one in again if one)]) == [(day + 1, day + 1)]


def test_publications_under_two_databases(monkeypatch: Any) -> None:
    """Two fakes, one of which sets the clocks of spring half an hour later, the other those of autumn: of what each
    published, exactly the windows that touch its own difference are stale, and one at each side."""
    real = zones._clock
    spring, autumn = 1_362_898_800_000_000, 1_383_458_400_000_000
    half = FIRST + 182
    claims = []
    for version, moment in enumerate((spring, autumn)):

        def moved(name: str, moment: int = moment) -> Clock:
            clock = real(name)
            return Clock(np.where(clock.moments == moment, moment + 30 * 60_000_000, clock.moments), clock.offsets)

        monkeypatch.setattr(zones, "_clock", moved)
        start, end = DAILY.windows.start(0), DAILY.windows.end(364)
        zone = Zone("America/New_York", f"fake {version}", Clock.of("America/New_York").within(start, end))
        part = year(0, half - FIRST) if version == 0 else year(half - FIRST + 1, 364)
        claims.append(
            claim_of(
                Note("form", Versions.one(version + 1), (part,), work=Work({"trends": 3}, (part,)), zone=zone),
                version + 1,
            )
        )
    monkeypatch.setattr(zones, "_clock", real)
    days = [
        (datetime(2013, month, day, tzinfo=UTC) - datetime(2013, 1, 1, tzinfo=UTC)).days
        for month, day in ((3, 9), (11, 2))
    ]
    assert stale([claim for claim in claims if claim]) == [(day - 1, day + 1) for day in days]
    assert stale([claim for claim in claims[1:] if claim])[-1] == (days[1] - 1, days[1] + 1)
