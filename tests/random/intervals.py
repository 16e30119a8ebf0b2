"""Random questions of events with intervals, and how the engine's answer differs from a loop over windows: each is a
question of its own to the reference, whose events have the length of their part in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from tests.random import calendars
from tests.random.agreement import LIMIT, Tally, count_refusal
from tests.random.strategies import COLUMNS, ONE_WINDOW, Question, questions
from tests.reference import calendar
from tests.reference.trends import TooManyTrendsError, reference
from tests.reference.trends.query import read
from tests.support.engines import differences, from_table
from tests.support.lasting_events import SECOND, micros, table_of
from trendlake.cep_core import PatternErrors, PatternWarning, evaluate
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern

MEASURES = (
    "SUM({v}.duration)",
    "SUM({v}.duration)",
    "AVG({v}.duration)",
    "MIN({v}.duration)",
    "MAX({v}.duration)",
    "FIRST({v}.duration)",
    "MAX_BY({v}.x, {v}.duration)",
    "SUM({v}.duration) FILTER (WHERE {v}.x > 0)",
    "COUNT({v}) FILTER (WHERE {v}.duration >= 2 seconds)",
)
CONDITIONS = (
    "{v}.duration >= 2 seconds",
    "{v}.duration < 5 seconds",
    "{v}.duration > 0 seconds",
    "{v}.duration <= NEXT({w}).duration",
    "{v}.duration != NEXT({w}).duration",
)
_SECONDS = re.compile(r"\b(\d+) seconds")
LENGTHS = (None, 0, 1, 2, 3, 3, 5, 8, 21)
"""Of an event, in units of a question's time."""


class Window(NamedTuple):
    """Half-open, microseconds; and the columns of its rows."""

    start: int
    end: int
    bounds: tuple[tuple[str, Any], ...]


@st.composite
def interval_questions(draw: st.DrawFn) -> Question:
    """A question whose events begin before they end, a third of them in windows of a calendar."""
    in_calendar = draw(st.integers(0, 2)) == 2
    query, rows = draw(calendars.calendar_questions() if in_calendar else questions(most=7, depth=2))
    if not in_calendar and query["within"] == ONE_WINDOW["within"] and draw(st.booleans()):
        query |= {"within": "9 seconds", "slide": draw(st.sampled_from(("9 seconds", "4 seconds", "12 seconds")))}
    unit = draw(st.sampled_from((3600, 7 * 3600))) if in_calendar else 1
    tree = parse_pattern(query["pattern"])
    positive = sorted({atom.variable for atom in s.atoms(tree, negated=False)})
    names = sorted({atom.variable for atom in s.atoms(tree)})
    measures = {name: text.replace("DURATION(*)", "LENGTH(*)") for name, text in query["return"].items()}
    if not isinstance(tree, s.And):
        for k in range(draw(st.integers(1, 2))):
            measures[f"d{k}"] = draw(st.sampled_from(MEASURES)).format(v=draw(st.sampled_from(positive)))
    lines = list(query.get("where", ()))
    if draw(st.integers(0, 2)) == 2:
        v, w = draw(st.sampled_from(names)), draw(st.sampled_from(positive))
        lines.append(draw(st.sampled_from(CONDITIONS)).format(v=v, w=w))
    query |= {"return": measures, "interval_start": "start", "where": lines}
    lasting = []
    for row in rows:
        length = draw(st.sampled_from(LENGTHS))
        lasting.append(row | {"start": None if length is None else int(row["time"]) - unit * length})
    return query, lasting


def expected(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each window as a question of its own, to which times are plain numbers."""
    by_window = dict[Window, list[dict[str, Any]]]()
    for row in rows:
        end = micros(row["time"])
        start = end if row["start"] is None else micros(row["start"])
        known = calendars.shown(row, query["time_zone"]) if "time_zone" in query else {}
        for window in set(_in_calendar(query, start, end) if known else _even(query, start, end)):
            length = min(end, window.end) - max(start, window.start)
            if length > 0 or (start == end and window.start <= end < window.end):
                by_window.setdefault(window, []).append({**row, **known, "duration": length})
    one = {key: value for key, value in query.items() if key not in ("slide", "time_zone", "interval_start")}
    one |= {"within": "3000000 days", "origin": "1000-01-01"}
    lines = [calendars.plain(line) if "time_zone" in query else line for line in query["where"]]
    one["where"] = [_in_numbers(line) for line in lines]
    one["return"] = {name: _in_numbers(text) for name, text in query["return"].items()}
    results = []
    for window, inside in by_window.items():
        for row in reference(one, inside, limit=LIMIT):
            results.append({name: _shown(query, name, cell) for name, cell in row.items()} | dict(window.bounds))
    return results


def _in_numbers(line: str) -> str:
    return _SECONDS.sub(lambda at: str(int(at[1]) * SECOND), line)


def _shown(query: Mapping[str, Any], name: str, cell: Any) -> Any:
    """Sums and means of durations are whole numbers."""
    lasts = ".duration)" in query["return"].get(name, "")
    return round(cell) if lasts and isinstance(cell, float) else cell


def _even(query: Mapping[str, Any], start: int, end: int) -> Iterator[Window]:
    asked = read({"kind": "trends", "pattern": "A", "return": {"n": "COUNT(*)"}} | _bounds(query))
    first = asked.origin + (start - asked.within - asked.origin) // asked.slide * asked.slide
    for low in range(first, end + asked.slide, asked.slide):
        bounds = ("window_start", low), ("window_end", low + asked.within)
        yield Window(low, low + asked.within, bounds)


def _bounds(query: Mapping[str, Any]) -> dict[str, Any]:
    return {key: query[key] for key in ("within", "slide", "origin") if key in query}


def _in_calendar(query: Mapping[str, Any], start: int, end: int) -> Iterator[Window]:
    """Those that hold a moment of every six hours: none is shorter."""
    moments = {start, max(start, end - 1), *range(start, end, 6 * 3600 * SECOND)}
    for moment in moments:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
        for one in calendar.windows(query["within"], query.get("slide"), query.get("origin"), query["time_zone"], at):
            low, high = calendars.micros(one.start), calendars.micros(one.end)
            bounds = ("window_start", low), ("window_end", high), ("window_date", one.date)
            yield Window(low, high, bounds)


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
            actual = from_table(evaluate(query, table_of(rows, COLUMNS)))
        except PatternErrors as refusal:
            count_refusal(refusal, tally)
            assume(False)
    tally.compared += 1
    tally.with_trends += any(row["trends"] != 0 for row in wanted)
    return differences(wanted, actual, query.get("group_by", ()))
