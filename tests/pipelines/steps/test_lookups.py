"""Patterns with `lookup`: runs show what the engine says of the good rows of events and of reference tables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import (
    all_steps,
    in_order,
    on_spark,
    project_of,
    published,
    quarantined,
)
from tests.support.tables_lake import SeveralTables, customer, order, payment
from trendlake.cep_core import PatternWarning, run_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.runs.record import Attempt
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source, check_source_together
from trendlake.pipelines.steps.compute import compute, compute_together
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

CURRENT: Mapping[str, Any] = {"table": "customers", "key": "customer_id", "columns": ["segment"]}
VALID: Mapping[str, Any] = {**CURRENT, "valid_from": "since", "valid_to": "until"}
ONE: Mapping[str, Any] = {
    "kind": "trends",
    "sources": None,
    "source": "orders",
    "lookup": {"customer": VALID},
    "pattern": "Order o+",
    "where": ["[segment]"],
    "group_by": ["segment"],
    "return": {"n": "COUNT(*)", "most": "MAX(o.amount)"},
    "within": "12 hours",
}
SEVERAL: Mapping[str, Any] = {
    "lookup": {"customer": {**CURRENT, "of": ["Order", "Payment"]}},
    "pattern": "SEQ(Order o, Payment p)",
    "where": ["[customer_id]", "o.segment = 'b2b'"],
    "derive": {"named": "coalesce(segment, 'none')"},
}


@pytest.fixture(params=["here", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.repeats])])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return maker(request, tmp_path)


def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Makes a project, where every step is done in this process or on Spark, as the fixture's parameter says; `plain`:
    in this process, with reference tables whose rows are no events."""

    def make(**keys: Any) -> SeveralTables:
        if request.param != "spark":
            return project_of(tmp_path, plain=request.param == "plain", **keys)
        session: SparkSession = request.getfixturevalue("spark")
        return on_spark(session, tmp_path, **keys)

    return make


def deliver(tables: SeveralTables, *customers: Mapping[str, Any]) -> None:
    """The events, and rows of customers."""
    tables.deliver("customers", customers)
    hours = [(1, "a"), (2, "b"), (3, "a"), (6, "a"), (7, "c"), (8, None)]
    tables.deliver("orders", [order(n, hour, name, n) for n, (hour, name) in enumerate(hours, 1)])
    tables.deliver("payments", [payment("p1", 4), payment("p2", 9, "b")])


BROKEN = customer("4", "c", "x" * 10)
OVER_TIME = (customer("1", "a", "b2b", -9, 5), customer("2", "a", "b2c", 5), customer("6", "b", "-", 9, 8))
NOW = (customer("1", "a", "b2b"), customer("2", "b", "b2c"), customer("3", None, "b2b"))


def good(tables: SeveralTables) -> pa.Table:
    """The customers that keep the contract, by hand."""
    rows = DeltaTable(tables.lake.warehouse.source("customers")).to_pyarrow_table()
    return rows.filter(pa.array([len(row["segment"] or "") <= 9 for row in rows.to_pylist()], pa.bool_()))


def rows_by_hand(tables: SeveralTables, run: Run) -> list[dict[str, Any]]:
    """What the engine says of the tables as they are."""
    names = [table.key for table in run.sources.tables]
    events = {name: DeltaTable(tables.lake.warehouse.source(name)).to_pyarrow_table() for name in names}
    of_one = events[names[0]].append_column("event_type", pa.array(["Order"] * len(events[names[0]])))
    read = events if run.sources.united else of_one
    answer = run_plan(run.plan, read, run.windows, None, {"customers": good(tables)})
    return sorted(answer.cast(run.plan.result_schema).to_pylist(), key=repr)


@pytest.mark.parametrize(
    ("keys", "customers"),
    [(ONE, OVER_TIME), (SEVERAL, NOW), ({**ONE, "lookup": {"customer": CURRENT}}, NOW)],
    ids=["valid", "several", "current"],
)
def test_a_run(place: Any, keys: Mapping[str, Any], customers: tuple[Mapping[str, Any], ...]) -> None:
    """The reference table is pinned, judged and noted as a source is, and holds no watermark."""
    tables = place(**keys)
    deliver(tables, *customers, BROKEN)
    checked, *_, last = all_steps(tables.run(0, 2, "first"))
    assert published(tables)
    assert published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))
    assert checked.sources is not None
    counts = {name: (one["rows_in"], one["quarantined"]) for name, one in checked.sources.items()}
    assert counts["customers"] == (4, 1)
    assert checked.rows_in == sum(rows for name, (rows, _) in counts.items() if name != "customers")
    rows = DeltaTable(tables.lake.warehouse.results("unpaid")).to_pyarrow_table()
    (versions,) = set(rows["source_versions"].to_pylist())
    assert "customers@1" in versions
    assert set(rows["source_version"].to_pylist()) == ({None} if keys is SEVERAL else {1})
    assert "customers" in dict(last.note or {})["sources"]
    assert quarantined(tables, "customers", "first") == 1


