"""`time_zone`, and lengths and origins of windows beside it: what a file may say, and its errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, PatternWarning, compile_query, evaluate
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import CalendarWindows, Windows

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "bigint", "day": "date"},
    "event_id",
    "event_time",
    "event_type",
)
TRENDS = {"kind": "trends", "pattern": "S+", "return": {"trends": "COUNT(*)"}}
MATCHES = {"kind": "matches", "pattern": "SEQ(A a, B b)"}
FILE = """\
name: daily
source: events
kind: {kind}
pattern: {pattern}
{rest}
"""


def refused(query: dict[str, Any]) -> str:
    with pytest.raises(PatternErrors) as failure:
        compile_query(query, SCHEMA)
    (error,) = failure.value.errors
    return f"[{error.code}] {error.message} | {error.hint}"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (
            {"within": "1 month"},
            "[BAD_VALUE] 'month' has no fixed length | add `time_zone: UTC`, or the zone whose months you mean",
        ),
        (
            {"within": "1 day", "time_zone": "America/New_Yrok"},
            "[BAD_VALUE] 'America/New_Yrok' is no time zone | did you mean 'America/New_York'?",
        ),
        (
            {"within": "1 month", "slide": "1 day", "time_zone": "UTC"},
            "[BAD_VALUE] within is in months and slide in days | write both in months, or both in days",
        ),
        (
            {"within": "6 hours", "slide": "1 day", "time_zone": "UTC"},
            "[BAD_VALUE] within is in hours and slide in days | write both in days, or both in hours",
        ),
        (
            {"within": "1 day", "origin": "2013-01-01T04:00Z", "time_zone": "UTC"},
            "[BAD_VALUE] origin of calendar windows is a local time | leave out 'Z' or the offset",
        ),
        (
            {"within": "1 month", "origin": "2013-01-31", "time_zone": "UTC"},
            "[BAD_VALUE] months cannot begin on the 31st | 1 to 28",
        ),
        (
            {"within": "1 day 12 hours", "time_zone": "UTC"},
            "[BAD_VALUE] a length is of days of the calendar, or of hours: not of both, nor of a part of a day | "
            "write whole days, or hours",
        ),
        ({"within": "0 days", "time_zone": "UTC"}, "[BAD_VALUE] a duration is more than zero | None"),
        ({"within": "90000 quarters", "time_zone": "UTC"}, "[BAD_VALUE] longer than 10,000 years | None"),
    ],
)
def test_errors_of_windows(query: dict[str, Any], error: str) -> None:
    """With a hint that mends them."""
    assert refused({**TRENDS, **query}) == error


def test_an_error_has_a_place(tmp_path: Any) -> None:
    """The line, and carets below what is wrong."""
    file = tmp_path / "daily.yaml"
    rest = "return: {trends: COUNT(*)}\nwithin: 1 day\ntime_zone: Europe/Berlim"
    file.write_text(FILE.format(kind="trends", pattern="S+", rest=rest))
    with pytest.raises(PatternErrors) as failure:
        compile_query(file, SCHEMA)
    assert str(failure.value).splitlines()[-3:] == [
        "    time_zone: Europe/Berlim",
        "               ^^^^^^^^^^^^^",
        "    did you mean 'Europe/Berlin'?",
    ]


def test_other_kinds_take_lengths_of_time() -> None:
    """A month is none, in any of them."""
    wanted = (
        "[NOT_SUPPORTED] within of kind matches is a length of time: 'month' has no fixed length | write days or hours"
    )
    assert refused({**MATCHES, "within": "1 month"}) == wanted
    assert refused({**MATCHES, "within": "1 month", "time_zone": "UTC"}) == wanted


def test_expectations_of_days_that_may_be_skipped() -> None:
    """Refused by name; those of another zone are not."""
    expect = [{"measure": "rows", "between": [0.5, 2], "of_last": "7 windows"}]
    query = {**TRENDS, "within": "1 day", "expect": expect}
    assert refused({**query, "time_zone": "Pacific/Apia"}).startswith("[NOT_SUPPORTED] expect of windows")
    compile_query({**query, "time_zone": "Europe/Berlin"}, SCHEMA)


@pytest.mark.parametrize(
    ("query", "windows"),
    [
        ({"within": "1 day"}, CalendarWindows(1, 1, 0, "Europe/Berlin")),
        ({"within": "1 week"}, CalendarWindows(7, 7, -3, "Europe/Berlin")),
        ({"within": "7 days"}, CalendarWindows(7, 7, 0, "Europe/Berlin")),
        ({"within": "1 day", "slide": "1 week"}, CalendarWindows(1, 7, -3, "Europe/Berlin")),
        ({"within": "INTERVAL '2' WEEKS"}, CalendarWindows(14, 14, -3, "Europe/Berlin")),
        ({"within": "1 year", "slide": "1 quarter"}, CalendarWindows(12, 3, 0, "Europe/Berlin", True)),
        (
            {"within": "1 month", "origin": "2013-02-15T04:00"},
            CalendarWindows(1, 1, 43 * 12 + 1, "Europe/Berlin", True, (14 * 24 + 4) * 3_600_000_000),
        ),
        ({"within": "24 hours"}, Windows(86_400_000_000, 86_400_000_000, 0)),
        ({"within": "6 hours", "origin": "1970-01-01T00:00"}, Windows(21_600_000_000, 21_600_000_000, -3_600_000_000)),
        ({"within": "6 hours", "origin": "1970-01-01T00:00Z"}, Windows(21_600_000_000, 21_600_000_000, 0)),
    ],
)
def test_windows_of_a_file(query: dict[str, Any], windows: Windows) -> None:
    """Days and longer units follow the calendar, hours do not."""
    plan = compile_query({**TRENDS, **query, "time_zone": "Europe/Berlin"}, SCHEMA)
    assert plan.windows == windows
    assert type(plan.windows) is type(windows)


def test_the_hash_has_the_name_of_the_zone() -> None:
    """Where windows or conditions read its clock, and only there; and a pattern without a zone has the hash it had."""

    def hash_of(**query: Any) -> str:
        return compile_query({**TRENDS, "within": "1 hour", **query}, SCHEMA).hash

    assert hash_of() == hash_of(time_zone="Europe/Berlin") == "fe7baac4014e05a5"
    condition = ["hour(S.event_time) > 3"]
    hashes = {
        hash_of(where=condition),
        hash_of(where=condition, time_zone="UTC"),
        hash_of(where=condition, time_zone="Europe/Berlin"),
        hash_of(within="1 day"),
        hash_of(within="1 day", time_zone="UTC"),
        hash_of(within="1 day", time_zone="Europe/Berlin"),
        hash_of(within="1 month", time_zone="Europe/Berlin"),
    }
    assert len(hashes) == 7
    assert hash_of(within="1 day", time_zone="Europe/Berlin") == "77b348dbb0471428"


def test_weeks_without_a_zone_begin_on_thursday() -> None:
    """It is said; `time_zone: UTC` begins them on Monday, and whoever gives an origin knows."""
    with pytest.warns(PatternWarning, match="weeks begin on Thursday"):
        compile_query({**TRENDS, "within": "1 week"}, SCHEMA)
    compile_query({**TRENDS, "within": "1 week", "time_zone": "UTC"}, SCHEMA)
    compile_query({**TRENDS, "within": "1 week", "origin": "2013-01-07"}, SCHEMA)
    compile_query({**TRENDS, "within": "7 days"}, SCHEMA)


def test_a_measure_may_be_called_window_date() -> None:
    """Where the results have no such column of their own."""
    query = {**TRENDS, "return": {"window_date": "COUNT(*)"}, "within": "1 day"}
    compile_query(query, SCHEMA)
    assert "window_date" in refused({**query, "time_zone": "UTC"})


SPRING = 1_362_898_800
"""2013-03-10, 03:00 in New York: an hour before it was 01:00."""
EVENTS = [
    {"id": "e0", "type": "A", "time": SPRING - 3600, "x": 1},  # 01:00
    {"id": "e1", "type": "B", "time": SPRING - 1, "x": 2},  # 01:59:59
    {"id": "e2", "type": "A", "time": SPRING, "x": 3},  # 03:00
    {"id": "e3", "type": "B", "time": SPRING + 20 * 3600, "x": 4},  # 23:00
    {"id": "e4", "type": "B", "time": SPRING + 21 * 3600, "x": 5},  # 00:00 of 03-11, a Monday
]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("hour(a.event_time) = hour(b.event_time)", [("e0", "e1")]),
        ("hour(b.event_time) - hour(a.event_time) = 20", [("e2", "e3")]),
        ("hour(b.event_time) + hour(a.event_time) * 0 = 0", [("e0", "e4"), ("e2", "e4")]),
        ("date(a.event_time) = date(b.event_time) AND a.x > 1", [("e2", "e3")]),
        ("date(b.event_time) > date(a.event_time)", [("e0", "e4"), ("e2", "e4")]),
        ("date(b.event_time) = DATE '2013-03-11'", [("e0", "e4"), ("e2", "e4")]),
        ("dayofweek(b.event_time) = 2 AND dayofweek(a.event_time) = 1", [("e0", "e4"), ("e2", "e4")]),
        ("dayofweek(date(b.event_time)) > a.x AND a.x < 2", [("e0", "e4")]),
        ("hour(least(a.event_time, b.event_time)) = 3", [("e2", "e3"), ("e2", "e4")]),
        ("coalesce(hour(a.event_time), b.x) = 1 AND b.x < 3", [("e0", "e1")]),
    ],
)
def test_functions_read_the_clock_of_the_zone(where: str, rows: list[tuple[str, str]]) -> None:
    """In conditions of matches between two events, which compiled code asks."""
    query = {
        **MATCHES,
        "where": [where],
        "select": "skip_till_any_match",
        "within": "2 days",
        "time_zone": "America/New_York",
    }
    answer = evaluate(query, to_table(EVENTS)).to_pylist()
    assert sorted((*row["a"], *row["b"]) for row in answer) == rows


def test_a_measure_reads_the_clock() -> None:
    """Of kind matches; a date is a DATE."""
    returns = {"day": "date(b.event_time)", "hour": "hour(b.event_time)"}
    query = {**MATCHES, "return": returns, "within": "2 days", "time_zone": "America/New_York", "where": ["b.x = 5"]}
    table = evaluate({**query, "select": "skip_till_any_match"}, to_table(EVENTS))
    assert table.schema.field("day").type == pa.date32()
    assert {(str(row["day"]), row["hour"]) for row in table.to_pylist()} == {("2013-03-11", 0)}


def test_an_automaton_reads_the_clock() -> None:
    """Of the event, and of a time that the register keeps."""
    arcs = [
        {"from": "p", "to": "q", "when": "e.x = 1 AND hour(e.event_time) = 1", "set": {"at": "e.event_time"}},
        {"from": "q", "to": "r", "when": "hour(at) + 22 = hour(e.event_time) AND date(at) = date(e.event_time)"},
        {"from": "q", "to": "q", "when": "e.x >= 0", "ignore": True},
    ]
    query = {
        "kind": "automaton",
        "register": {"at": {"type": "timestamp", "init": None}},
        "start": "p",
        "final": ["r"],
        "arcs": arcs,
        "within": "2 days",
    }
    local = evaluate({**query, "time_zone": "America/New_York"}, to_table(EVENTS))
    assert local.num_rows == 1
    assert local["last"].to_pylist() == ["e3"]
    assert evaluate(query, to_table(EVENTS)).num_rows == 0


def test_an_algebra_reads_the_clock() -> None:
    """Of both events of a NEXT."""
    text = (
        "FROM A NEXT { hour($1.event_time) + 20 = hour($2.event_time) AND date($1.event_time) = date($2.event_time) } B"
    )
    query = {"kind": "algebra", "pattern": text, "within": "2 days"}
    answer = evaluate({**query, "time_zone": "America/New_York"}, to_table(EVENTS))
    assert answer.num_rows == 1
    assert evaluate(query, to_table(EVENTS)).num_rows == 0


def test_an_algebra_asks_of_both_events_at_once() -> None:
    """Compiled code asks the clock, in NEXT and in a FILTER over its rows."""
    left, right = "(SELECT event_time AS at FROM A)", "(SELECT event_time AS then FROM B)"
    texts = [
        f"FROM {left} NEXT {{ hour(least($1.at, $2.then)) = 3 }} {right}",
        f"FROM FILTER {{ hour(least(at, then)) = 3 }} ({left} NEXT {right})",
    ]
    for text in texts:
        query = {"kind": "algebra", "pattern": text, "within": "2 days"}
        assert evaluate({**query, "time_zone": "America/New_York"}, to_table(EVENTS)).num_rows == 1
        assert evaluate(query, to_table(EVENTS)).num_rows == 0


def test_having_reads_the_clock() -> None:
    """Of a column of the row; and the date of a window."""
    query = {**TRENDS, "pattern": "A+", "within": "1 day", "time_zone": "America/New_York"}
    for having, rows in (("hour(window_start) = 0", 1), ("hour(window_start) = 5", 0)):
        assert evaluate({**query, "having": [having]}, to_table(EVENTS)).num_rows == rows
    assert evaluate({**query, "having": ["window_date > DATE '2013-03-10'"]}, to_table(EVENTS)).num_rows == 0


def test_dates_are_no_times() -> None:
    """They are not compared with each other, nor with texts."""
    for where, hint in (
        ("date(S.event_time) = '2013-03-10'", "write dates like DATE '2013-03-10'"),
        ("date(S.event_time) = S.event_time", "date() gives the date of a time"),
        ("date(S.day) = S.day", "None"),
    ):
        assert refused({**TRENDS, "where": [where], "within": "1 day"}).endswith(hint)
    compile_query({**TRENDS, "where": ["S.day = date(S.event_time)"], "within": "1 day"}, SCHEMA)
    assert refused({**TRENDS, "where": ["S.day = DATE '2013-02-30'"], "within": "1 day"}).startswith("[SYNTAX]")


def test_columns_called_date_and_month() -> None:
    """The words are words only where a text or a number is beside them."""
    schema = EventSchema({**dict(SCHEMA.columns), "date": "date", "month": "bigint"}, *SCHEMA_ROLES)
    where = ["S.date = DATE '2013-03-10'", "S.month > 3"]
    compile_query({**TRENDS, "where": where, "within": "1 day"}, schema)


SCHEMA_ROLES = (SCHEMA.event_id, SCHEMA.event_time, SCHEMA.event_type)


@pytest.mark.parametrize(
    ("query", "hours"),
    [
        (
            {"kind": "algebra", "pattern": "SELECT hour(event_time) AS h FROM FILTER{hour(event_time) < 21}(A)"},
            [19, 20],
        ),
        ({"kind": "matches", "pattern": "A a", "return": {"h": "hour(a.event_time)"}, "having": ["h < 21"]}, [19, 20]),
        (
            {
                "kind": "trends",
                "derive": {"h": "hour(event_time)"},
                "group_by": ["h"],
                "pattern": "A",
                "return": {"n": "COUNT(A) FILTER (WHERE hour(A.event_time) < 21)"},
                "having": ["n = 1"],
            },
            [19, 20],
        ),
    ],
)
def test_each_place_reads_the_clock_of_the_zone(query: dict[str, Any], hours: list[int]) -> None:
    """Also FILTER, `derive` and `having`."""
    moments = [{"id": f"e{k}", "type": "A", "time": 3600 * k} for k in range(3)]
    rows = evaluate({**query, "within": "1 day", "time_zone": "America/New_York"}, to_table(moments)).to_pylist()
    assert sorted(row["h"] for row in rows) == hours
