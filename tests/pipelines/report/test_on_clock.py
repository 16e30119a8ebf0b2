"""Pages of a pattern with a time zone: windows and events on its clock, with offsets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.own_source import output_of, project_at
from trendlake.pipelines.report.facts import Window
from trendlake.pipelines.report.on_clock import local, on_clock
from trendlake.pipelines.report.words import interval_label, stamp

NEW_YORK = "America/New_York"
DAILY = """\
name: busy
source: trades
pattern: Trade T+
return: {trends: COUNT(*), last: LAST(T.at), lasts: MAX(DURATION(*))}
time_zone: America/New_York
origin: 2013-01-01T04:00
within: 1 day
"""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_moment_on_a_clock() -> None:
    """Moments stay in order and apart as they are, where the clock shows an hour twice."""
    first, second = (local(moment(text), NEW_YORK) for text in ("2013-11-03T05:30", "2013-11-03T06:30"))
    assert (stamp(first), stamp(second)) == ("3 Nov 2013, 01:30 -04:00", "3 Nov 2013, 01:30 -05:00")
    assert first < second
    assert second - first == timedelta(hours=1)
    assert stamp(local(first, None)) == stamp(first)
    assert stamp(moment("2013-11-03T05:30")) == "3 Nov 2013, 05:30"
    assert stamp(local(moment("2013-07-01T00:00"), "Asia/Kolkata")) == "1 Jul 2013, 05:30 +05:30"


@pytest.mark.parametrize(
    ("start", "end", "label"),
    [
        ("2013-03-09T05:00", "2013-03-10T05:00", "Sat 9 Mar 2013"),
        ("2013-03-10T05:00", "2013-03-11T04:00", "Sun 10 Mar 2013"),
        ("2013-11-03T04:00", "2013-11-04T05:00", "Sun 3 Nov 2013"),
        ("2013-03-04T05:00", "2013-03-11T04:00", "Mon 4 Mar 2013 – Sun 10 Mar 2013"),
        ("2013-03-09T09:00", "2013-03-10T08:00", "9 Mar 2013, 04:00 -05:00 – 10 Mar 2013, 04:00 -04:00"),
    ],
)
def test_days_of_a_place(start: str, end: str, label: str) -> None:
    """A day of 23 or 25 hours is a day."""
    assert interval_label(*(local(moment(text), NEW_YORK) for text in (start, end))) == label


@dataclass(frozen=True)
class Facts:
    windows: tuple[Window, ...]
    by_name: dict[str, datetime]
    other: int = 3


def test_every_moment_of_facts() -> None:
    at, end = moment("2013-03-09T05:00"), moment("2013-03-10T05:00")
    facts = Facts((Window(at, end),), {"x": at})
    assert on_clock(facts, None) is facts
    shown = on_clock(facts, NEW_YORK)
    assert shown == facts
    assert [stamp(shown.windows[0].start), stamp(shown.by_name["x"])] == ["9 Mar 2013, 00:00 -05:00"] * 2
    assert on_clock(5, NEW_YORK) == 5


def test_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's page and the pattern's: days from four in the morning, over a change of clocks."""
    project_at(tmp_path, monkeypatch)
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    times = ("2013-03-09T10:00", "2013-03-10T07:30", "2013-03-10T12:00", "2013-03-12T12:00")
    file = tmp_path / "trades.csv"
    file.write_text("\n".join(["id,at,price", *(f"{k},{text}:00Z,{k}" for k, text in enumerate(times))]))
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
    output_of("new", "source", "trades", "--from", file, *columns)
    (tmp_path / "conf" / "patterns" / "busy.yaml").write_text(DAILY)
    output_of("ingest", "trades", file)
    printed = output_of("run", "busy", "--from", "2013-03-09", "--to", "2013-03-11")
    pages = [Path(named) for named in re.findall(r"(/\S+\.html)", printed)]
    assert len(pages) == 2
    for page in pages:
        text = page.read_text()
        assert "Times of events and windows are those of America/New_York, all others UTC." in text
        assert "All times are UTC" not in text
        assert "9 Mar 2013, 04:00 -05:00" in text
        assert "10 Mar 2013, 04:00 -04:00" in text
        assert "2013-03-10 03:30:00-04:00" in text  # the measure of a time: the last of the first day
        assert "2013-03-10T08:00" not in text
        assert "21:30:00" in text  # the length of the longest trend, in seconds in the table
