"""Runs with many result rows: the files that hold them staged become files of the results table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import all_steps, expected, project_of, published
from tests.support.tables_lake import ON_SPARK, SeveralTables, order, payment
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.results.staging import staged_files
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

MATCHES: Mapping[str, Any] = {
    "pattern": "SEQ(Order o+, Payment p)",
    "return": {"total": "SUM(o.amount)", "mean": "AVG(o.amount)", "last": "p.amount"},
    "within": "12 hours",
}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows are too many to be held."""
    monkeypatch.setattr(limits, "CHECKED", 2)
    monkeypatch.setattr(limits, "PUBLISHED", 2)


def deliver(tables: SeveralTables, day: int) -> None:
    hours = 24 * day
    customers = [None, "a", "b"]
    tables.deliver(
        "orders", [order(100 * day + n, hours + n, customers[n % 3], [None, n, 3 * n][n % 3]) for n in range(1, 12)]
    )
    tables.deliver("payments", [payment(f"{day} {n}", hours + n + 0.5, customers[n % 3]) for n in range(1, 12)])


def test_the_staged_files_are_published(tmp_path: Path) -> None:
    """Day after day, as their windows have no rows before; the same again changes nothing, but reads all rows."""
    tables = project_of(tmp_path, **MATCHES)
    path = Path(tables.lake.warehouse.results("unpaid"))
    for day in (0, 1):
        deliver(tables, day)
        run = tables.run(day, day + 1, f"day {day}")
        *_, checked, last = all_steps(run)
        assert (checked.road, last.road) == ("here", "here")
        assert (last.rows_inserted, last.rows_updated, last.rows_deleted) == (last.rows_in, 0, 0)
        assert (last.rows_in or 0) > 2
        newest, *_ = recent_commits(tables.lake, str(path))
        assert newest.changed == (last.rows_in, 0, 0)
        files = staged_files(run, int(last.staged_version or 0))
        assert isinstance(files, list)
        inodes = {file.stat().st_ino for file in path.glob("*.parquet")}
        assert inodes >= {file.stat().st_ino for file in files}
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
    with pytest.raises(RuntimeError, match="Java"):
        all_steps(tables.run(0, 1, "again"))


def test_the_log_says_what_the_files_hold(tmp_path: Path) -> None:
    tables = project_of(tmp_path, **MATCHES)
    deliver(tables, 0)
    all_steps(tables.run(0, 1, "first"))
    path = Path(tables.lake.warehouse.results("unpaid"))
    table = DeltaTable(path)
    log = path / "_delta_log" / f"{table.version():020d}.json"
    added = [json.loads(line)["add"] for line in log.read_text().splitlines() if "add" in json.loads(line)]
    rows = table.to_pyarrow_table()
    facts = [json.loads(one["stats"]) for one in added]
    assert sum(one["numRecords"] for one in facts) == rows.num_rows
    nulls = {name: sum(one["nullCount"][name] for one in facts) for name in facts[0]["nullCount"]}
    assert nulls == {name: rows[name].null_count for name in nulls}
    assert {"start", "end", "total", "match_id"} <= nulls.keys()
    assert not {"mean", "last"} & nulls.keys()  # whose bounds would lack NaN
    first, last = pc.min_max(rows["start"]).as_py().values()
    assert min(one["minValues"]["start"] for one in facts) == first.isoformat(timespec="milliseconds")[:23] + "Z"
    assert max(one["maxValues"]["start"] for one in facts) == last.isoformat(timespec="milliseconds")[:23] + "Z"
    assert [min(one["minValues"]["match_id"] for one in facts)] == [min(rows["match_id"].to_pylist())]
    feed = pa.table(table.load_cdf(starting_version=table.version()).read_all())
    assert (feed.num_rows, set(feed["_change_type"].to_pylist())) == (rows.num_rows, {"insert"})


def test_files_that_cannot_be_linked_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(write.os, "link", refuse)
    tables = project_of(tmp_path, **MATCHES)
    deliver(tables, 0)
    all_steps(tables.run(0, 1, "first"))
    assert published(tables) == expected(tables, tables.run(0, 1, "again"))


def test_a_publication_that_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one that ended between its files and its commit: they are no part of the table."""
    tables = project_of(tmp_path, **MATCHES)
    deliver(tables, 0)
    run = tables.run(0, 1, "first")
    with monkeypatch.context() as patched:

        def end(*_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(write, "_commit", end)
        with pytest.raises(KeyboardInterrupt):
            all_steps(run)
    publish(run)
    path = Path(tables.lake.warehouse.results("unpaid"))
    assert len(list(path.glob("*.parquet"))) == 2 * len(DeltaTable(path).file_uris())
    assert published(tables) == expected(tables, run)


def test_rows_that_break_the_results_contract(tmp_path: Path) -> None:
    """Are found file by file, too, and nothing is published."""
    tables = project_of(tmp_path, **MATCHES)
    contract = tables.root / "data_contracts" / "results_matches.yaml"
    contract.write_text(contract.read_text().replace("implementation: start <= end", "implementation: start > end"))
    deliver(tables, 0)
    with pytest.raises(ChecksFailedError, match="in_order"):
        all_steps(tables.run(0, 1, "first"))
    assert published(tables) == []


@pytest.mark.long
@pytest.mark.spark
def test_spark_reads_and_revises_them(spark: SparkSession, tmp_path: Path) -> None:
    """What this process has put in place is a table like any other: read by Spark, by time too, and revised by it."""
    tables = project_of(tmp_path, **MATCHES)
    for day in (0, 1):
        deliver(tables, day)
        all_steps(tables.run(day, day + 1, f"day {day}"))
    path = tables.lake.warehouse.results("unpaid")
    frame = spark.read.format("delta").load(path)
    rows = DeltaTable(path).to_pyarrow_table()
    assert frame.count() == rows.num_rows
    late = frame.where("start >= timestamp'2026-01-02T00:00:00Z'").count()
    assert 0 < late == sum(start.day == 2 for start in rows["start"].to_pylist())
    assert sorted(map(str, frame.toArrow().to_pylist())) == sorted(map(str, rows.to_pylist()))
    by_spark = SeveralTables(tables.root, Lake.of(spark, tables.lake.warehouse), ON_SPARK)
    by_spark.deliver("orders", [order(999, 3.2, "a", 50)])
    revise(by_spark.run(0, 2, "revision"))
    assert published(tables) == expected(tables, tables.run(0, 2, "again"))
