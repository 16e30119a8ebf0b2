"""`interval_start`: what is refused, exact sums, and plans that do not change without it."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.support.lasting_events import table_of
from trendlake.cep_core import PatternErrors, compile_query, evaluate, explain
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import EventSchema, schema_of
from trendlake.cep_core.plan import event_windows, times_read

QUERY: dict[str, Any] = {
    "kind": "trends",
    "pattern": "S s",
    "interval_start": "start",
    "return": {"lasted": "SUM(s.duration)", "n": "COUNT(*)"},
    "within": "1 day",
}
COLUMNS = {
    "event_id": "string",
    "event_type": "string",
    "event_time": "timestamp",
    "start": "timestamp",
    "g": "string",
    "x": "bigint",
}
SCHEMA = EventSchema(COLUMNS)
DAY = 86_400


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"interval_start": "began"}, "[UNKNOWN_ATTRIBUTE] the source has no column 'began'"),
        ({"interval_start": "g"}, "[TYPE_MISMATCH] an event starts at a time: 'g' is a string"),
        ({"interval_start": "early", "derive": {"early": "start - 1 hour"}}, "[NOT_SUPPORTED] interval_start: 'early'"),
        ({"group_by": ["duration"]}, "[BAD_CONDITION] 'duration' is the part of an event in a window"),
        ({"where": ["[duration]"]}, "[BAD_CONDITION] 'duration' is the part of an event in a window"),
        ({"where": ["[s.duration]"]}, "[BAD_CONDITION] 'duration' is the part of an event in a window"),
        ({"return": {"m": "MAX(DURATION(*))"}}, "[NOT_SUPPORTED] DURATION(*) of events with intervals"),
        ({"within": "300000 days"}, "[NOT_SUPPORTED] a duration within more than 285 years"),
        ({"where": ["s.duration > 5"]}, "[TYPE_MISMATCH] cannot compare a duration with an integer"),
        ({"derive": {"d": "seconds(duration)"}}, "[UNKNOWN_ATTRIBUTE] the source has no column 'duration'"),
        ({"interval_start": None}, "[UNKNOWN_ATTRIBUTE] the source has no attribute 'duration'"),
    ],
)
def test_refused(more: dict[str, Any], message: str) -> None:
    query = {key: value for key, value in {**QUERY, **more}.items() if value is not None}
    with pytest.raises(PatternErrors) as caught:
        compile_query(query, SCHEMA)
    assert message in str(caught.value)


def test_a_column_of_that_name() -> None:
    """A source with a column `duration` has it without intervals only."""
    schema = EventSchema({**COLUMNS, "duration": "bigint"})
    with pytest.raises(PatternErrors, match="every event has a 'duration', and the source has a column of that name"):
        compile_query(QUERY, schema)
    plain = compile_query({key: value for key, value in QUERY.items() if key != "interval_start"}, schema)
    assert "duration" in plain.columns
    assert plain.result_shape.durations == ()


def test_the_plan() -> None:
    plan = compile_query(QUERY, SCHEMA)
    points = compile_query({**QUERY, "interval_start": None, "return": {"n": "COUNT(*)"}}, SCHEMA)
    assert plan.columns == ("event_time", "event_type", "start")
    assert plan.result_schema.field("lasted").type == pa.int64()
    assert plan.result_shape.durations == ("lasted",)
    assert plan.hash != points.hash
    assert "intervals start to event_time: an event is in each window that it overlaps" in explain(plan)
    assert "intervals" not in explain(points)


def test_a_family_has_the_intervals_of_its_template() -> None:
    family = compile_query({**QUERY, "for_each": {"of": ["a", "b"]}, "where": ["s.g = $of"]}, SCHEMA)
    assert family.interval_start == "start"


def test_the_times_to_read_and_the_windows_of_events() -> None:
    """Of points and of events that last: from days 0 to 1, 1 to 3, and a point on day 2."""
    plan = compile_query(QUERY, SCHEMA)
    points = compile_query({**QUERY, "interval_start": None, "return": {"n": "COUNT(*)"}}, SCHEMA)
    times = [DAY, 3 * DAY, 2 * DAY]
    rows = [{"id": "", "type": "S", "start": start, "time": 0} for start in (0, DAY, None)]
    ends = pa.array([1_000_000 * time for time in times]).to_numpy()
    first, last = event_windows(plan, ends, table_of(rows))
    assert (first.tolist(), last.tolist()) == ([0, 1, 2], [0, 2, 2])
    first, last = event_windows(points, ends, table_of(rows))
    assert (first.tolist(), last.tolist()) == (times_in_days := [1, 3, 2], times_in_days)
    start, end = times_read(points, range(2, 4))
    assert (start, end) == (2 * DAY * 1_000_000, 4 * DAY * 1_000_000)
    assert times_read(plan, range(2, 4))[0] == start
    assert times_read(plan, range(2, 4))[1] > 1_000_000 * int(datetime(9999, 12, 31).timestamp())


@pytest.mark.parametrize("size", [3, 12, 20, 30])
def test_sums_are_exact(size: int) -> None:
    """Of S+: each event is in half of 2^n trends. A sum beyond 64 bits is NULL; its logarithm is known."""
    rows = [{"id": f"e{n}", "type": "S", "start": 10 * n, "time": f"{10 * n + 9}.{n + 1:06}"} for n in range(size)]
    measures = {"lasted": "SUM(s.duration)", "mean": "AVG(s.duration)"}
    query = {**QUERY, "pattern": "S s+", "return": measures}
    (row,) = evaluate(query, table_of(rows)).to_pylist()
    total = sum(9_000_000 + n + 1 for n in range(size))
    exact = total * 2 ** (size - 1)
    assert row["lasted"] == (exact if exact < 2**63 else None)
    assert abs(10 ** (row["lasted_log10"] % 1) - 10 ** (math.log10(exact) % 1)) < 1e-6
    assert row["mean"] == round(total / size)


def test_a_sum_of_many_long_states() -> None:
    """More than 2^53 microseconds in a window: 3,500 machines for a month, to the microsecond."""
    many = 3_500
    rows = [{"id": f"e{n}", "type": "S", "start": 0, "time": f"{30 * DAY}.000001"} for n in range(many)]
    (row, _) = evaluate({**QUERY, "within": "30 days"}, table_of(rows)).sort_by("window_start").to_pylist()
    assert row["lasted"] == many * 30 * DAY * 1_000_000 > 2**53
    (odd,) = evaluate({**QUERY, "within": "60 days"}, table_of(rows)).to_pylist()
    assert odd["lasted"] == many * (30 * DAY * 1_000_000 + 1)


def test_only_events_of_its_types_must_be_right() -> None:
    """An event that begins after it ends, of a type that the pattern has not, or in another window."""
    rows = [{"id": "a", "type": "T", "start": 9, "time": 5}, {"id": "b", "type": "S", "start": 1, "time": 3}]
    table = table_of(rows)
    assert evaluate(QUERY, table)["lasted"].to_pylist() == [2_000_000]
    with pytest.raises(BadEventsError, match="'start' is later than its time"):
        evaluate({**QUERY, "pattern": "ANY s"}, table)


def test_no_events() -> None:
    table = table_of([{"id": "a", "type": "T", "start": 1, "time": 5}])
    assert evaluate(QUERY, table).num_rows == 0
    assert evaluate(QUERY, table.slice(0, 0)).num_rows == 0
    assert compile_query(QUERY, schema_of(table)).interval_start == "start"
