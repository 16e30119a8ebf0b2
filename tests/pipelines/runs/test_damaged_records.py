"""Run records that no version of Trendlake has written: each command says which record it is, goes on where that is
safe, and a step done again writes a record that counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.recomputation import in_order, recomputed
from tests.support.roads import only_spark
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import START_US, Signals, signals
from trendlake.jobs.actions.show import print_runs
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.report.read_run import DAMAGED, UNNAMED, read_run
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.runs.judged_version import judged_version
from trendlake.pipelines.runs.record import find, newest_records
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.site.read_runs import read_runs
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

Row = dict[str, Any]
TEXTS = ("{", "[1]", '{"a": 1}')


@pytest.fixture(scope="module")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Signals, Run]:
    """A day of events, published by the run `first`."""
    lake = signals(spark, tmp_path_factory.mktemp("damaged") / "project", PATTERNS["plain"])
    rows = [
        {
            "event_id": f"e{n}",
            "event_time": START_US + n * 3_600_000_000,
            "event_type": "A",
            "place": "n",
            "price": n % 9,
        }
        for n in range(20)
    ]
    lake.insert(rows)
    run = lake.run(0, 1, "first")
    all_steps(run)
    return lake, run


@pytest.fixture
def lake(published: tuple[Signals, Run], tmp_path: Path) -> tuple[Signals, Run]:
    """A copy of it."""
    copy = published[0].copied(tmp_path / "project")
    return copy, copy.run(0, 1, "first")


def alter(lake: Signals, change: Callable[[Row], Row]) -> None:
    """The records as somebody else has left them."""
    table = DeltaTable(lake.warehouse.runs).to_pyarrow_table()
    rows = [change(dict(row)) for row in table.to_pylist()]
    write_deltalake(lake.warehouse.runs, pa.Table.from_pylist(rows, table.schema), mode="overwrite")


def of_stage(name: str, **values: Any) -> Callable[[Row], Row]:
    return lambda row: row | values if row["stage"] == name else row


def is_right(lake: Signals, run: Run) -> None:
    """A step done again, and a revision, end well, and the rows are those of a computation from nothing."""
    all_steps(run)
    revise(renamed(run, "revision"))
    rows = DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table(columns=run.plan.result_schema.names)
    assert in_order(rows.to_pylist(), run) == recomputed(run, lake.version(), run.windows)


@pytest.mark.long
@pytest.mark.parametrize(
    "column",
    [pytest.param("checks", marks=pytest.mark.repeats), pytest.param("basis", marks=pytest.mark.repeats), "note"],
)
def test_texts_that_do_not_parse(lake: tuple[Signals, Run], column: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The next step names the record, pages and lists go on."""
    source, run = lake
    place, lake_of_source = Place(source.project, source.profile), source.lake
    for text in TEXTS:
        alter(source, of_stage("publish" if column == "note" else "compute", **{column: text}))
        stage = "publish" if column == "note" else "compute"
        if (column, text) == ("note", '{"a": 1}'):  # it claims nothing
            assert find(lake_of_source, run.name, "first", "publish") is not None
        else:
            with pytest.raises(RecordDamagedError, match=f"{stage} of {run.name}, run first.*`{column}`"):
                find(lake_of_source, run.name, "first", stage)  # type: ignore[arg-type]
            print_runs(place, lake_of_source, run.name, 10)
            assert f"the run record of {stage} of {run.name}, run first, is damaged" in capsys.readouterr().err
            print_runs(place, lake_of_source, run.name, 10, as_json=True)
        facts = read_run(lake_of_source, run.name, "first")
        assert any(check.check == DAMAGED for check in facts.checks) == (column == "checks")
        read_runs(lake_of_source, [run.name])
        with only_spark():
            by_spark = judged_version(lake_of_source, "signals")
        assert judged_version(lake_of_source, "signals") == by_spark
    is_right(source, run)


def test_notes_that_claim_nothing_known(lake: tuple[Signals, Run]) -> None:
    """A publication's note is in its commit too; what is wrong with the record is a check of the next run."""
    source, run = lake
    for note in ("{", "[1]", '{"owned": [1], "plan_hash": null}', '{"owned": [[0, 1]], "quiet": true}'):
        alter(source, of_stage("publish", note=note))
        ledger = read_ledger(source.lake, run.name, run.plan, "signals")
        assert ledger.segments
        assert [check.name for check in ledger.checks() if check.failed] == ["run_record"]
        assert "publish of watched, run first" in ledger.damaged[0]
    is_right(source, run)


@pytest.mark.long
@pytest.mark.parametrize("column", ["run_id", "stage", "status", "pattern", "finished_at", "staged_version"])
def test_values_that_are_null(lake: tuple[Signals, Run], column: str, capsys: pytest.CaptureFixture[str]) -> None:
    source, run = lake
    times = {"started_at": None, "seconds": None} if column == "finished_at" else {}
    alter(source, of_stage("compute", **{column: None}, **times))
    print_runs(Place(source.project, source.profile), source.lake, None, 10)
    said = capsys.readouterr().err
    assert ("is damaged" in said) == (column in ("run_id", "stage", "status"))
    facts = read_run(source.lake, run.name, "first")
    assert any(UNNAMED in (stage.stage, stage.status) for stage in facts.stages) == (column in ("stage", "status"))
    read_runs(source.lake, [run.name])
    if column == "staged_version":
        with pytest.raises(RecordDamagedError, match="compute of watched, run first, is damaged"):
            run.need("compute")
    is_right(source, run)


def test_a_record_of_another_version(lake: tuple[Signals, Run]) -> None:
    """A stage, a status and a column that this version does not know are passed over."""
    source, run = lake
    alter(source, of_stage("compute", stage="compress", status="half done"))
    table = DeltaTable(source.warehouse.runs).to_pyarrow_table()
    later = table.append_column("later", pa.array(["x"] * table.num_rows))
    write_deltalake(source.warehouse.runs, later, mode="overwrite", schema_mode="overwrite")
    assert "compress" in [stage.stage for stage in read_run(source.lake, run.name, "first").stages]
    is_right(source, run)


@pytest.mark.parametrize(
    "columns", [["note", "record_number", "basis"], ["checks", "seconds", "error"], ["finished_at"]]
)
def test_columns_that_are_missing(lake: tuple[Signals, Run], columns: list[str]) -> None:
    """Their values are not recorded; the next record brings the columns back."""
    source, run = lake
    table = DeltaTable(source.warehouse.runs).to_pyarrow_table().drop(columns)
    shutil.rmtree(source.warehouse.runs)
    write_deltalake(source.warehouse.runs, table)
    records = newest_records(source.lake, run.name, 10) or []
    assert [record[name] for record in records for name in columns] == [None] * (len(records) * len(columns))
    read_run(source.lake, run.name, "first")
    is_right(source, run)


def test_a_table_that_is_no_run_record(lake: tuple[Signals, Run]) -> None:
    source, run = lake
    table = DeltaTable(source.warehouse.runs).to_pyarrow_table().drop(["stage"])
    shutil.rmtree(source.warehouse.runs)
    write_deltalake(source.warehouse.runs, table)
    with pytest.raises(RecordDamagedError, match="lacks the columns stage"):
        run.need("compute")