def test_events_without_a_row(place: Any) -> None:
    """Are counted by key, those of the types that the pattern reads; above the share that it allows nothing is
    published."""
    tables = place(**{**ONE, "lookup": {"customer": {**CURRENT, "missing": {"most": 0.4}}}})
    deliver(tables, *NOW)
    _, computed, *_ = all_steps(tables.run(0, 2, "first"))
    (check,) = [check for check in computed.checks if check.name == "lookup_missing"]
    assert check.success
    assert check.data == {"lookup": "customer", "events": 6, "missing": 2, "examples": [["NULL", 1], ["c", 1]]}
    rows = published(tables)
    tables.edit(**{**ONE, "lookup": {"customer": {**CURRENT, "missing": {"most": 0.3}}}})
    check_source(tables.run(0, 2, "second"))
    with pytest.raises(ChecksFailedError, match=r"too few rows of customers: customer: 2 of 6 events have no row"):
        compute(tables.run(0, 2, "second"))
    assert published(tables) == rows


def test_rows_that_hold_at_one_moment(place: Any) -> None:
    """Nothing is published, though no event has their key."""
    tables = place(**ONE)
    deliver(tables, *OVER_TIME, customer("8", "z", "b2b", 0, 2), customer("9", "z", "b2c", 1, 3))
    with pytest.raises(TrendlakeError, match="customers version 1: key z has 2 rows that hold at") as repeated:
        check_source(tables.run(0, 2, "first"))
    assert repeated.value.code == "LOOKUP_REPEATED"
    assert not published(tables)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    """It is missing as a source is."""
    project = project_of(tmp_path, **ONE)
    shutil.rmtree(project.lake.warehouse.source("customers"))
    with pytest.raises(TrendlakeError, match="customers") as missing:
        check_source(project.run(0, 2, "first"))
    assert missing.value.code == "SOURCE_MISSING"


def test_a_lookup_that_nothing_reads(tmp_path: Path) -> None:
    """Its table is not read, and rows are as those of a pattern without it."""
    project = project_of(tmp_path, **{**ONE, "where": [], "group_by": None, "return": {"n": "COUNT(*)"}})
    shutil.rmtree(project.lake.warehouse.source("customers"))
    project.deliver("orders", [order(1, 1)])
    with pytest.warns(PatternWarning, match="nothing reads a column of it"):
        run = project.run(0, 2, "first")
    checked, *_ = all_steps(run)
    assert checked.sources is None
    assert [row["n"] for row in published(project)] == [1]


KINDS: Mapping[str, Mapping[str, Any]] = {
    "automaton": {
        "kind": "automaton",
        "pattern": None,
        "where": None,
        "return": None,
        "partition_by": ["segment"],
        "register": {"seen": {"type": "bigint", "init": 0}},
        "start": "s",
        "final": ["t"],
        "arcs": [{"from": "s", "to": "t", "when": "e.segment = 'b2b'", "set": {"seen": "e.amount"}}],
    },
    "algebra": {
        "kind": "algebra",
        "pattern": "SELECT amount AS first, amount_1 AS second FROM Order NEXT{$1.segment = $2.segment} Order",
        "where": None,
        "return": None,
    },
    "match_recognize": {
        "kind": "match_recognize",
        "pattern": (
            "SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY segment ORDER BY at MEASURES COUNT(*) AS n"
            " AFTER MATCH SKIP PAST LAST ROW PATTERN (A+) DEFINE A AS amount > 0)"
        ),
        "where": None,
        "return": None,
    },
    "having": {"having": ["n > 2"], "derive": {"whose": "coalesce(segment, 'none')"}, "group_by": ["whose"]},
    "family": {"for_each": {"least": [1, 3]}, "where": ["[segment]", "o.amount >= $least"]},
}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind(tmp_path: Path, name: str) -> None:
    """But matches, which `SEVERAL` is of; and conditions on results, derived columns and families."""
    tables = project_of(tmp_path, **{**ONE, "group_by": ONE["group_by"] if name == "family" else None, **KINDS[name]})
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    assert published(tables)
    assert published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))
    tables.deliver("customers", [customer("2", "a", "b2b", 5), customer("3", "b", "b2b", 9, 18)])
    revise(tables.run(0, 2, "second"))
    assert published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))


