"""The shipped examples over generated streams: their rows are those that plain loops over the stream find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.generate import START_US, STREAMS

EXAMPLES = ROOT / "examples" / "algebra"
MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000

Rows = list[dict[str, Any]]


def stream(name: str, events: int) -> tuple[pa.Table, Rows]:
    """The stream, and its rows with times in microseconds."""
    table = STREAMS[name].build(events, STREAMS[name].rate, 11, START_US)
    times = table["event_time"].cast(pa.int64()).to_pylist()
    return table, [{**row, "event_time": time} for row, time in zip(table.to_pylist(), times, strict=True)]


def answer(name: str, table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of an example: start, end, columns."""
    query = plain(read_yaml(EXAMPLES / f"{name}.yaml").data)
    result = run_plan(compile_query(query, schema_of(table)), table)
    cells = [result[one].cast(pa.int64()).to_pylist() for one in ("start", "end")]
    cells += [result[one].to_pylist() for one in columns]
    return sorted(zip(*cells, strict=True), key=str)


def by(rows: Rows, key: str) -> Iterator[Rows]:
    for value in sorted({row[key] for row in rows}):
        yield [row for row in rows if row[key] == value]


def later(rows: Rows, place: dict[str, Any], within: int, since: int) -> list[dict[str, Any]]:
    """Of `rows`, in the order of time, those of the first time after `place`, if they are in time."""
    after = [row for row in rows if row["event_time"] > place["event_time"]]
    first = [row for row in after if row["event_time"] == after[0]["event_time"]] if after else []
    return [row for row in first if row["event_time"] - since < within]


def runs(rows: Rows, path: Rows, rises: bool, within: int) -> Iterator[Rows]:
    """Every path from its last tick on along ticks that rise (or fall), each step to the next time; ties branch."""
    for one in later(rows, path[-1], within, path[0]["event_time"]):
        if (one["price"] > path[-1]["price"]) is rises and one["price"] != path[-1]["price"]:
            yield [*path, one]
            yield from runs(rows, [*path, one], rises, within)


def test_rising_runs() -> None:
    table, rows = stream("quotes", 2_500)
    expected = {
        (run[0]["event_time"], run[-1]["event_time"], one[0]["symbol"], run[0]["price"], run[-1]["price"], len(run))
        for one in by(rows, "symbol")
        for tick in one
        for run in runs(one, [tick], True, 10 * MINUTE)
        if len(run) >= 5
    }
    assert len(expected) > 30
    assert answer("rising_runs", table, "symbol", "first", "last", "ticks") == sorted(expected, key=str)


def test_year_average() -> None:
    table, rows = stream("closes", 24 * 450)
    expected = []
    for one in by(rows, "company"):
        for i in range(len(one) - 365):
            mean = one[i]["price"]
            for n in range(1, 365):
                mean = (n * mean + one[i + n]["price"]) / (n + 1)
            close = one[i + 365]
            if close["price"] > mean:
                expected.append((one[i]["event_time"], close["event_time"], close["company"], close["price"], mean))
    assert 300 < len(expected) < 24 * 85
    assert answer("year_average", table, "company", "price", "mean") == sorted(expected, key=str)


def test_rumors() -> None:
    """Each step is to the posts of the first time at which any refers to the last one."""
    table, rows = stream("posts", 3_000)
    expected = set()
    for rumor in (row for row in rows if "Apple rumor" in row["description"]):
        ends = [(rumor, 0)]
        while ends:
            last, steps = ends.pop()
            refers = [row for row in rows if last["link"] in row["description"]]
            for post in later(refers, last, 2 * HOUR, rumor["event_time"]):
                ends.append((post, steps + 1))
                expected.add(
                    (
                        rumor["event_time"],
                        post["event_time"],
                        rumor["link"],
                        rumor["website"],
                        post["link"],
                        post["website"],
                        steps + 1,
                    )
                )
    assert max(row[-1] for row in expected) > 3
    columns = ("rumor", "origin", "reached", "website", "steps")
    assert answer("rumors", table, *columns) == sorted(expected, key=str)


def test_double_top_by_folds() -> None:
    table, rows = stream("quotes", 1_500)
    expected = set()

    def legs(one: Rows, path: Rows, extrema: list[float]) -> None:
        """`extrema`: where the legs so far have ended, the first price first."""
        rises = len(extrema) % 2 == 1
        for run in runs(one, path, rises, HOUR):
            price = run[-1]["price"]
            a, b = [*extrema, price, price][:2]
            level = a if len(extrema) == 2 else b
            if len(extrema) == 4 and price < a:
                expected.add((run[0]["event_time"], run[-1]["event_time"], run[0]["symbol"], *extrema, price))
            enough = (True, price >= 1.2 * a, *2 * [0.9 * level <= price <= 1.1 * level], False)
            if enough[len(extrema)]:
                legs(one, run, [*extrema, price])

    for one in by(rows, "symbol"):
        for tick in one:
            legs(one, [tick], [])
    assert len(expected) > 5
    columns = ("symbol", "a", "b", "c", "d", "e")
    assert answer("double_top_by_folds", table, *columns) == sorted(expected, key=str)


def test_double_top_by_instants() -> None:
    """Extrema of the ticks, one after another, where no two ticks of a symbol share a time."""
    table, rows = stream("quotes", 3_000)
    seen: set[tuple[str, int]] = set()
    distinct = []
    for row in rows:
        if (row["symbol"], row["event_time"]) not in seen:
            seen.add((row["symbol"], row["event_time"]))
            distinct.append(row)
    ids = {row["event_id"] for row in distinct}
    table = table.filter(pa.array([one in ids for one in table["event_id"].to_pylist()]))
    expected = []
    for one in by(distinct, "symbol"):
        points = []
        for before, top, after in zip(one, one[1:], one[2:], strict=False):
            sides = {top["price"] > before["price"], top["price"] > after["price"]}
            level = top["price"] in (before["price"], after["price"])
            if len(sides) == 1 and not level and after["event_time"] - before["event_time"] < HOUR:
                points.append((after["event_time"], top["price"]))
        for five in zip(points, points[1:], points[2:], points[3:], points[4:], strict=False):
            a, b, c, d, e = (price for _, price in five)
            tops = b >= 1.2 * a and 0.9 * a <= c <= 1.1 * a and 0.9 * b <= d <= 1.1 * b
            if tops and e < a and five[4][0] - five[0][0] < HOUR:
                expected.append((five[0][0], five[4][0], one[0]["symbol"], a, b, c, d, e))
    assert len(expected) >= 1
    columns = ("symbol", "a", "b", "c", "d", "e")
    assert answer("double_top_by_instants", table, *columns) == sorted(expected, key=str)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_is_tested(path: Any) -> None:
    """An example has a test of its name."""
    assert f"test_{path.stem}" in globals()
