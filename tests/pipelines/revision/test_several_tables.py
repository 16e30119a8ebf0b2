"""Patterns over several tables: run and revised, they show what the engine says of the good rows of each table."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.tables_lake import (
    HERE,
    HOUR,
    ON_SPARK,
    PATTERN,
    SOURCES,
    START,
    SeveralTables,
    order,
    payment,
    several_tables,
    ticket,
)
from trendlake.cep_core import run_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.history import changed_versions, print_diff
from trendlake.jobs.terminal.printing import console
from trendlake.pipelines.errors import StaleRunError, StepOrderError, ToleranceError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.selection import Patterns
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.results.provenance import PROVENANCE
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import TableAt, Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

Rows = list[dict[str, Any]]
STEPS: tuple[Callable[[Run], Record], ...] = (check_source, compute, check_results, publish)
TRENDS: Mapping[str, Any] = {
    "kind": "trends",
    "pattern": "SEQ(Order o+, Payment p)",
    "where": ["[customer_id]", "o.amount < NEXT(o).amount"],
    "return": {"n": "COUNT(*)", "most": "MAX(p.amount)"},
    "group_by": ["customer_id"],
    "within": "12 hours",
}


def without_java() -> SparkSession:
    raise RuntimeError("Java is not started by these tests")


@pytest.fixture
def tables(tmp_path: Path) -> SeveralTables:
    return project_of(tmp_path)


def project_of(root: Path, **keys: Any) -> SeveralTables:
    """All in this process."""
    project = Project(root, root / "state")
    return several_tables(root, Lake(Warehouse(HERE.warehouse_of(project)), without_java, plain_paths=True), **keys)


def all_steps(run: Run) -> list[Record]:
    return [step(run) for step in STEPS]


def published(tables: SeveralTables) -> Rows:
    """Without where they come from, in an order of their own."""
    path = tables.lake.warehouse.results("unpaid")
    if not Path(path).exists():
        return []
    rows = DeltaTable(path).to_pyarrow_table()
    return in_order(rows.drop_columns([name for name in rows.column_names if name in (*PROVENANCE, "plan_hash")]))


def in_order(rows: pa.Table) -> Rows:
    return sorted(rows.to_pylist(), key=repr)


def good(tables: SeveralTables, name: str) -> pa.Table:
    """The rows that keep the contract, by hand."""
    rows = DeltaTable(tables.lake.warehouse.source(name)).to_pyarrow_table()
    good = []
    for row in rows.to_pylist():
        amount = row.get("amount", row.get("paid_amount"))
        good.append(amount is None or 0 <= amount <= (99 if name == "orders" else float("inf")))
    return rows.filter(pa.array(good, pa.bool_()))


def expected(tables: SeveralTables, run: Run) -> Rows:
    """Of the run's windows, what the engine says."""
    events = {name: good(tables, name) for name in ("orders", "payments", "support")}
    rows = run_plan(run.plan, events, run.windows)
    return in_order(rows.cast(run.plan.result_schema))


def quarantined(tables: SeveralTables, name: str, run_id: str) -> int:
    """How many rows of a table a run has set apart."""
    rows = DeltaTable(tables.lake.warehouse.quarantine(name)).to_pyarrow_table()
    return rows["run_id"].to_pylist().count(run_id)


def first(tables: SeveralTables) -> None:
    tables.deliver("orders", [order(1, 1), order(2, 2, "b"), order(3, 3, "a", 500), order(4, 30)])
    tables.deliver("payments", [payment("p1", 2), payment("p2", 4, "b"), payment("p3", 31)])
    tables.deliver("support", [ticket("t1", 5), ticket("t2", 6, "b"), ticket("t3", 6, "b", "closed"), ticket("t4", 32)])


