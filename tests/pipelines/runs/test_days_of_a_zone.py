"""What docs/language.md says of days of New York: which windows `origin`, `--from` and `--to` give."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from trendlake.cep_core import compile_query
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.events.windows import moment
from trendlake.jobs.terminal.times import micros_of

NEW_YORK = ZoneInfo("America/New_York")
PAGE = (ROOT / "docs" / "language.md").read_text().split("### Days of another time zone")[1].split("\n## ")[0]
(WINTER, SUMMER) = re.findall(r"origin: (\S+Z)", PAGE)
COLUMNS = {"event_id": pa.string(), "event_type": pa.string(), "event_time": pa.timestamp("us", "UTC")}


def local_windows(origin: str, start: str, end: str) -> list[tuple[datetime, datetime]]:
    """Start and end, on New York's clock, of the windows that a run with `--from start --to end` computes."""
    query = {"pattern": "A a+", "return": {"n": "COUNT(*)"}, "within": "1 day", "origin": origin}
    windows = compile_query(query, schema_of(pa.table({n: pa.array([], t) for n, t in COLUMNS.items()}))).windows
    computed = windows.ending_in(micros_of(start, "--from"), micros_of(end, "--to"))
    return [tuple(moment(at(j)).astimezone(NEW_YORK) for at in (windows.start, windows.end)) for j in computed]


def days(first: str, last: str) -> list[date]:
    start = date.fromisoformat(first)
    return [start + timedelta(days=n) for n in range((date.fromisoformat(last) - start).days + 1)]


@pytest.mark.parametrize(("origin", "month"), [(WINTER, 1), (SUMMER, 7)])
def test_the_origin_of_a_season_gives_its_days(origin: str, month: int) -> None:
    hour = origin[11:16]
    windows = local_windows(origin, f"2013-{month:02d}-05T{hour}", f"2013-{month:02d}-20T{hour}")
    assert [start.date() for start, _ in windows] == days(f"2013-{month:02d}-05", f"2013-{month:02d}-19")
    assert {edge.time() for window in windows for edge in window} == {time(0)}


def test_daylight_saving_time_is_not_followed() -> None:
    windows = local_windows(WINTER, "2013-07-05T05:00", "2013-07-08T05:00")
    assert {start.time() for start, _ in windows} == {time(1)}


def test_from_and_to_choose_windows_by_their_end() -> None:
    """The two commands of the page, and the days it gives for each."""
    (by_moment, by_day) = re.findall(r"--from (\S+) --to\s+([^\s`]+)`", PAGE)
    assert [start.date() for start, _ in local_windows(WINTER, *by_moment)] == days("2013-02-01", "2013-02-28")
    assert [start.date() for start, _ in local_windows(WINTER, *by_day)] == days("2013-01-31", "2013-02-27")
    assert "January 31 to February 27" in PAGE
