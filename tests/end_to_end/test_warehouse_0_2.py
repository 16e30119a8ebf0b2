"""A warehouse that Trendlake 0.2 wrote opens, reads, runs and revises: one pattern of every kind, a family and a chain.

`tests/golden/warehouse_0_2/make.py` made it, with the code of that version.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.flights import all_steps
from tests.support.warehouse_0_2 import FOLDER, unpack
from trendlake.jobs.actions.show import Shown, print_results
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

ROWS: dict[str, dict[str, Any]] = json.loads((FOLDER / "rows.json").read_text())
"""What `trendlake show --json` printed then, by pattern."""
SOURCES = {"stock": "price", "quotes": "price", "retail": "reader", "posts": "website", "feeds": None}
"""A column of each source whose value a correction changes."""
MINUTE = 60_000_000
NINE = 1_767_603_600_000_000
"""2026-01-05T09:00:00Z."""
LONG = ("way_out", "rumors", "reposted")
"""Patterns that were run for the whole day."""
DAY = (NINE - 540 * MINUTE, NINE + 900 * MINUTE)
DOUBLED = "shorter_key"
"""Its key was made shorter, and 0.2 published each new row twice."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A copy of the project and its warehouse."""
    return copied(tmp_path_factory.mktemp("from_0_2"))


def copied(folder: Path) -> Place:
    for name in ("conf", "data_contracts"):
        shutil.copytree(FOLDER / name, folder / name)
    unpack(folder / "state")
    return Place(Project(folder, folder / "state"), Profile(master="local[2]"))


def run_of(place: Place, spark: SparkSession, name: str, run_id: str, *interval: int) -> Run:
    return prepare(
        Lake.of(spark, Warehouse.of(place.profile, place.project)),
        place.project,
        place.profile,
        name,
        run_id,
        *interval,
    )


def rows_of(run: Run) -> list[dict[str, Any]]:
    """The published rows without their origin, in order."""
    table = DeltaTable(run.warehouse.results(run.name)).to_pyarrow_table(columns=list(run.plan.result_schema.names))
    return sorted(table.to_pylist(), key=lambda row: [str(row[name]) for name in run.plan.key])


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_show_prints_what_it_printed_then(place: Place, spark: SparkSession, name: str) -> None:
    """The same rows in the same order, and the same keys at least."""
    document = print_results(place, Lake.of(spark, place.warehouse), name, Shown(limit=1000), as_json=True)
    shown, then = json.loads(json_text(document, None)), ROWS[name]
    assert shown["rows"] == then["rows"]
    assert shown.keys() >= then.keys()
    assert {key: shown[key] for key in ("which", "rows_in_all", "rows_selected")} == {
        key: then[key] for key in ("which", "rows_in_all", "rows_selected")
    }


@pytest.fixture(scope="module", params=["here", pytest.param("spark", marks=pytest.mark.repeats)])
def brought_on(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The warehouse after a correction in each source, a revision and a run of later windows, which take one road: this
    process, or Spark for every row."""
    place = copied(tmp_path_factory.mktemp("brought_on"))
    if request.param == "spark":
        place = replace(place, profile=Profile(master="local[2]", limits=Limits(driver_rows=0)))
    correct_sources(place, spark)
    for name in ROWS:
        earlier = DAY if name in LONG else (NINE, NINE + 4 * MINUTE)
        if name == DOUBLED:
            all_steps(run_of(place, spark, name, "again", *earlier))
        else:
            revise(run_of(place, spark, name, "revised", *earlier))
        if name not in LONG:
            all_steps(run_of(place, spark, name, "later", NINE + 4 * MINUTE, NINE + 8 * MINUTE))
    return place


@pytest.fixture(scope="module")
def fresh(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same sources with the same corrections, and results that are computed from nothing."""
    place = copied(tmp_path_factory.mktemp("fresh"))
    for name in ("results", "trendlake_runs"):
        shutil.rmtree(place.project.state / "warehouse" / name)
    correct_sources(place, spark)
    for name in ROWS:
        all_steps(run_of(place, spark, name, "fresh", *(DAY if name in LONG else (NINE, NINE + 8 * MINUTE))))
    return place


def correct_sources(place: Place, spark: SparkSession) -> None:
    """In each source a row comes again with another value, and a new row at its time."""
    for source, column in SOURCES.items():
        stored = DeltaTable(place.warehouse.source(source)).to_pyarrow_table().sort_by("event_id").slice(5, 1)
        rows = stored.to_pylist() * 2
        if column is not None:
            value = rows[0][column]
            rows[0] = rows[0] | {column: value + 1 if isinstance(value, int | float) else f"{value}x"}
        rows[1] = rows[1] | {"event_id": rows[1]["event_id"][:-9] + "888888888"}
        delivery = pa.Table.from_pylist(rows, stored.schema)
        contract = load_contract(place.project.contract_path(source))
        ingest(Lake.of(spark, place.warehouse), contract, [delivery], feed="later", run_id="later")


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_revised_and_run_it_shows_what_a_fresh_warehouse_shows(
    brought_on: Place, fresh: Place, spark: SparkSession, name: str
) -> None:
    """One row a key, the ones that a recomputation gives; the doubled rows of 0.2 are gone."""
    run = run_of(brought_on, spark, name, "compared", *DAY)
    rows = rows_of(run)
    assert rows == rows_of(run_of(fresh, spark, name, "compared", *DAY))
    assert len({str([row[key] for key in run.plan.key]) for row in rows}) == len(rows) > 0
