"""docs/how-to/sessions.md: its pattern gives the rows that it shows, and the sessions that a loop cuts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from trendlake.cep_core import evaluate
from trendlake.cep_core.yaml.source import parse_yaml, plain

PAGE = (ROOT / "docs" / "how-to" / "sessions.md").read_text()
((NAME, TEXT),) = re.findall(r"^```yaml\n# (conf/patterns/\w+\.yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SESSIONS = plain(parse_yaml(TEXT, NAME).data)
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def clicks(rows: list[tuple[str, timedelta, str]]) -> pa.Table:
    """(user, time of the day, page) each."""
    return pa.Table.from_pylist(
        [
            {"event_id": f"e{n:03}", "event_time": DAY + at, "event_type": "Click", "user": user, "page": page}
            for n, (user, at, page) in enumerate(rows)
        ]
    )


def table(last_column: str) -> list[list[str]]:
    """The cells of the page's table with this last column."""
    lines = PAGE.splitlines()
    (start,) = [n for n, line in enumerate(lines) if line.startswith("| user |") and line.endswith(f" {last_column} |")]
    end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 : end]]


def test_the_page_shows_what_is_computed() -> None:
    given_clicks = [
        (user, timedelta(hours=int(click[:2]), minutes=int(click[3:5])), click[6:])
        for user, shown in table("clicks")
        for click in shown.split(", ")
    ]
    names = ("user", *SESSIONS["return"])
    rows: list[dict[str, Any]] = evaluate(SESSIONS, clicks(given_clicks)).to_pylist()
    assert sorted([str(row[name]) for name in names] for row in rows) == table("landing")


@given(st.lists(st.integers(0, 600), min_size=1, max_size=12, unique=True))
def test_sessions_are_those_of_a_loop(minutes: list[int]) -> None:
    times = sorted(minutes)
    sessions = [[times[0]]]
    for before, time in pairwise(times):
        if time - before < 30:
            sessions[-1].append(time)
        else:
            sessions.append([time])
    (row,) = evaluate(SESSIONS, clicks([("u", timedelta(minutes=one), "p") for one in minutes])).to_pylist()
    lasts = [60.0 * (session[-1] - session[0]) for session in sessions]
    assert (row["sessions"], row["clicks"], row["longest_seconds"]) == (len(sessions), len(times), max(lasts))
    assert row["most_clicks"] == max(len(session) for session in sessions)
    assert row["bounces"] == sum(len(session) == 1 for session in sessions)
