"""The three queries of GRETA's introduction, as in examples/greta, over the generated streams of its evaluation.

Small streams: against the enumerator, which builds every trend. Large ones: against a plain O(n^2) recurrence in
Python's whole numbers, one query at a time, that knows nothing of patterns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.conftest import ROOT
from tests.reference.trends import reference
from tests.support.engines import differences, from_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.generate import START_US, STREAMS

pytestmark = pytest.mark.random

Row = dict[str, Any]
SHORT = {"event_id": "id", "event_type": "type", "event_time": "time"}


def query(name: str, **changes: Any) -> Row:
    """The pattern file's question, with some of its keys changed."""
    file = plain(read_yaml(ROOT / "examples" / "greta" / f"{name}.yaml").data)
    asked = {key: file[key] for key in ("kind", "pattern", "where", "return", "group_by", "within", "slide")}
    return asked | {"origin": "2026-01-05"} | changes


def stream(name: str, events: int, rate: float, seed: int) -> pa.Table:
    return STREAMS[name].build(events, rate, seed, START_US)


def rows(events: pa.Table) -> list[Row]:
    """As the reference reads them: `time` in seconds."""
    events = events.set_column(1, "event_time", events["event_time"].cast(pa.int64()))
    rows = events.rename_columns([SHORT.get(name, name) for name in events.column_names]).to_pylist()
    return [row | {"time": row["time"] // 1_000_000} for row in rows]


def agree(asked: Row, events: pa.Table) -> list[Row]:
    """The kernels' rows, which are the reference's."""
    expected = reference(asked, rows(events), limit=100_000)
    actual = from_table(evaluate(asked, events))
    assert differences(expected, actual, asked["group_by"]) == []
    return actual


SEEDS = (1, 2, 3)
SELECTIONS = ("skip_till_next_match", "contiguous", "partition_contiguous")
VARIATIONS = [
    f"S.price * {x} {op} NEXT(S).price" for x, op in (("1", "<"), ("1.001", "<"), ("0.999", ">"), ("0.998", ">"))
]


def few(events: pa.Table, **remaining: Sequence[Any]) -> pa.Table:
    """The events whose columns have one of these values: the enumerator builds trends before it parts them."""
    for name, values in remaining.items():
        events = events.filter(pc.is_in(events[name], pa.array(values, events.schema.field(name).type)))
    return events


def transactions(seed: int) -> pa.Table:
    """Of three companies in two sectors, some fifteen in a window."""
    return few(stream("stock", 200, 0.08, seed), company=("C0", "C1", "C2"))


def measurements(seed: int) -> pa.Table:
    """Of two jobs on two mappers, some twenty in a window."""
    return few(stream("cluster", 4_000, 10.0, seed), mapper=(0, 1), job=(0, 1))


def traffic(seed: int) -> pa.Table:
    """Of three miles, some fifteen events in a window."""
    return few(stream("linear_road", 1_500, 6.0, seed), segment=range(3))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("predicate", ["S.price > NEXT(S).price", *VARIATIONS])
def test_q1_and_its_variations(predicate: str, seed: int) -> None:
    """Down-trends of one company, per sector; and variations as in section 10.1, by factors that fit short windows."""
    asked = query("falling_prices", where=["[company, sector]", predicate], slide="2 minutes")
    actual = agree(asked, transactions(seed))
    assert any(row["down_trends"] > 5 for row in actual)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slide", ["30 seconds", "1 minute"])
def test_q2(slide: str, seed: int) -> None:
    """CPU cycles over increasing load trends, per mapper."""
    actual = agree(query("rising_load", slide=slide), measurements(seed))
    assert any(row["cpu_cycles"] > 1_000 for row in actual)


@pytest.mark.parametrize("seed", SEEDS)
def test_q3(seed: int) -> None:
    """Slowing vehicles where there was no accident, in each window that holds them."""
    actual = agree(query("jams_without_accident"), traffic(seed))
    assert any(row["slowdowns"] > 5 for row in actual)


def test_q3_is_about_accidents() -> None:
    """In these streams the NOT decides: without it there are more trends."""
    events = stream("linear_road", 18_000, 40.0, 1)
    asked = query("jams_without_accident")
    actual, without = (
        sum(row["slowdowns"] for row in from_table(evaluate(one, events)))
        for one in (asked, asked | {"pattern": "Position P+"})
    )
    assert 0 < actual < without


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize(
    ("name", "of", "slide"),
    [
        ("falling_prices", transactions, "5 minutes"),
        ("rising_load", measurements, "30 seconds"),
        ("jams_without_accident", traffic, "1 minute"),
    ],
)
def test_other_selections(name: str, of: Callable[[int], pa.Table], slide: str, select: str) -> None:
    """The same questions where not everything may be skipped."""
    for seed in SEEDS[:2]:
        agree(query(name, select=select, slide=slide), of(seed))


def chains(
    events: Sequence[Row], begins: Callable[[Row], int], follows: Callable[[Row, Row], bool], of: str
) -> Iterator[tuple[int, int, int]]:
    """For each event how many chains end in it, their events in all, and the sum of `of` over those.

    `begins`: in how many ways a chain may begin with an event. Later than its neighbour each event must be.
    """
    ended: list[tuple[int, int, int]] = []
    for event in events:
        before = [
            e
            for e, other in zip(ended, events, strict=False)
            if other["time"] < event["time"] and follows(other, event)
        ]
        count = begins(event) + sum(c for c, _, _ in before)
        ended.append((count, count + sum(o for _, o, _ in before), count * event[of] + sum(x for _, _, x in before)))
    yield from ended


def windows(
    events: Sequence[Row], within: int, slide: int, *key: str
) -> Iterator[tuple[int, tuple[Any, ...], list[Row]]]:
    """Start of window in seconds, values of `key`, events of both."""
    last, origin = events[-1]["time"], START_US // 1_000_000
    for start in range(origin - within + slide, last + 1, slide):
        parts = defaultdict(list)
        for event in events:
            if start <= event["time"] < start + within:
                parts[tuple(event[name] for name in key)].append(event)
        for value, part in parts.items():
            yield start, value, part


def by_key(actual: Sequence[Row], group: str) -> dict[tuple[int, Any], Row]:
    return {(row["window_start"] // 1_000_000, row[group]): row for row in actual}


def test_q1_at_size() -> None:
    """Some 800 transactions of a company in a window: counts of dozens of digits, and beyond 38."""
    events = stream("stock", 8_400, 14.0, 11)
    asked = query("falling_prices", slide="5 minutes")
    expected: dict[tuple[int, Any], int] = defaultdict(int)
    for start, (_, sector), part in windows(rows(events), 600, 300, "company", "sector"):
        ended = chains(part, lambda _: 1, lambda v, w: v["price"] > w["price"], "volume")
        expected[start, sector] += sum(count for count, _, _ in ended)
    actual = by_key(from_table(evaluate(asked, events)), "sector")
    assert actual.keys() == expected.keys()
    for key, count in expected.items():
        assert actual[key]["down_trends"] == (count if count < 10**38 else None)
        assert math.isclose(actual[key]["down_trends_log10"], math.log10(count), rel_tol=1e-9)
    assert min(expected.values()) < 10**38 < max(expected.values())


def test_q2_at_size() -> None:
    """Two events a second of each job on each mapper: every sum, up to 10^11 and more."""
    events = stream("cluster", 18_000, 200.0, 12)
    expected: dict[tuple[int, Any], int] = defaultdict(int)
    for start, (mapper, _), part in windows(rows(events), 60, 30, "mapper", "job"):
        starts, measured, ends = ([e for e in part if e["type"] == kind] for kind in ("Start", "Measurement", "End"))
        ended = chains(
            measured,
            lambda m, starts=starts: sum(e["time"] < m["time"] for e in starts),
            lambda v, w: v["load"] < w["load"],
            "cpu",
        )
        for event, (count, _, cycles) in zip(measured, ended, strict=True):
            if closing := count and sum(event["time"] < e["time"] for e in ends):
                expected[start, mapper] += cycles * closing
    actual = by_key(from_table(evaluate(query("rising_load"), events)), "mapper")
    assert actual.keys() == expected.keys()
    for key, cycles in expected.items():
        assert math.isclose(actual[key]["cpu_cycles"], cycles, rel_tol=1e-12)
        assert math.isclose(actual[key]["cpu_cycles_log10"], math.log10(cycles), rel_tol=1e-9)
    assert max(expected.values()) > 10**11


def test_q3_at_size() -> None:
    """A quarter of an hour of a busy road: counts exact, mean speeds of all their reports."""
    events = stream("linear_road", 18_000, 40.0, 13)
    read = rows(events)
    expected: dict[tuple[int, Any], tuple[int, float]] = {}
    for start, (segment,), part in windows(read, 300, 60, "segment"):
        crash = min((e["time"] for e in part if e["type"] == "Accident"), default=math.inf)
        cars = defaultdict(list)
        for event in part:
            if event["type"] == "Position":
                cars[event["vehicle"]].append(event)
        ended = [
            one
            for car in cars.values()
            for one in chains(
                car, lambda p, crash=crash: int(p["time"] <= crash), lambda v, w: v["speed"] > w["speed"], "speed"
            )
        ]
        count, reports, speeds = (sum(one[k] for one in ended) for k in range(3))
        if count:
            expected[start, segment] = count, speeds / reports
    actual = by_key(from_table(evaluate(query("jams_without_accident"), events)), "segment")
    assert actual.keys() == expected.keys()
    for key, (count, speed) in expected.items():
        assert actual[key]["slowdowns"] == count
        assert math.isclose(actual[key]["mean_speed"], speed, rel_tol=1e-12)
    assert sum(e["type"] == "Accident" for e in read) > 10