def test_a_run(tables: SeveralTables) -> None:
    """Each table is pinned once and judged by its own contract; rows, records and notes name the versions of all."""
    first(tables)
    checked, *_, last = all_steps(tables.run(0, 2, "first"))
    assert sorted(row["o"] for row in published(tables)) == [["orders:1"], ["orders:2"], ["orders:4"]]
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    assert (checked.source, checked.source_version) == ("orders,payments,support", None)
    assert (checked.rows_in, checked.rows_quarantined, checked.rows_out) == (11, 1, 10)
    assert checked.sources is not None
    assert {name: (one["version"], one["rows_in"], one["quarantined"]) for name, one in checked.sources.items()} == {
        "orders": (1, 4, 1),
        "payments": (1, 3, 0),
        "support": (1, 4, 0),
    }
    rows = DeltaTable(tables.lake.warehouse.results("unpaid")).to_pyarrow_table()
    assert set(rows["source_versions"].to_pylist()) == {"orders@1 payments@1 support@1"}
    assert set(rows["source_version"].to_pylist()) == {None}
    note = dict(last.note or {})
    assert {name: version for name, (version, _) in note["sources"].items()} == dict.fromkeys(note["sources"], 1)
    assert sorted(note["contracts"]) == ["orders", "payments", "support"]
    assert (note["source_version"], note["source_table"]) == (None, None)
    assert quarantined(tables, "orders", "first") == 1
    assert not Path(tables.lake.warehouse.quarantine("payments")).exists()


def on_spark(spark: SparkSession, root: Path, **keys: Any) -> SeveralTables:
    """Every step on Spark."""
    warehouse = Warehouse(ON_SPARK.warehouse_of(Project(root, root / "state")))
    return several_tables(root, Lake.of(spark, warehouse), ON_SPARK, **keys)


@pytest.mark.long
@pytest.mark.spark
def test_steps_in_processes_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """Each goes on from the record of the one before, until a table is another one. On Spark."""
    tables = on_spark(spark, tmp_path)
    first(tables)
    for step in STEPS[:3]:
        step(tables.run(0, 2, "first"))
    tables.drop("payments")
    tables.make("payments")
    with pytest.raises(StepOrderError, match="'payments' was of table"):
        publish(tables.run(0, 2, "first"))


def test_a_pin_holds(tables: SeveralTables) -> None:
    """What comes between the steps is not read."""
    first(tables)
    run = tables.run(0, 2, "first")
    check_source(run)
    tables.deliver("payments", [payment("p9", 1.5)])
    for step in STEPS[1:]:
        step(run)
    assert sorted(row["p"] for row in published(tables)) == [["payments:p1"], ["payments:p2"], ["payments:p3"]]
    revise(tables.run(0, 2, "revision"))
    assert ["payments:p9"] in [row["p"] for row in published(tables)]
    assert published(tables) == expected(tables, run)


def test_a_table_of_one(tmp_path: Path) -> None:
    """With `sources` of one table both forms are noted, and its own version is shown."""
    one = {"Order": "orders"}
    tables = project_of(tmp_path, sources=one, pattern="SEQ(Order o, Order q)", **{"return": {"total": "q.amount"}})
    tables.deliver("orders", [order(1, 1), order(2, 2)])
    *_, last = all_steps(tables.run(0, 2, "first"))
    rows = DeltaTable(tables.lake.warehouse.results("unpaid")).to_pyarrow_table()
    assert (rows["source_version"].to_pylist(), rows["source_versions"].to_pylist()) == ([1], ["orders@1"])
    assert rows["o"].to_pylist() == [["orders:1"]]
    note = dict(last.note or {})
    assert (note["source_version"], note["sources"]["orders"]) == (1, [1, note["source_table"]])
    tables.deliver("orders", [order(3, 3)])
    revise(tables.run(0, 2, "revision"))
    assert [row["q"] for row in published(tables)] == [["orders:2"], ["orders:3"]]


@pytest.mark.spark
def test_a_missing_table(spark: SparkSession, tmp_path: Path) -> None:
    tables = on_spark(spark, tmp_path)
    tables.drop("support")
    with pytest.raises(TrendlakeError, match="support") as missing:
        check_source(tables.run(0, 2, "first"))
    assert missing.value.code == "SOURCE_MISSING"


def test_empty_tables(tables: SeveralTables) -> None:
    """A run of no rows."""
    assert [record.rows_out for record in all_steps(tables.run(0, 2, "first"))] == [0, 0, 0, 0]
    assert published(tables) == []


def test_tolerance_names_each_table(tables: SeveralTables) -> None:
    """All are judged, and their bad rows are in quarantine, before the run fails."""
    for name in ("orders", "payments"):
        tables.edit_contract(name, tolerance=0)
    tables.deliver("orders", [order(1, 1, "a", 500)])
    tables.deliver("payments", [payment("p1", 2, "a", -1.0)])
    with pytest.raises(ToleranceError, match="of 'orders' break its contract") as error:
        check_source(tables.run(0, 2, "first"))
    assert "of 'payments' break its contract" in error.value.message
    assert "quarantine show orders" in str(error.value.hint)
    assert "quarantine show payments" in str(error.value.hint)
    for name in ("orders", "payments"):
        assert quarantined(tables, name, "first") == 1


