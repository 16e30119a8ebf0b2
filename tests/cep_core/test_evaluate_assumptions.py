"""What `evaluate` assumes of events that do not say it, and how a caller states it: `time_zone`, types."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import AssumptionWarning, PatternWarning, evaluate
from trendlake.cep_core.errors import BadEventsError

RISING = {
    "kind": "trends",
    "pattern": "R x{2,}",
    "where": ["x.isig < NEXT(x).isig"],
    "select": "contiguous",
    "return": {"n": "COUNT(*)", "top": "MAX(x.isig)"},
    "within": "1 day",
}
DAYS = {"kind": "trends", "pattern": "R x", "return": {"n": "COUNT(*)"}, "within": "1 day"}
NIGHT = [datetime(2026, 1, 1, 23), datetime(2026, 1, 2, 1)]
"""One night; of New York's clocks the first is 4 o'clock of the next day in UTC."""


def events(times: list[datetime], isig: list[Any] | None = None, zone: str | None = None) -> pa.Table:
    count = len(times)
    return pa.table(
        {
            "event_id": [str(i) for i in range(count)],
            "event_time": pa.array(times, pa.timestamp("us", zone)),
            "event_type": ["R"] * count,
            "isig": isig or ["x"] * count,
        }
    )


def said(query: dict[str, Any], table: pa.Table, **options: Any) -> list[str]:
    """The warnings of an evaluation, each time."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(query, table, **options)
    return [str(one.message) for one in caught if one.category is AssumptionWarning]


def counts(query: dict[str, Any], table: pa.Table, **options: Any) -> dict[datetime, int]:
    rows = evaluate(query, table, **options).to_pylist()
    return {row["window_start"].replace(tzinfo=None): int(row["n"]) for row in rows}


def test_naive_times_warn_with_what_is_assumed() -> None:
    (text,) = said(DAYS, events(NIGHT))
    assert "event_time has times without a zone, which are read as UTC" in text
    assert 'time_zone="America/New_York"' in text


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_with_a_zone_never_warn(zone: str) -> None:
    assert not said(DAYS, events(NIGHT, zone=zone))
    assert not said(DAYS, events(NIGHT, zone=zone), time_zone="Asia/Tokyo")


def test_a_stated_zone_is_the_clocks() -> None:
    """Naive times become moments of the zone; times with a zone are moments already."""
    assert not said(DAYS, events(NIGHT), time_zone="UTC")
    assert counts(DAYS, events(NIGHT), time_zone="UTC") == {datetime(2026, 1, 1): 1, datetime(2026, 1, 2): 1}
    assert counts(DAYS, events(NIGHT), time_zone="America/New_York") == {datetime(2026, 1, 2): 2}
    aware = events([time.replace(tzinfo=UTC) for time in NIGHT], zone="UTC")
    assert counts(DAYS, aware, time_zone="America/New_York") == counts(DAYS, events(NIGHT), time_zone="UTC")


def test_a_time_that_clocks_skip_is_an_error() -> None:
    table = events([datetime(2026, 3, 8, 1), datetime(2026, 3, 8, 2, 30), datetime(2026, 3, 8, 2, 40)])
    with pytest.raises(BadEventsError, match=r"'event_time', row 2, and 1 more: 2026-03-08 02:30:00 does not exist in"):
        evaluate(DAYS, table, time_zone="America/New_York")


def test_of_two_moments_the_earlier() -> None:
    """01:30 of New York occurs twice on 1 November: 05:30 and 06:30 UTC."""
    table = events([datetime(2026, 11, 1, 1, 30)])
    rows = evaluate(DAYS | {"within": "1 hour"}, table, time_zone="America/New_York").to_pylist()
    assert [row["window_start"] for row in rows] == [datetime(2026, 11, 1, 5, tzinfo=UTC)]


def test_a_zone_after_2037_has_summer_time() -> None:
    table = events([datetime(2050, 7, 1, 12)])
    rows = evaluate(DAYS | {"within": "1 hour"}, table, time_zone="Europe/Berlin").to_pylist()
    assert [row["window_start"].hour for row in rows] == [10]


@pytest.mark.parametrize(("zone", "hint"), [("Berlin", "did you mean 'Europe/Berlin'"), ("Mars/Olympus", "IANA name")])
def test_an_unknown_zone_is_an_error(zone: str, hint: str) -> None:
    """Also where no column needs it."""
    for table in (events(NIGHT), events(NIGHT, zone="UTC")):
        with pytest.raises(BadEventsError, match="unknown time zone") as raised:
            evaluate(DAYS, table, time_zone=zone)
        assert hint in str(raised.value)


def test_texts_that_look_like_numbers_warn_where_their_order_counts() -> None:
    """8.5 < 9.5 < 10.5 are two steps up as numbers, and one as texts."""
    times = [datetime(2026, 1, 1, 0, 5 * i, tzinfo=UTC) for i in range(4)]
    texts = events(times, ["8.5", "9.5", "10.5", "nil"], "UTC")
    order, top = said(RISING, texts)
    assert "< compares isig letter by letter" in order
    assert "3 of 4 values look like numbers, such as '8.5', and others do not, such as 'nil'" in order
    assert "MAX compares isig" in top
    assert not said(RISING, events(times, ["a", "b", "c", "d"], "UTC"))
    assert not said(RISING, events(times, [8.5, 9.5, 10.5, None], "UTC"))
    assert not said(DAYS, texts)


def test_a_comparison_with_null_is_a_pattern_warning() -> None:
    with pytest.warns(PatternWarning, match="write x.isig IS NOT NULL"):
        evaluate(DAYS | {"where": ["x.isig <> NULL"]}, events(NIGHT, zone="UTC"))


def test_a_row_of_for_each_without_a_value_is_no_warning() -> None:
    """`validate` notes it; the other rows mean what they say."""
    query = DAYS | {"where": ["x.isig = $p"], "for_each": {"p": ["x", None]}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(query, events(NIGHT, zone="UTC")).num_rows == 2


def test_a_process_warns_once() -> None:
    """With Python's own filters; tests that record all warnings see each."""
    program = (
        "import sys, pyarrow as pa, datetime as d, trendlake\n"
        "table = pa.table({'event_id': ['1'], 'event_time': pa.array([d.datetime(2026, 1, 1)], pa.timestamp('us')),"
        " 'event_type': ['R']})\n"
        "query = {'kind': 'trends', 'pattern': 'R x', 'return': {'n': 'COUNT(*)'}, 'within': '1 day'}\n"
        "trendlake.evaluate(query, table)\n"
        "trendlake.evaluate(query, table)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.count("AssumptionWarning") == 1
    assert done.stderr.startswith("<string>:4")


@pytest.mark.filterwarnings("ignore::cep_core.AssumptionWarning")
def test_bytes_that_are_no_text_are_no_error() -> None:
    """Arrow checks no text for UTF-8 when it is made, and `evaluate` compares the bytes."""
    times = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(3)]
    offsets = pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in range(4)))
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"12\xff")])
    query = {**RISING, "return": {"n": "COUNT(*)"}}
    good = events(times, ["1", "2", "3"], "UTC")
    assert counts(query, good.set_column(3, "isig", bad)) == counts(query, good)
