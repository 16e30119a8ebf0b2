"""`trendlake try` of patterns with `sources` and `lookup`: of tables, of files and of both it shows what a run
publishes."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import TRENDS, all_steps, on_spark, project_of, published, rows_of
from tests.pipelines.steps.test_lookups import NOW, ONE, OVER_TIME, SEVERAL, deliver
from tests.support.tables_lake import DAY, PATTERN, SOURCES, START, SeveralTables, customer, order, payment
from trendlake.cep_core.errors import NotSupportedError, TrendlakeError
from trendlake.pipelines.authoring.trial import Sample, sample
from trendlake.pipelines.authoring.trial_file import files_of
from trendlake.pipelines.authoring.trial_table import HeldTable, TableBySpark
from trendlake.pipelines.authoring.trial_tables import TrialTables
from trendlake.pipelines.errors import ProjectError, SampleTooLargeError, SourceFileError, SourceMissingError
from trendlake.pipelines.runs.consistency import oldest_good
from trendlake.pipelines.runs.run import prepare

DAYS = (START, START + 2 * DAY)
WAITS: Mapping[str, Any] = {
    "kind": "automaton",
    "sources": {**SOURCES, "Ticket": {"source": "support", "type": "opened", "idle": "3 hours"}},
    "pattern": None,
    "where": None,
    "return": None,
    "register": {"n": {"type": "int", "init": 0}},
    "start": "p",
    "final": ["r"],
    "arcs": [
        {"from": "p", "to": "q", "when": "e.customer_id = 'a'", "set": {"n": "n + 1"}},
        {"from": "q", "to": "r", "at": "window_end"},
    ],
    "partition_by": ["customer_id"],
    "within": "1 hour",
}
BY_SEGMENT: Mapping[str, Any] = {
    **TRENDS,
    "lookup": {"customer": {"table": "customers", "key": "customer_id", "columns": ["segment"], "of": ["Order"]}},
    "return": {"n": "COUNT(*)", "first": "MIN(o.amount)"},
    "where": ["[customer_id]", "o.segment = 'b2b'"],
}


def tried(tables: SeveralTables, files: Mapping[str, Sequence[Path]], most: int = 1000, only: bool = True) -> Sample:
    """Of the two days that the tests run, or (not `only`) of the newest windows."""
    run = tables.run(0, 2, "try")
    return sample(run.plan, TrialTables.of(run, files), most, DAYS if only else None)


def rows(trial: Sample) -> list[dict[str, Any]]:
    return sorted(trial.rows.to_pylist(), key=repr)


def saved(tables: SeveralTables, folder: Path, *names: str) -> dict[str, tuple[Path, ...]]:
    """Two files each with the rows of tables."""
    folder.mkdir(exist_ok=True)
    files: dict[str, tuple[Path, ...]] = {}
    for name in names:
        rows = DeltaTable(tables.lake.warehouse.source(name)).to_pyarrow_table()
        files[name] = (folder / f"{name}.parquet", folder / f"{name}_more.parquet")
        for file, part in zip(files[name], (rows.slice(0, 1), rows.slice(1)), strict=True):
            pq.write_table(part, file)
    return files


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("keys", [PATTERN, TRENDS, WAITS, BY_SEGMENT], ids=["matches", "trends", "waits", "lookup"])
def test_it_shows_what_a_run_publishes(tmp_path: Path, keys: Mapping[str, Any], seed: int) -> None:
    """Of tables, of files, and of both: the rows are the same, and so are those that broke a contract."""
    rng = random.Random(seed)
    tables = project_of(tmp_path, **keys)
    names = ("orders", "payments", "support")
    for name in names:
        tables.deliver(name, rows_of(rng, name, 30))
    if "lookup" in keys:
        tables.deliver("customers", [customer("1", "a", "b2b"), customer("2", "b", "x" * 10)])
        names = (*names, "customers")
    checked, *_ = all_steps(tables.run(0, 2, "first"))
    files = saved(tables, tmp_path / "files", *names)
    of_tables, of_files = tried(tables, {}), tried(tables, files)
    assert rows(of_tables) == rows(of_files) == rows(tried(tables, {"payments": files["payments"]}))
    assert rows(of_tables) == published(tables)
    assert published(tables)
    assert checked.sources is not None
    broken = {name: one["quarantined"] for name, one in checked.sources.items()}
    for trial in (of_tables, of_files):
        assert {table.name: sum(table.broken.values()) for table in trial.tables} == broken
    assert all(table.where.endswith((".parquet", "version 1")) for table in (*of_tables.tables, *of_files.tables))


@pytest.mark.parametrize(("keys", "customers"), [(ONE, OVER_TIME), (SEVERAL, NOW)], ids=["one", "several"])
def test_lookups(tmp_path: Path, keys: Mapping[str, Any], customers: Any) -> None:
    """Of a pattern with `source` too; events without a row are counted as by a run."""
    tables = project_of(tmp_path, **keys)
    deliver(tables, *customers, customer("4", "c", "x" * 10))
    computed = all_steps(tables.run(0, 2, "first"))[1]
    files = saved(tables, tmp_path / "files", "orders", "customers")
    for trial in (tried(tables, {}), tried(tables, files), tried(tables, {"orders": files["orders"]})):
        assert rows(trial) == published(tables)
        assert [check.data for check in trial.lookups] == [
            check.data for check in computed.checks if check.name == "lookup_missing"
        ]
        (reference,) = [table for table in trial.tables if table.reference]
        assert (reference.name, reference.rows, sum(reference.broken.values())) == ("customers", len(customers) + 1, 1)


def test_the_newest_windows_of_all_tables(tmp_path: Path) -> None:
    """As many as hold no more events, of all tables together."""
    tables = project_of(tmp_path, **{**PATTERN, "within": "1 hour"})
    tables.deliver("orders", [order(n, n) for n in range(10)])
    tables.deliver("payments", [payment(f"p{n}", n) for n in range(10)])
    whole = tried(tables, {}, only=False)
    assert (whole.there, whole.taken, whole.good) == (20, 20, 20)
    for most in (4, 9, 13):
        trial = tried(tables, {}, most, only=False)
        assert 0 < trial.taken <= most
        assert trial.windows.stop == whole.windows.stop
        assert trial.windows.start > whole.windows.start
    with pytest.raises(SampleTooLargeError, match="the newest window alone holds"):
        tried(tables, {}, 1, only=False)
    with pytest.raises(SampleTooLargeError, match="the windows of the interval hold 20 events, more than 5"):
        tried(tables, {}, 5)


def test_events_that_last(tmp_path: Path) -> None:
    """Of two tables, whose beginnings have different names."""
    sources = {
        "Order": {"source": "orders", "columns": {"begin": "at"}},
        "Payment": {"source": "payments", "columns": {"begin": "paid", "customer_id": "cust"}},
    }
    keys = {"kind": "trends", "sources": sources, "pattern": "Order o", "interval_start": "begin", "where": None}
    tables = project_of(tmp_path, **keys, **{"return": {"n": "COUNT(*)"}, "within": "2 hours"})
    tables.deliver("orders", [order(n, n) for n in range(6)])
    tables.deliver("payments", [payment("p", 3)])
    checked, *_ = all_steps(tables.run(0, 2, "first"))
    assert rows(tried(tables, {})) == published(tables)
    assert rows(tried(tables, saved(tables, tmp_path / "files", "orders"))) == published(tables)
    assert checked.basis is not None
    assert oldest_good(tables.run(0, 2, "again"), checked.basis.read) == START


@pytest.mark.repeats
@pytest.mark.spark
@pytest.mark.parametrize("keys", [PATTERN, BY_SEGMENT], ids=["matches", "lookup"])
def test_on_spark(spark: SparkSession, tmp_path: Path, keys: Mapping[str, Any]) -> None:
    """Spark gives of each table what this process does."""
    rng = random.Random(3)
    tables = on_spark(spark, tmp_path, **keys)
    for name in ("orders", "payments", "support"):
        tables.deliver(name, rows_of(rng, name, 30))
    if "lookup" in keys:
        tables.deliver("customers", [customer("1", "a", "b2b"), customer("2", "b", "x" * 10)])
    run = tables.run(0, 2, "try")
    held, of_spark = TrialTables.of(run, {}), {}
    for key, table in held.tables.items():
        assert isinstance(table, HeldTable)
        columns = [item.name for item in run.sources.table(key).contract.columns]
        theirs = of_spark[key] = TableBySpark(table.part, table.version, columns)
        assert sorted(theirs.newest(7)) == sorted(table.newest(7))
        assert theirs.extent() == table.extent()
        mine, other = table.take(None), theirs.take(None)
        assert (mine.rows, mine.broken) == (other.rows, other.broken)
        assert sorted(mine.good.to_pylist(), key=repr) == sorted(other.good.to_pylist(), key=repr)
    mine, other = (sample(run.plan, trial, 1000, DAYS) for trial in (held, TrialTables(run, of_spark)))
    assert rows(mine) == rows(other) != []
    empty = pa.table({})
    assert replace(mine, rows=empty) == replace(other, rows=empty)


def test_rows_that_hold_at_one_moment(tmp_path: Path) -> None:
    """End a trial as they end a run."""
    tables = project_of(tmp_path, **ONE)
    deliver(tables, *OVER_TIME, customer("8", "z", "b2b", 0, 2), customer("9", "z", "b2c", 1, 3))
    with pytest.raises(TrendlakeError, match="customers version 1: key z has 2 rows that hold at") as repeated:
        tried(tables, {})
    assert repeated.value.code == "LOOKUP_REPEATED"
    with pytest.raises(TrendlakeError, match="customers: key z has 2 rows"):
        tried(tables, saved(tables, tmp_path / "files", "customers"))


def test_more_events_without_a_row_than_a_pattern_allows(tmp_path: Path) -> None:
    """Are shown, as the check that ends a run."""
    lookup = {"table": "customers", "key": "customer_id", "columns": ["segment"], "missing": {"most": 0.3}}
    tables = project_of(tmp_path, **{**ONE, "lookup": {"customer": lookup}})
    deliver(tables, *NOW)
    (check,) = tried(tables, {}).lookups
    assert check.failed
    assert check.observed == "customer: 2 of 6 events have no row: NULL (1), c (1)"


def test_a_table_that_is_looked_up_in_itself(tmp_path: Path) -> None:
    """A file of it is read for both."""
    lookup = {"table": "orders", "key": "number", "columns": [{"again": "amount"}]}
    keys = {**ONE, "lookup": {"same": lookup}, "where": None, "group_by": ["again"], "return": {"n": "COUNT(*)"}}
    tables = project_of(tmp_path, **keys)
    tables.deliver("orders", [order(n, n, amount=n % 2) for n in range(5)])
    all_steps(tables.run(0, 2, "first"))
    for files in ({}, saved(tables, tmp_path / "files", "orders")):
        trial = tried(tables, files)
        assert rows(trial) == published(tables) != []
        assert [table.name for table in trial.tables] == ["orders"]


def test_tables_without_rows(tmp_path: Path) -> None:
    """An empty one is no error, a missing one is: each is named, with its command."""
    tables = project_of(tmp_path)
    assert rows(tried(tables, {}, only=False)) == []
    tables.deliver("orders", [order(1, 1)])
    assert tried(tables, {}).there == 1
    for name in ("payments", "support"):
        shutil.rmtree(tables.lake.warehouse.source(name))
    with pytest.raises(SourceMissingError, match=r"'payments' is not in the warehouse.*'support' is not") as missing:
        tried(tables, {})
    hint = str(missing.value.hint)
    assert "run `trendlake ingest payments` and run `trendlake ingest support`; or try the pattern on files" in hint
    assert hint.endswith("--table payments=FILE --table support=FILE")
    assert saved(tables, tmp_path / "files", "orders")
    with pytest.raises(SourceFileError, match=r"payments: .*nothing.csv cannot be read"):
        tried(tables, {name: [tmp_path / "nothing.csv"] for name in ("payments", "support")})


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        (["o.csv"], "--table o.csv: expected NAME=FILE", "such as --table orders=FILE"),
        (["orders="], "expected NAME=FILE", ""),
        (["order=o.csv"], "unpaid does not read 'order'", "did you mean 'orders'?"),
        (["x=o.csv"], "unpaid does not read 'x'", "orders, results/falling"),
        (["orders=a.csv", "orders=a.csv"], "the file is given twice", "leave out one of them"),
    ],
)
def test_mistakes_of_the_option(typed: list[str], message: str, hint: str) -> None:
    with pytest.raises(ProjectError) as caught:
        files_of(typed, ["orders", "results/falling"], "unpaid")
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_files_of_results(tmp_path: Path) -> None:
    """Have names with a slash, and paths with a sign."""
    both = files_of(["results/a=x=y.csv", "results/a=z.csv"], ["results/a"], "b")
    assert both == {"results/a": (Path("x=y.csv"), Path("z.csv"))}


@pytest.mark.repeats
@pytest.mark.spark
@pytest.mark.parametrize("sources", ["sources: {unpaid: results/unpaid, Order: orders}", "source: results/unpaid"])
def test_results_of_another_pattern(spark: SparkSession, tmp_path: Path, sources: str) -> None:
    """Whose ids are made of their key: Spark makes them. A file has none."""
    tables = on_spark(spark, tmp_path, **TRENDS)
    rng = random.Random(5)
    for name in ("orders", "payments", "support"):
        tables.deliver(name, rows_of(rng, name, 40))
    all_steps(tables.run(0, 2, "first"))
    last = "Order o" if "orders" in sources else "unpaid v"
    text = f"name: above\nkind: matches\n{sources}\npattern: SEQ(unpaid u, {last})\nwithin: 1 day\n"
    (tables.root / "conf" / "patterns" / "above.yaml").write_text(text)
    run = prepare(tables.lake, tables.project, tables.profile, "above", "above", *DAYS)
    trial = sample(run.plan, TrialTables.of(run, {}), 1000, DAYS)
    all_steps(run)
    theirs = DeltaTable(tables.lake.warehouse.results("above")).to_pyarrow_table()
    assert rows(trial) == sorted(theirs.select(run.plan.result_schema.names).to_pylist(), key=repr) != []
    with pytest.raises(NotSupportedError, match="a file has no ids of 'results/unpaid'"):
        TrialTables.of(run, {"results/unpaid": tmp_path / "r.csv"})


def test_counts_of_a_held_table(tmp_path: Path) -> None:
    """By the first rule that each row breaks."""
    tables = project_of(tmp_path)
    tables.deliver("orders", [order(1, 1, amount=500), order(2, 2), order(3, 3, amount=-1)])
    (orders, *_) = tried(tables, {}).tables
    assert Counter(orders.broken) == {"amount_range": 2}