def test_a_revision_of_each_table(tables: SeveralTables) -> None:
    """One commit for what has come in several tables; then nothing is new."""
    first(tables)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("orders", [order(5, 1.5), order(6, 9, "z")])
    tables.deliver("payments", [payment("p4", 4.5)])
    record = revise(tables.run(0, 2, "revision"))
    assert record.road == "here"
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    assert (record.rows_in, record.rows_inserted) == (3, 1)
    assert record.sources is not None
    assert {name: one["version"] for name, one in record.sources.items()} == {"orders": 2, "payments": 2, "support": 1}
    again = revise(tables.run(0, 2, "nothing"))
    assert again.checks[-1].observed == "nothing new since orders@2 payments@2 support@1"


def test_versions_of_several_tables_are_printed(tables: SeveralTables) -> None:
    """`diff` says which tables have other versions."""
    first(tables)
    run = tables.run(0, 2, "first")
    all_steps(run)
    path = tables.lake.warehouse.results("unpaid")
    before = DeltaTable(path).version()
    tables.deliver("orders", [order(1, 1, "a", 11)])
    tables.deliver("payments", [payment("p1", 2, "a", 12.0)])
    revise(tables.run(0, 2, "revision"))
    after = DeltaTable(path).version()
    with console.capture() as printed:
        print_diff(tables.lake, path, run.plan, (str(before), str(after)), 10)
        print_diff(tables.lake, path, run.plan, (str(after), str(after)), 10)
    lines = printed.get().splitlines()
    assert "orders 1 -> 2, payments 1 -> 2, support 1 (same)" in lines
    assert "orders 2 (same), payments 2 (same), support 1 (same)" in lines
    assert f"version {after}, revision revision of orders@2 payments@2 support@1" in lines


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a", "a", "orders 11 -> 12, payments 7 (same)"),
        ("a", "b", "orders 11 -> 12, payments 7 -> 7 (another table)"),
        (None, "b", "orders 11 -> 12, payments 7 (same)"),
    ],
)
def test_versions_that_differ(before: str | None, after: str, words: str) -> None:
    old = Versions.of([TableAt("payments", 7, before), TableAt("orders", 11, "o")])
    new = Versions.of([TableAt("orders", 12, "o"), TableAt("payments", 7, after)])
    assert changed_versions(old, new) == words


def test_rows_that_no_type_names(tables: SeveralTables) -> None:
    """They touch nothing; the vector goes on all the same, and a quiet record says so."""
    first(tables)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("support", [ticket("t9", 5, "a", "closed")])
    record = revise(tables.run(0, 2, "revision"))
    assert (record.windows, record.rows_inserted, dict(record.note or {})["quiet"]) == (0, 0, True)
    assert shown(tables) == {"orders@1 payments@1 support@2"}


def shown(tables: SeveralTables) -> set[str]:
    run = tables.run(0, 2, "look")
    return {str(item.sources) for item in read_ledger(run.lake, run.name, run.plan, run.sources.name).segments}


def test_crosswise_runs(tables: SeveralTables) -> None:
    """Of two runs of which each is newer in one table the second is refused; its retry reads the newest of all."""
    first(tables)
    one, other = tables.run(0, 2, "one"), tables.run(0, 2, "other")
    check_source(one)
    tables.deliver("payments", [payment("p9", 1.5)])
    check_source(other)
    for step in STEPS[1:]:
        step(other)
    for step in STEPS[1:3]:
        step(one)
    with pytest.raises(StaleRunError, match="version 2 of 'payments'; this run read version 1"):
        publish(one)
    all_steps(tables.run(0, 2, "retry"))
    assert shown(tables) == {"orders@1 payments@2 support@1"}