def test_a_table_of_events_that_is_looked_up(place: Any) -> None:
    """It is pinned once, and both its uses are of one version."""
    itself = {"table": "orders", "key": {"amount": "number"}, "columns": [{"other": "customer_id"}]}
    tables = place(**{**ONE, "lookup": {"order": itself}, "where": [], "group_by": ["other"]})
    deliver(tables)
    checked, *_ = all_steps(tables.run(0, 2, "first"))
    assert checked.sources is not None
    assert list(checked.sources) == ["orders"]
    names = {row["other"]: row["n"] for row in published(tables)}
    assert set(names) == {"a", "b", "c", None}
    tables.deliver("orders", [order(2, 2, "new", 1)])
    revise(tables.run(0, 2, "second"))
    assert sum(row["n"] for row in published(tables) if row["other"] == "new") == 0
    tables.deliver("orders", [order(1, 1, "own", 1)])
    revise(tables.run(0, 2, "third"))
    assert [row["most"] for row in published(tables) if row["other"] == "own"] == [1]


def test_several_patterns_in_one_step(place: Any) -> None:
    """Each has its own columns of the table, though their names are the same."""
    tables = place(**ONE)
    deliver(tables, *OVER_TIME)
    file = tables.project.pattern_path("unpaid")
    renamed = yaml.safe_load(file.read_text()) | {"name": "other"}
    renamed["lookup"]["customer"]["columns"] = [{"segment": "note"}]
    file.with_name("other.yaml").write_text(yaml.safe_dump(renamed))
    run = tables.run(0, 2, "first")
    other = prepare(tables.lake, tables.project, tables.profile, "other", "first", run.start_us, run.end_us)
    for step in (check_source_together, compute_together):
        attempts: list[Attempt] = step([run, other])
        assert [attempt.error for attempt in attempts] == [None, None]
    for one in (run, other):
        check_results(one)
        publish(one)
    for one in (run, other):
        rows = DeltaTable(tables.lake.warehouse.results(one.name)).to_pyarrow_table()
        assert in_order(rows.select(one.plan.result_schema.names)) == rows_by_hand(tables, one)
    assert "b2b" not in str(rows["segment"].to_pylist())


def test_results_of_another_pattern(tmp_path: Path) -> None:
    """Are a reference table as any: here the events of a customer in the window of the event."""
    counted = {"table": "results/other", "key": "customer_id", "columns": [{"before": "n"}]}
    validity = {"valid_from": "window_start", "valid_to": "window_end"}
    plain = {**ONE, "lookup": {"count": {**counted, **validity}}, "where": [], "group_by": ["before"]}
    tables = project_of(tmp_path, **plain)
    other = {**ONE, "name": "other", "lookup": {}, "sources": None, "where": [], "group_by": ["customer_id"]}
    file = tables.project.pattern_path("unpaid").with_name("other.yaml")
    file.write_text(yaml.safe_dump({key: value for key, value in other.items() if value is not None}))
    tables.make("customers")
    deliver(tables)
    run = tables.run(0, 2, "first")
    bounds = run.start_us, run.end_us
    upstream = prepare(tables.lake, tables.project, tables.profile, "other", "up", *bounds)
    all_steps(upstream)
    all_steps(run)
    rows = DeltaTable(tables.lake.warehouse.results("other")).to_pyarrow_table()
    answer = run_plan(run.plan, _orders(tables), run.windows, None, {"results/other": rows})
    assert published(tables) == in_order(answer.cast(run.plan.result_schema))
    assert {row["before"] for row in published(tables)} > {None, 1}
    tables.deliver("orders", [order(9, 2.5, "b", 9)])
    revise(prepare(tables.lake, tables.project, tables.profile, "other", "up again", *bounds))
    revise(tables.run(0, 2, "second"))
    rows = DeltaTable(tables.lake.warehouse.results("other")).to_pyarrow_table()
    answer = run_plan(run.plan, _orders(tables), run.windows, None, {"results/other": rows})
    assert published(tables) == in_order(answer.cast(run.plan.result_schema))


def _orders(tables: SeveralTables) -> pa.Table:
    """The events, with their type."""
    events = DeltaTable(tables.lake.warehouse.source("orders")).to_pyarrow_table()
    return events.append_column("event_type", pa.array(["Order"] * len(events)))
