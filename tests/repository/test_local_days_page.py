"""docs/how-to/local-days.md: its pattern gives the rows that it shows, its commands and lengths mean what it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from trendlake.cep_core import evaluate, load_pattern
from trendlake.cep_core.events.windows import CalendarWindows
from trendlake.cep_core.patterns.lengths import civil
from trendlake.cep_core.trends.compile.model import TrendsPattern
from trendlake.cep_core.yaml.source import parse_yaml, plain
from trendlake.pipelines.runs.intervals import LocalTimes

PAGE = (ROOT / "docs" / "how-to" / "local-days.md").read_text()
(FILE,) = re.findall(r"^```yaml\n# (?:conf/patterns/\w+\.yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
QUERY = plain(parse_yaml(FILE, "busy_days.yaml").data)


def table(first: str) -> list[list[str]]:
    """The cells of the page's table whose head begins so."""
    lines = PAGE.splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith(first)]
    body = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_the_page_shows_what_is_computed() -> None:
    """Rows, dates and moments; and the local times of the orders are those of their moments."""
    orders = []
    for number, (shop, amount, local, utc) in enumerate(table("| shop | amount |")):
        at = datetime.fromisoformat(utc).replace(tzinfo=UTC)
        assert f"{at.astimezone(ZoneInfo('America/New_York')):%Y-%m-%d %H:%M}" == local
        row = {"event_id": f"o{number}", "event_type": "Order", "event_time": at}
        orders.append({**row, "shop": shop, "amount": int(amount)})
    rows = evaluate(QUERY, pa.Table.from_pylist(orders)).sort_by("window_start").to_pylist()
    assert [
        [
            row["shop"],
            str(row["window_date"]),
            f"{row['window_start']:%Y-%m-%dT%H:%M}",
            f"{row['window_end']:%Y-%m-%dT%H:%M}",
            str(row["trends"]),
            str(row["largest"]),
        ]
        for row in rows
    ] == table("| shop | window_date |")


def test_the_command_computes_the_days_of_february() -> None:
    """All 28."""
    ((since, until),) = re.findall(r"trendlake run busy_days --from (\S+) --to (\S+)", PAGE)
    pattern = load_pattern(QUERY)
    assert isinstance(pattern, TrendsPattern)
    times, windows = LocalTimes.of(pattern), pattern.windows
    assert isinstance(windows, CalendarWindows)
    days = windows.ending_in(times.micros(since, "--from"), times.micros(until, "--to"))
    assert [civil(windows.reading(j) // 86_400_000_000) for j in days] == [(2013, 2, day) for day in range(1, 29)]


KEY = re.compile(r"`(within|slide|origin|time_zone): ([^`]+)`")
BEGIN = {
    "weeks from Monday": {"weekday": 0},
    "weeks from Sunday": {"weekday": 6},
    "the last seven days, each day": {},
    "months": {"day": 1},
    "months from the 15th": {"day": 15},
    "the British tax year": {"month": 4, "day": 6},
    "quarters of a year that begins in February": {"month": 2, "day": 1},
    "months of UTC": {"day": 1},
}


@pytest.mark.parametrize("line", table("| windows | keys |"), ids=lambda line: str(line[0]))
def test_lengths(line: list[str]) -> None:
    """The windows begin where the page says."""
    name, keys = line
    given: dict[str, Any] = dict(KEY.findall(keys))
    query = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)"}, "time_zone": "America/New_York", **given}
    pattern = load_pattern(query)
    assert isinstance(pattern, TrendsPattern)
    windows = pattern.windows
    assert isinstance(windows, CalendarWindows)
    zone = ZoneInfo(windows.zone)
    starts = [datetime.fromtimestamp(windows.start(j) / 1e6, UTC).astimezone(zone) for j in range(0, 400, 4)]
    for start in starts:
        known = {"weekday": start.weekday(), "day": start.day, "month": start.month}
        assert BEGIN[name].items() <= known.items()
        assert (start.hour, start.minute) == (0, 0)
    assert pattern.windows.overlap == (7 if "slide" in given else 1)


def test_it_may_be_written_in_a_project() -> None:
    """The pattern has the keys that a file needs."""
    assert {"name", "source", "schedule", "owner"} <= QUERY.keys()