def test_a_contract_that_is_edited(tables: SeveralTables) -> None:
    """Rows of its table are judged by both contracts, here; the results are those of a run. Of other edits the reason
    names the table, and all is computed again, on Spark."""
    first(tables)
    all_steps(tables.run(0, 2, "first"))
    file = tables.root / "data_contracts" / "orders.yaml"
    text = file.read_text()
    for number, most in enumerate((30, 9999, 99)):
        file.write_text(text.replace("maximum: 99", f"maximum: {most}"))
        revised = revise(tables.run(0, 2, f"revision {number}"))
        (check,) = [check for check in revised.checks if check.name == "revision"]
        assert (revised.road, check.data["judged_again"]) == ("here", 2)
        assert check.data["windows"] > 0 or most == 30  # a row of 500
        *_, again = all_steps(tables.run(0, 2, f"run {number}"))
        assert (again.rows_inserted, again.rows_updated, again.rows_deleted) == (0, 0, 0)
    shutil.rmtree(tables.run(0, 2, "revision").warehouse.contracts)
    file.write_text(text.replace("maximum: 99", "maximum: 9999"))
    with pytest.raises(RuntimeError, match="Java"):
        revise(tables.run(0, 2, "revision"))


@pytest.mark.parametrize("idle", [None, "1 hour"])
def test_the_least_watermark(tmp_path: Path, idle: str | None) -> None:
    """Windows are held back by the table that is behind, unless it may be idle."""
    support = {"source": "support", "type": "opened"} | ({} if idle is None else {"idle": idle})
    tables = project_of(tmp_path, consistency="strong", sources={**SOURCES, "Ticket": support})
    tables.deliver("orders", [order(1, 1), order(2, 60)])
    tables.deliver("payments", [payment("p1", 2), payment("p2", 60)])
    tables.deliver("support", [ticket("t1", 5)])
    checked, *_ = all_steps(tables.run(0, 2, "first"))
    (check,) = [check for check in checked.checks if check.name == "watermark"]
    hours = {name: (at - START) / HOUR for name, at in check.data["watermarks"].items()}
    assert hours == {"orders": 58.0, "payments": 58.0, "support": 3.0 if idle is None else 57.0}
    assert len(published(tables)) == (0 if idle is None else 1)


def test_an_empty_table_holds_all_windows(tmp_path: Path) -> None:
    tables = project_of(tmp_path, consistency="strong")
    tables.deliver("orders", [order(1, 1), order(2, 60)])
    checked, *_ = all_steps(tables.run(0, 2, "first"))
    (check,) = [check for check in checked.checks if check.name == "watermark"]
    assert "support no event" in check.observed
    assert shown(tables) == {"None"}


def test_selectors(tables: SeveralTables) -> None:
    """`source:` finds the readers of each table."""
    patterns = Patterns(tables.project)
    assert patterns.select(["source:payments"]) == patterns.select(["source:orders"]) == ["unpaid"]


RANDOM = 6


def rows_of(rng: random.Random, name: str, count: int) -> Rows:
    """Of few keys, times and customers, so that they meet; some are bad."""
    rows: Rows = []
    for _ in range(count):
        hours, customer = rng.randrange(96) / 2, rng.choice(["a", "b", None])
        if name == "orders":
            rows.append(order(rng.randrange(40), hours, customer, rng.choice([None, 3, 5, 7, 500])))
        elif name == "payments":
            rows.append(payment(f"p{rng.randrange(40)}", hours, customer, rng.choice([None, 3.0, 4.5, -1.0])))
        else:
            rows.append(ticket(f"t{rng.randrange(40)}", hours, customer, rng.choice(["opened", "closed"])))
    key = {"orders": "number", "payments": "ref", "support": "id"}[name]
    return list({row[key]: row for row in rows}.values())


@pytest.mark.long
@pytest.mark.random
@pytest.mark.parametrize("seed", range(RANDOM))
@pytest.mark.parametrize("keys", [PATTERN, TRENDS], ids=["matches", "trends"])
def test_random_histories(tmp_path: Path, seed: int, keys: Mapping[str, Any]) -> None:
    """After each revision the rows are those of a computation at the newest versions, and coverage says so."""
    rng = random.Random(seed)
    tables = project_of(tmp_path, **{**keys, "sources": dict(sorted(SOURCES.items(), reverse=bool(seed % 2)))})
    for name in ("orders", "payments", "support"):
        tables.deliver(name, rows_of(rng, name, 12))
    all_steps(tables.run(0, 2, "first"))
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    for number in range(3):
        for name in rng.sample(["orders", "payments", "support"], rng.randrange(1, 3)):
            tables.deliver(name, rows_of(rng, name, 3))
        assert revise(tables.run(0, 2, f"revision {number}")).road in ("here", None)
        run = tables.run(0, 2, "again")
        assert published(tables) == expected(tables, run)
        assert shown(tables) == {" ".join(f"{name}@{version(tables, name)}" for name in run.sources.names)}


