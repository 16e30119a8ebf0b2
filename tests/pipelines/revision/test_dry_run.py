"""`revise --dry-run`: it says what the revision then does, and writes nothing at all."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import TRENDS, all_steps, on_spark, project_of, published, rows_of
from tests.pipelines.steps.test_lookups import NOW, ONE, OVER_TIME, SEVERAL, VALID, deliver, maker
from tests.support.tables_lake import ON_SPARK, SeveralTables, customer, order, payment
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import StepOrderError, TooMuchError
from trendlake.pipelines.results.publication import DELETE, INSERT, UPDATE
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.dry_run import DryRun, dry_run
from trendlake.pipelines.steps.revise import Shared, revise

Files = dict[str, tuple[int, int]]


@pytest.fixture(params=["here", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.repeats])])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return maker(request, tmp_path)


def files_of(tables: SeveralTables) -> Files:
    """Every file of the project, with its size and time: tables, quarantines, the run record, staging."""
    states = {str(path): path.stat() for path in tables.root.rglob("*") if path.is_file()}
    return {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def looked(tables: SeveralTables, days: float = 2) -> DryRun:
    """A dry run, after which each file is as it was."""
    before, run = files_of(tables), tables.run(0, days, "dry")
    dry = dry_run(run, Shared([run]))
    assert files_of(tables) == before
    return dry


def done(tables: SeveralTables, name: str, dry: DryRun) -> Record:
    """The revision does what the dry run has said."""
    record = revise(tables.run(0, 2, name))
    assert (record.windows, record.road) == (dry.count, dry.record.road)
    if dry.counts is not None:
        counts = {INSERT: record.rows_inserted, UPDATE: record.rows_updated, DELETE: record.rows_deleted}
        assert counts == dry.counts
    if dry.windows:
        assert (record.interval_from, record.interval_to) == dry.interval
    assert dry.record.checks == record.checks[: len(dry.record.checks)]
    return record


def of_table(dry: DryRun, name: str) -> tuple[Any, ...]:
    (table,) = [table for table in dry.tables if table.name == name]
    return table.shown, table.newest, table.rows, table.keys, table.broken


def test_changed_events_and_rows(place: Any) -> None:
    """Each table with its versions, changes and broken rows; on both roads."""
    tables = place(**ONE)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("orders", [order(1, 1, "b", 50), order(30, 30, "a", 60), order(31, 31, "a", 500)])
    tables.deliver(
        "customers", [customer("2", "a", "new", 5), customer("9", "zz", "b2b"), customer("8", "y", "x" * 20)]
    )
    dry = looked(tables)
    assert of_table(dry, "orders") == (1, 2, 4, None, 1)
    assert of_table(dry, "customers") == (1, 2, 3, 2, 1)
    assert (dry.looked_up, dry.by_lookups) == (2, 2)
    assert (dry.reason, dry.refused, dry.settled) == (None, None, True)
    assert dry.last is not None
    assert (dry.last.run_id, dry.last.windows) == ("first", 4)
    assert (dry.counts is None) == (dry.record.road == "spark")
    record = done(tables, "second", dry)
    assert record.rows_quarantined == 2
    nothing = looked(tables)
    assert (nothing.count, nothing.interval, nothing.record.road, nothing.counts) == (0, None, None, None)
    assert of_table(nothing, "customers") == (2, 2, None, None, None)


def test_a_reason_to_compute_all(place: Any) -> None:
    """Is named; what has changed is not followed then."""
    tables = place(**SEVERAL)
    deliver(tables, *NOW)
    all_steps(tables.run(0, 2, "first"))
    tables.edit_contract("customers", tolerance=0.5)
    file = tables.project.contract_path("customers")
    file.write_text(file.read_text().replace("maxLength: 9", "maxLength: 8"))
    dry = looked(tables)
    assert dry.reason is not None
    assert dry.reason.startswith("the contract of 'customers' has changed: ")
    assert dry.reason.endswith("of the reference table 'customers'")
    assert dry.count == dry.published > 1
    assert of_table(dry, "customers") == (1, 1, None, None, None)
    assert dry.record.road == "spark"
    if tables.profile is ON_SPARK:
        done(tables, "second", dry)


def test_a_revision_that_is_refused(place: Any) -> None:
    """By `most_windows`, or by the tolerance of a contract: the dry run shows all the same."""
    tables = place(**{**ONE, "lookup": {"customer": {**VALID, "most_windows": 1}}})
    deliver(tables, *OVER_TIME)
    tables.deliver("orders", [order(20, 30, "a")])
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("customers", [customer("2", "a", "new", 5)])
    dry = looked(tables)
    assert isinstance(dry.refused, TooMuchError)
    assert (dry.count, dry.by_lookups, dry.looked_up) == (2, 2, 2)
    before = files_of(tables)
    with pytest.raises(TooMuchError) as refused:
        revise(tables.run(0, 2, "second"))
    assert str(refused.value) == str(dry.refused)
    written = {path for path, state in files_of(tables).items() if before.get(path) != state}
    assert all("/trendlake_runs/" in path for path in written)
    run = replace(tables.run(0, 2, "dry"), unlimited=True)
    assert dry_run(run, Shared([run])).refused is None


def test_too_many_bad_rows(place: Any) -> None:
    tables = place(**ONE)
    tables.edit_contract("orders", tolerance=0.3)
    tables.edit_contract("customers", tolerance=0.3)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("customers", [customer(f"{n}", "b", "x" * 20) for n in range(50, 56)])
    tables.deliver("orders", [order(31, 3, "a", 61), *(order(n, 4, "a", 500) for n in range(40, 50))])
    dry = looked(tables)
    assert dry.refused is not None
    assert all(name in dry.refused.message for name in ("orders", "customers"))
    with pytest.raises(TrendlakeError) as refused:
        revise(tables.run(0, 2, "second"))
    assert (refused.value.code, str(refused.value)) == ("TOLERANCE", str(dry.refused))


def test_nothing_is_published(tmp_path: Path) -> None:
    tables = project_of(tmp_path)
    tables.deliver("orders", [order(1, 1)])
    with pytest.raises(StepOrderError, match="has published nothing that could be revised"):
        looked(tables)


@pytest.mark.repeats
@pytest.mark.spark
def test_windows_that_show_several_versions(spark: SparkSession, tmp_path: Path) -> None:
    """The oldest is named."""
    tables = on_spark(spark, tmp_path, **TRENDS)
    tables.deliver("orders", [order(1, 1, amount=3), order(2, 30, amount=4)])
    tables.deliver("payments", [payment("p1", 3), payment("p2", 32)])
    all_steps(tables.run(0, 1, "first"))
    tables.deliver("payments", [payment("p3", 4)])
    all_steps(tables.run(1, 2, "second"))
    dry = looked(tables)
    assert not dry.settled
    assert of_table(dry, "payments")[:2] == (1, 2)
    done(tables, "third", dry)


@pytest.mark.long
@pytest.mark.random
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("keys", [TRENDS, SEVERAL], ids=["sources", "lookup"])
def test_random_histories(tmp_path: Path, keys: Mapping[str, Any], seed: int) -> None:
    """Each revision does what was said before it."""
    rng = random.Random(seed)
    tables = project_of(tmp_path, **keys)
    names = ("orders", "payments", "support")
    for name in names:
        tables.deliver(name, rows_of(rng, name, 12))
    if "lookup" in keys:
        tables.deliver("customers", NOW)
    all_steps(tables.run(0, 2, "first"))
    for step in range(3):
        for name in rng.sample(names, rng.randrange(1, 3)):
            tables.deliver(name, rows_of(rng, name, 3))
        if "lookup" in keys:
            tables.deliver("customers", [customer(*rng.choice([("1", "a"), ("2", "b")]), rng.choice(["b2b", "-"]))])
        dry = looked(tables)
        before = published(tables)
        done(tables, f"revision {step}", dry)
        assert (published(tables) == before) == (not any((dry.counts or {}).values()))
