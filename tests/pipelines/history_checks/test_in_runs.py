"""Expectations in a run and in a revision: what is told, what is refused, and what is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.flights import Flights, all_steps, snowball
from tests.support.signals import START_US, signals
from trendlake.cep_core import AnyPlan, EventSchema, compile_plan, load_pattern
from trendlake.jobs.terminal.workspace import broken
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.history_checks.evaluate import Judged
from trendlake.pipelines.history_checks.read import cells, group_outcomes, missing_of
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.report.read_run import read_run
from trendlake.pipelines.report.verdict import verdict
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.long]

EXPECT = """\
expect:
  - {measure: snowballs, between: [0.5, 2], of_last: 2 windows}
  - {measure: rows, between: [0.5, null], of_last: 3 windows}
  - {groups: none_vanish, of_last: 2 windows}
"""
NAMES = ("snowballs_between_0.5_and_2_of_last_2", "rows_at_least_0.5_of_last_3", "none_vanish_of_last_2")


def expecting(lake: Flights, since: int, until: int, run_id: str, expect: str = EXPECT) -> Run:
    """A run of days of March, of the pattern with `expect`."""
    path = Path(lake.pattern())
    path.write_text(path.read_text() + expect)
    return lake.run(path, f"2013-03-{since:02d}", f"2013-03-{until:02d}", run_id)


def verdicts(checks: Sequence[Check]) -> list[tuple[bool | None, str]]:
    """The verdicts on what is expected, in order."""
    by_name = {check.name: (check.success, check.observed) for check in checks}
    return [by_name[name] for name in NAMES]


LEGS = {"UA": (3, 3, 3, 3), "AA": (2, 2, 2, 5), "B6": (3, 3, 3, 0)}
FEW = "windows not judged: not all of the {} before are published in this form of the pattern"


def four_days(lake: Flights) -> Run:
    """Four days published in one run."""
    lake.deliver([row for who, days in LEGS.items() for day, n in enumerate(days, 1) for row in snowball(day, n, who)])
    run = expecting(lake, 1, 5, "first")
    all_steps(run)
    return run


def test_a_run_that_warns_and_one_that_publishes_nothing(lake: Flights) -> None:
    """Which groups, in which windows, beside what; windows of the run are history for its later ones."""
    first = four_days(lake)
    fourth = "window_start 2013-03-04 00:00:00"
    assert verdicts(first.need("check_results").checks) == [
        (
            False,
            f"2 of 6 groups in windows break it: carrier=AA, {fourth}: 31, usually 3; "
            f"carrier=B6, {fourth}: 0, usually 7; 2 of 4 {FEW.format(2)}",
        ),
        (True, f"none of 1 window breaks it; 3 of 4 {FEW.format(3)}"),
        (False, f"1 of 6 groups in windows break it: carrier=B6, {fourth}; 2 of 4 {FEW.format(2)}"),
    ]
    said = [line.split(":")[0] for line in broken(first.records["check_results"])]
    assert said == [NAMES[0], NAMES[2]]
    page = read_run(lake.lake, first.name, "first")
    assert verdict(page, 0).reason == "2 checks of the results gave a warning."

    path = lake.warehouse.results(first.name)
    before = latest_version(lake.lake, path)
    lake.deliver(snowball(5, 3), feed="fifth")
    stopped = expecting(lake, 5, 6, "stopped", EXPECT.replace("none_vanish, ", "none_vanish, on_break: fail, "))
    for step in ("check_source", "compute"):
        STEPS[step](stopped)
    with pytest.raises(ChecksFailedError, match=r"none_vanish_of_last_2 .1 of 2 .*carrier=AA, window_start 2013-03-05"):
        STEPS["check_results"](stopped)
    assert latest_version(lake.lake, path) == before
    assert "none_vanish_of_last_2" in verdict(read_run(lake.lake, first.name, "stopped"), 0).reason


@pytest.mark.chaos
def test_a_revision_tells_what_it_breaks(lake: Flights) -> None:
    """B6 is gone from the third day, UA has more on the fourth. What AA and B6 broke there before is not told again."""
    first = four_days(lake)
    table = f"delta.`{lake.warehouse.source('flights')}`"
    lake.spark.sql(f"DELETE FROM {table} WHERE event_id LIKE 'B6-3-%'")
    lake.deliver(snowball(4, 5)[3:], feed="more")
    with pytest.raises(ChecksFailedError, match="carrier=B6, window_start 2013-03-03"):
        revise(expecting(lake, 1, 5, "refused", EXPECT.replace("none_vanish, ", "none_vanish, on_break: fail, ")))
    record = revise(expecting(lake, 1, 5, "revised"))
    assert (record.rows_updated, record.rows_deleted) == (1, 1)
    third, fourth = (f"window_start 2013-03-{day:02d} 00:00:00" for day in (3, 4))
    assert verdicts(record.checks) == [
        (
            False,
            f"2 of 6 groups in windows break it: carrier=B6, {third}: 0, usually 7; "
            f"carrier=UA, {fourth}: 31, usually 7",
        ),
        (True, f"none of 1 window breaks it; 1 of 2 {FEW.format(3)}"),
        (False, f"1 of 5 groups in windows break it: carrier=B6, {third}"),
    ]
    assert not {check.name for check in revise(expecting(lake, 1, 5, "quiet")).checks} & set(NAMES)

    path = Path(lake.pattern(group_by="carrier, origin"))  # another form of the pattern has no windows before it yet
    path.write_text(path.read_text() + EXPECT)
    edited = lake.run(path, "2013-03-04", "2013-03-05", "edited")
    for step in ("check_source", "compute", "check_results"):
        STEPS[step](edited)
    assert edited.plan.hash != first.plan.hash
    assert verdicts(edited.need("check_results").checks)[0] == (
        None,
        f"not judged; 1 of 1 {FEW.format(2).replace('windows', 'window', 1)}",
    )


HEAD = "name: watched\nsource: signals\nwithin: 1 day\n"
PATTERNS = {
    "trends": "pattern: A+\nreturn: {n: COUNT(*), mean: AVG(A.x)}\ngroup_by: [g]\n",
    "matches": "kind: matches\npattern: SEQ(A a, A b)\n",
    "automaton": "kind: automaton\nstart: p\nfinal: [q]\narcs: [{from: p, to: q}]\npartition_by: [g]\n",
    "algebra": "kind: algebra\npartition_by: [g]\npattern: SELECT x_1 AS last FROM A NEXT A\n",
    "match_recognize": "kind: match_recognize\n"
    "pattern: MATCH_RECOGNIZE (PARTITION BY G PATTERN (a+) DEFINE a AS x > 0)\n",
}
SIGNALS = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "g": "string", "x": "double"},
    types=("A",),
)
DAY = 86_400_000_000
ASKED = {
    ("trends", "n"): {("u", 3, "9", "2"), ("v", 3, "0", "1.5"), (None, 3, "10^41", "1")},
    ("trends", "mean"): {("u", 3, "9", "2")},
    ("trends", "rows"): {(3, "2", "3")},
    ("matches", "rows"): {(3, "2", "3")},
    ("automaton", "rows"): {("v", 3, "0", "1")},
    ("algebra", "rows"): {("v", 3, "0", "1")},
    ("match_recognize", "rows"): {("v", 3, "0", "1")},
}


@pytest.mark.parametrize(("kind", "measure"), ASKED)
def test_what_is_counted_of_each_kind(spark: SparkSession, tmp_path: Path, kind: str, measure: str) -> None:
    """Values by group and window; of rows how many there are, by partition or of all. Absent rows, NULL groups, NULL
    values, counts beyond 38 digits; rows in many partitions."""
    path = tmp_path / "watched.yaml"
    path.write_text(
        f"{HEAD}{PATTERNS[kind]}expect:\n  - {{measure: {measure}, between: [0.75, 2], of_last: 2 windows}}\n"
    )
    pattern = load_pattern(path)
    plan = compile_plan(pattern, SIGNALS)
    windows = {"u": (1, 2, 3), "v": (1, 2), None: (1, 2, 3)}
    rows = [_row(kind, plan, who, day) for who, days in windows.items() for day in days]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=plan.result_schema)).repartition(3)
    (one,) = pattern.expect
    judged = Judged(((3, 3),))
    rows_found = group_outcomes(
        cells(pattern, plan, one, [frame]), one, judged, missing_of(pattern, plan, one)
    ).collect()
    assert {(*row["group"], *row[1:4]) for row in rows_found if row["window"] is not None} == ASKED[kind, measure]


def _row(kind: str, plan: AnyPlan, who: str | None, day: int) -> dict[str, Any]:
    """A result row of a group on a day."""
    at = plan.owned(range(day, day + 1))[1]
    if kind != "trends":
        named = {"g": who, "lifetime_end": at, "first": "x", "last": f"{day}", "match_id": f"{who}{day}", "end": at}
        named |= {"start": at, "last": float(day)} if kind == "algebra" else {}
        return {name: value for name, value in named.items() if name in plan.result_schema.names}
    counts: dict[str | None, tuple[Any, ...]] = {"u": (2, 2, 9), "v": (1, 2), None: (1, 1, None)}
    n = counts[who][day - 1]
    mean = None if who is None else float(n)
    return {"g": who, "window_start": at, "window_end": at + DAY, "n": n, "n_log10": 41.0, "mean": mean}


OTHERS = {
    "automaton": "kind: automaton\nstart: p\nfinal: [q]\npartition_by: [place]\n"
    "arcs: [{from: p, to: q, when: \"e.event_type = 'A'\"}]\n",
    "algebra": "kind: algebra\npartition_by: [place]\npattern: FROM A NEXT B\n",
    "matches": 'kind: matches\npattern: SEQ(A a, B b)\nwhere: ["[place]"]\n',
}
QUARTERS = "within: 6 hours\nexpect:\n  - {measure: rows, between: [0.6, 2], of_last: 3 windows}\n"
VANISH = "  - {groups: none_vanish, of_last: 3 windows}\n"


@pytest.mark.chaos
@pytest.mark.parametrize("kind", OTHERS)
def test_runs_of_other_kinds(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Two days in quarters, a result a quarter and place: `s` ends with the third quarter, `n` with the seventh."""
    lake = signals(spark, tmp_path / "project", OTHERS[kind] + QUARTERS + ("" if kind == "matches" else VANISH))
    quarters = [("n", k) for k in range(7)] + [("s", k) for k in range(3)]
    rows = [
        {
            "event_id": f"{name}{place}{k}",
            "event_time": START_US + (6 * k + later) * DAY // 24,
            "event_type": name,
            "place": place,
            "price": 1,
            "remark": "",
        }
        for place, k in quarters
        for name, later in (("A", 1), ("B", 2))
    ]
    lake.insert(rows)
    all_steps(lake.run(0, 1, "first"))
    second = lake.run(1, 2, "second")
    all_steps(second)
    checks = second.need("check_results").checks
    said = [(item.success, item.observed) for item in checks if item.name.endswith("of_last_3")]
    if kind == "matches":
        assert said == [
            (
                False,
                "2 of 4 windows break it: end from 2026-01-02 00:00:00: 1, usually 2; "
                "end from 2026-01-02 18:00:00: 0, usually 1",
            )
        ]
    else:
        time = "lifetime_end" if kind == "automaton" else "end"
        gone, still = (f"place=s, {time} from 2026-01-02 {hour}:00:00" for hour in ("00", "06"))
        assert said == [
            (
                False,
                f"2 of 6 groups in windows break it: {gone}: 0, usually 1; {still}: 0, usually 1; "
                "1 groups in windows not judged: no value, or none that is usual",
            ),
            (False, f"1 of 5 groups in windows break it: {gone}"),
        ]