def version(tables: SeveralTables, name: str) -> int:
    return DeltaTable(tables.lake.warehouse.source(name)).version()


ONE_TABLE = {"sources": None, "source": "orders", "pattern": "Order o", "return": {"n": "COUNT(*)"}, "where": []}


@pytest.mark.parametrize("keys", [TRENDS, {**TRENDS, **ONE_TABLE}], ids=["several", "one"])
def test_windows_apart_from_one_another(tmp_path: Path, keys: Mapping[str, Any]) -> None:
    """Changes in 90 of 180 windows, every second one, are computed in this process."""
    tables = project_of(tmp_path, **keys)
    tables.deliver("orders", [order(n, 12 * n + 1) for n in range(180)])
    tables.deliver("payments", [payment(f"p{n}", 12 * n + 3) for n in range(180)])
    run = tables.run(0, 90, "first")
    all_steps(run)
    before = published(tables)
    tables.deliver("orders", [order(1000 + n, 24 * n + 2, "a", n) for n in range(90)])
    record = revise(tables.run(0, 90, "revision"))
    assert (record.road, record.windows) == ("here", 90)
    assert published(tables) != before
    if run.sources.united:
        assert published(tables) == expected(tables, run)
    else:
        assert sum(row["n"] for row in published(tables)) == 270
    again = revise(tables.run(0, 90, "nothing"))
    assert "nothing new" in str(again.checks[-1].observed)


@pytest.mark.parametrize("place", ["here", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])])
def test_columns_that_a_contract_derives(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    """A pattern over several tables reads them as those of one table, in a run and in a revision."""
    keys = {**TRENDS, "where": ["[customer_id]"], "return": {"n": "COUNT(*)", "most": "MAX(o.twice)"}}
    tables = project_of(tmp_path) if place == "here" else on_spark(request.getfixturevalue("spark"), tmp_path)
    contract = tables.root / "data_contracts" / "orders.yaml"
    derived = "customProperties: [{property: derive, value: {twice: amount * 2}}, "
    contract.write_text(contract.read_text().replace("customProperties: [", derived, 1))
    tables.edit(**keys)
    tables.deliver("orders", [order(1, 1), order(2, 2, "b", 4), order(3, 3)])
    tables.deliver("payments", [payment("p1", 2), payment("p2", 4, "b"), payment("p3", 5)])
    records = all_steps(tables.run(0, 2, "first"))
    assert records[1].road == place
    assert {row["most"] for row in published(tables)} == {8, 20}
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    tables.deliver("orders", [order(4, 3.5, "b", 7)])
    assert revise(tables.run(0, 2, "revision")).road == place
    assert {row["most"] for row in published(tables)} == {14, 20}
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("keys", [PATTERN, TRENDS], ids=["matches", "trends"])
def test_on_spark(spark: SparkSession, tmp_path: Path, keys: Mapping[str, Any]) -> None:
    """The workers unite what each of them reads; a revision follows the feed of each table, or computes all anew."""
    rng = random.Random(7)
    tables = on_spark(spark, tmp_path, **keys)
    for name in ("orders", "payments", "support"):
        tables.deliver(name, rows_of(rng, name, 12))
    checked, computed, *_ = all_steps(tables.run(0, 2, "first"))
    assert (checked.road, computed.road) == ("spark", "spark")
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    for name in ("orders", "payments"):
        tables.deliver(name, rows_of(rng, name, 3))
    record = revise(tables.run(0, 2, "revision"))
    assert record.road == "spark"
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    assert shown(tables) == {"orders@2 payments@2 support@1"}
    tables.drop("payments")
    tables.make("payments")
    tables.deliver("payments", rows_of(rng, "payments", 9))
    record = revise(tables.run(0, 2, "made anew"))
    (check,) = [check for check in record.checks if check.name == "revision"]
    assert "the table of 'payments' was made anew" in check.observed
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    assert shown(tables) == {"orders@2 payments@1 support@1"}
