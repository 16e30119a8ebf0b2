"""Backfills in chunks: the rows of one run over it all, and a second attempt that goes on where the first stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise

import pytest

from tests.support.flights import Flights, all_steps, answers, flight
from trendlake.cep_core.events.windows import BEGINNING, CalendarWindows, Windows
from trendlake.cep_core.patterns.lengths import Length
from trendlake.jobs.actions.backfill import run_backfill
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import BadNumberError
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.results.row_versions import StaleRows
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.backfill import Chunk, backfill, chunks, size, stale_chunks

DAY = 86_400_000_000
NEW_YEAR = 1_356_998_400_000_000
SINCE, UNTIL = "2013-01-01", "2013-01-07"


def test_chunks_cover_the_interval_once() -> None:
    """Each of a whole number of slides, those in which no window ends left out; newest first on request."""
    daily = Windows(DAY, DAY)
    edges = [
        (chunk.start_us // DAY, chunk.end_us // DAY) for chunk in chunks(daily, 0, 7 * DAY, 3 * DAY, newest_first=False)
    ]
    assert edges == [(0, 3), (3, 6), (6, 7)]
    assert chunks(daily, 0, 7 * DAY, 2 * DAY + 1, newest_first=True)[0] == Chunk(6 * DAY, 7 * DAY)
    assert len(chunks(daily, 0, 365 * DAY, None, newest_first=False)) == 12
    for length in (None, 2 * DAY, 5 * DAY):
        covered = [
            j for chunk in chunks(daily, 5, 40 * DAY, length, newest_first=False) for j in _windows(daily, chunk)
        ]
        assert covered == list(daily.ending_in(5, 40 * DAY))
    with pytest.raises(BadNumberError):
        chunks(daily, 0, DAY, DAY - 1, newest_first=False)
    with pytest.raises(BadNumberError, match="86,400,000,000 chunks, more than 100,000"):
        chunks(Windows(1, 1), 0, DAY, 1, newest_first=False)


NEW_YORK = CalendarWindows(1, 1, 0, "America/New_York")
YEAR = NEW_YORK.start(15_706), NEW_YORK.start(15_706 + 365)
"""2013."""


def test_chunks_of_a_calendar() -> None:
    """They are cut where windows end: months of days from one first of the month to the next."""
    months = chunks(NEW_YORK, *YEAR, Length.of("1 month"), newest_first=False)
    firsts = CalendarWindows(1, 1, 43 * 12, "America/New_York", True)
    assert [(chunk.start_us, chunk.end_us) for chunk in months] == [(firsts.start(j), firsts.end(j)) for j in range(12)]
    assert len(chunks(NEW_YORK, *YEAR, None, newest_first=False)) == 12
    quarters = chunks(firsts, *YEAR, Length.of("1 quarter"), newest_first=True)
    assert [len(firsts.ending_in(chunk.start_us, chunk.end_us)) for chunk in quarters] == [3, 3, 3, 3]
    apia = CalendarWindows(7, 1, 0, "Pacific/Apia")
    for windows in (NEW_YORK, firsts, apia):
        start, end = YEAR[0] - 400 * DAY, YEAR[1] + 5
        for length in (None, Length.of("1 week"), Length.of("40 days"), Length.of("2 months"), Length.of("50 hours")):
            if length is None or length >= windows.step:
                parts = chunks(windows, start, end, length, newest_first=False)
                assert [(one.end_us, two.start_us) for one, two in pairwise(parts)] == [
                    (one.end_us, one.end_us) for one in parts[:-1]
                ]
                covered = [j for chunk in parts for j in _windows(windows, chunk) if windows.exists(j)]
                assert covered == [j for j in windows.ending_in(start, end) if windows.exists(j)]
    with pytest.raises(BadNumberError, match="slide"):
        chunks(firsts, *YEAR, Length.of("1 week"), newest_first=False)
    with pytest.raises(BadNumberError, match="calendar windows"):
        chunks(Windows(DAY, DAY), 0, 365 * DAY, Length.of("1 month"), newest_first=False)


def test_the_run_ids_of_chunks() -> None:
    """Each chunk has its own, in one second too, and in the first year; those of whole seconds are as ever."""
    assert Chunk(0, DAY).run_id == "backfill_19700101T000000_19700102T000000"
    ids = {chunk.run_id for chunk in chunks(Windows(1, 1), 0, 3, 1, newest_first=False)}
    assert ids == {
        f"backfill_19700101T000000{a}_19700101T000000{b}"
        for a, b in [("", ".000001"), (".000001", ".000002"), (".000002", ".000003")]
    }
    assert Chunk(BEGINNING, BEGINNING + DAY).run_id == "backfill_00010101T000000_00010102T000000"


@pytest.mark.parametrize("length", [None, 2 * DAY])
def test_stale_chunks_hold_exactly_the_windows(length: int | None) -> None:
    """Each once, whatever lies between them."""
    for windows in (Windows(DAY, DAY), Windows(3 * DAY, DAY // 2, 7)):
        stale = StaleRows(((-3, -3), (0, 30), (40, 41)), "wrong")
        todo = stale_chunks(windows, stale, length, newest_first=False)
        assert [j for chunk in todo for j in _windows(windows, chunk)] == [-3, *range(31), 40, 41]
        assert stale_chunks(windows, stale, length, newest_first=True) == todo[::-1]
        assert length or len(todo) <= 12 + 2


def _windows(windows: Windows, chunk: Chunk) -> range:
    return windows.ending_in(chunk.start_us, chunk.end_us)


@pytest.mark.long
@pytest.mark.spark
def test_a_backfill_that_was_cut_short(lake: Flights) -> None:
    """Its rows are those of one run; what was done is passed over until the source or the pattern changes."""
    rows = [
        flight(10 * day + leg, f"2013-01-0{day}T1{leg}:00", dep_delay=float(leg))
        for day in range(1, 6)
        for leg in range(3)
    ]
    lake.deliver(rows)
    pattern = lake.pattern()
    whole = lake.run(pattern, SINCE, UNTIL, "whole")
    estimate = size(lake.lake, whole, 2)
    assert (estimate.windows, estimate.chunks, estimate.events) == (6, 2, 15)
    assert estimate.bytes > 0
    todo = chunks(whole.plan.windows, whole.start_us, whole.end_us, 3 * DAY, newest_first=True)

    def prepared(chunk: Chunk) -> Run:
        return lake.run(pattern, _iso(chunk.start_us), _iso(chunk.end_us), chunk.run_id)

    place, words = Place(lake.project, lake.profile), (pattern, SINCE, UNTIL, 3 * DAY, True)
    assert list(run_backfill(place, lake.lake, *words, True)) == [{"pattern": whole.name, **asdict(estimate)}]
    cut = backfill(lake.lake, prepared, todo)
    first = next(cut)
    assert first[0].end_us == whole.end_us
    assert first[1] is not None
    cut.close()
    *again, total = json.loads(json_text(list(run_backfill(place, lake.lake, *words, False)), None))
    assert [part["publication"] is None for part in again] == [True, False]
    assert [(part["chunk"], part["of"], part["from"], part["to"]) for part in again] == [
        (1, 2, "2013-01-04T00:00:00Z", "2013-01-07T00:00:00Z"),
        (2, 2, "2013-01-01T00:00:00Z", "2013-01-04T00:00:00Z"),
    ]
    assert again[1]["publication"]["run_id"] == again[1]["run_id"]
    assert (total["computed"], total["done_before"]) == (1, 1)
    published = answers(lake.results(whole), whole)
    assert len(published) == 5
    record = all_steps(whole)
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (0, 0, 0)
    assert answers(lake.results(whole), whole) == published
    lake.deliver([flight(99, "2013-01-05T20:00", dep_delay=50.0)], feed="late")
    changed = [record for _, record in backfill(lake.lake, prepared, todo)]
    assert [(record.rows_inserted, record.rows_updated) for record in changed if record] == [(0, 1), (0, 0)]


def _iso(micros: int) -> str:
    from trendlake.cep_core.events.windows import moment

    return moment(micros).isoformat()
