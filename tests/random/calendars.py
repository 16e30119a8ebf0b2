"""Random questions of calendar windows and of functions that read a zone's clock, and how the engine's answer differs
from a walk over days (`tests.reference.calendar`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.random.agreement import LIMIT, Tally, count_refusal
from tests.random.strategies import COLUMNS, Question, questions
from tests.reference import calendar
from tests.reference.trends import TooManyTrendsError, reference
from tests.support.engines import differences, kernels
from trendlake.cep_core import PatternErrors, PatternWarning
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern

NEAR = {
    "America/New_York": ("2013-03-10", "2013-11-03", "2100-03-14", "2026-01-01"),
    "Europe/Berlin": ("2024-03-31", "2024-10-27", "2023-12-31"),
    "Australia/Sydney": ("2026-10-04", "2026-04-05"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),
    "America/St_Johns": ("2009-11-01", "2009-03-08"),
    "America/Sao_Paulo": ("2018-11-04", "2018-02-18"),
    "America/Havana": ("2013-11-03", "2013-03-10"),
    "Pacific/Apia": ("2011-12-30", "2011-12-31", "2011-09-24"),
    "Pacific/Kwajalein": ("1993-08-21",),
    "Asia/Kathmandu": ("1986-01-01", "2024-02-29"),
    "Africa/Casablanca": ("2024-03-10", "2024-04-14"),
    "Antarctica/Troll": ("2024-03-31", "2024-10-27"),
    "UTC": ("2024-02-29", "1970-01-01"),
}
"""Zones, and dates near which their clocks are set or the calendar is odd."""

DAYS = (
    ("1 day", None),
    ("1 day", None),
    ("2 days", None),
    ("3 days", "1 day"),
    ("1 day", "3 days"),
    ("7 days", "1 day"),
)
WEEKS = (("1 week", None), ("2 weeks", "1 week"), ("3 days", "1 week"), ("1 week", "2 days"))
MONTHS = (("1 month", None), ("1 quarter", "1 month"), ("1 year", "1 quarter"), ("1 month", "1 quarter"))
TIMES = ("", "", "T04:00", "T02:30", "T01:30", "T00:15", "T23:30")
CONDITIONS = (
    "date({v}.event_time) = date(NEXT({v}).event_time)",
    "date({v}.event_time) < date(NEXT({v}).event_time)",
    "hour({v}.event_time) < hour(NEXT({v}).event_time) OR dayofweek({v}.event_time) = dayofweek(NEXT({v}).event_time)",
    "hour({v}.event_time) >= 12",
    "dayofweek({v}.event_time) IN (1, 5, 7)",
    "date({v}.event_time) >= DATE '{day}'",
)
_CALL = re.compile(r"\b(hour|dayofweek|date)\(((?:NEXT\()?\w+\)?)\.event_time\)")
_DATE = re.compile(r"DATE '([0-9-]+)'")


@st.composite
def calendar_questions(draw: st.DrawFn) -> Question:
    """A question whose stream passes a change of clocks."""
    query, rows = draw(questions(windows=False, depth=2))
    zone = draw(st.sampled_from(sorted(NEAR)))
    day = draw(st.sampled_from(NEAR[zone]))
    lengths, hours = draw(st.sampled_from(((DAYS, 5), (DAYS, 11), (WEEKS, 23), (MONTHS, 150))))
    within, slide = draw(st.sampled_from(lengths))
    del query["origin"]
    query |= {"within": within, "time_zone": zone} | ({"slide": slide} if slide else {})
    if draw(st.booleans()):
        query["origin"] = draw(st.sampled_from(("2011-12-28", "2013-01-06", "2024-02-15"))) + draw(
            st.sampled_from(TIMES)
        )
    names = sorted({atom.variable for atom in s.atoms(parse_pattern(query["pattern"]))})
    if draw(st.booleans()):
        line = draw(st.sampled_from(CONDITIONS)).format(v=draw(st.sampled_from(names)), day=day)
        query["where"] = [*query.get("where", ()), line]
    query["empty_windows"] = draw(st.booleans())
    base = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(hours=draw(st.integers(-14, 30)))
    start, minutes = int(base.timestamp()), draw(st.sampled_from((0, 0, 30, 59)))
    moved = [row | {"time": start + 60 * minutes + int(row["time"]) * hours * 3600} for row in rows]
    return query, moved


def expected(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each window as a question of its own, whose events say what the clock shows."""
    zone, by_window = query["time_zone"], dict[calendar.Window, list[dict[str, Any]]]()
    for row in rows:
        moment = datetime.fromtimestamp(row["time"], UTC)
        known = shown(row, zone)
        for window in calendar.windows(query["within"], query.get("slide"), query.get("origin"), zone, moment):
            by_window.setdefault(window, []).append({**row, **known})
    one = {key: value for key, value in query.items() if key not in ("slide", "time_zone")}
    one |= {"within": "3000000 days", "origin": "1000-01-01"}
    one["where"] = [plain(line) for line in query.get("where", ())]
    results = []
    for window, inside in by_window.items():
        bounds = {"window_start": micros(window.start), "window_end": micros(window.end), "window_date": window.date}
        results += [row | bounds for row in reference(one, inside, limit=LIMIT)]
    return results


def shown(row: Mapping[str, Any], zone: str) -> dict[str, int]:
    """What the clock of a zone shows at the time of an event, as columns for `plain` conditions."""
    reading = calendar.shown(datetime.fromtimestamp(row["time"], UTC), zone)
    return {"hour_": reading.hour, "dayofweek_": reading.isoweekday() % 7 + 1, "date_": _number(reading.date())}


def plain(line: str) -> str:
    """A condition that reads columns where it reads a clock."""
    return _DATE.sub(lambda at: str(_number(date.fromisoformat(at[1]))), _CALL.sub(r"\2.\1_", line))


def _number(day: date) -> int:
    return day.toordinal()


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def disagreement(question: Question, tally: Tally) -> list[str]:
    """As `tests.random.agreement.disagreement`."""
    query, rows = question
    try:
        wanted = expected(query, rows)
    except TooManyTrendsError:
        tally.too_many += 1
        assume(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        try:
            actual = kernels(query, rows, COLUMNS)
        except PatternErrors as refusal:
            count_refusal(refusal, tally)
            assume(False)
    tally.compared += 1
    tally.with_trends += any(row["trends"] != 0 for row in wanted)
    return differences(wanted, actual, query.get("group_by", ()))
