"""A pattern over three tables and a reference table in a live Airflow: a run, and a revision by an event of each."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from deltalake import DeltaTable

from tests.dags.test_run import DONE, wait
from tests.pipelines.revision.test_several_tables import project_of, published
from tests.pipelines.steps.test_lookups import rows_by_hand
from tests.support.tables_lake import SCHEMAS, customer, order, payment, ticket
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import ROOT, AirflowHome, free_port
from trendlake.jobs.airflow.login import password_of
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.spark.jars import jars_folder

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

REVISION = "orders_revise"
LOOKUP: Mapping[str, Any] = {
    "table": "customers",
    "key": "customer_id",
    "columns": ["segment"],
    "of": ["Order", "Payment"],
}
LATE: Sequence[tuple[str, Sequence[Mapping[str, Any]]]] = (
    ("orders", [order(2, 2, "b", 30)]),
    ("payments", [payment("p2", 4, "b", 31.0)]),
    ("customers", [customer("1", "a", "gone"), customer("2", "b", "b2b")]),
)


def test_each_table_starts_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference table, whose rows are no events, is replaced."""
    tables = project_of(tmp_path, plain=True, lookup={"customer": LOOKUP}, where=["[customer_id]", "o.segment = 'b2b'"])
    tables.deliver("customers", [customer("1", "a", "b2b"), customer("2", "b", "b2b")])
    tables.deliver("orders", [order(1, 1, "a", 10)])
    tables.deliver("payments", [payment("p1", 3, "a", 11.0)])
    tables.deliver("support", [ticket("t1", 5, "a"), ticket("t2", 6, "b")])
    shutil.copytree(find_project(ROOT).root / "conf" / "profiles", tables.root / "conf" / "profiles")
    monkeypatch.setenv("TRENDLAKE_JARS", str(jars_folder(find_project(ROOT))))
    home = AirflowHome(tables.project, load_profile(tables.project, "local"), free_port())
    with home.running() as processes:
        home.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))
        wanted = {"unpaid", REVISION, *(f"ingest_{name}" for name in SCHEMAS)}
        wait(lambda: wanted <= api.dag_ids())
        api.pause("unpaid", False)
        api.trigger("unpaid", "first", {"from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"})
        wait(lambda: api.run_state("unpaid", "first") in DONE)
        assert api.run_state("unpaid", "first") == "success", api.tasks("unpaid", "first")
        assert [row["o"] for row in published(tables)] == [["orders:1"]]
        for number, (name, rows) in enumerate(LATE, 1):
            file = tmp_path / f"{name}.csv"
            pyarrow.csv.write_csv(pa.Table.from_pylist([dict(row) for row in rows], SCHEMAS[name]), file)
            replace = {"replace": True} if name == "customers" else {}
            api.trigger(f"ingest_{name}", "late", {"files": [str(file)], **replace})
            wait(lambda: states(api).count("success") == number)  # noqa: B023 - it is asked in this turn
            assert set(states(api)) == {"success"}
            assert published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))
    assert [row["o"] for row in published(tables)] == [["orders:2"]]
    shown = DeltaTable(tables.lake.warehouse.results("unpaid")).to_pyarrow_table()
    assert "customers@" in shown["source_versions"][0].as_py()
    customers = DeltaTable(tables.lake.warehouse.source("customers"))
    assert customers.history(1)[0]["operationParameters"]["mode"] == "Overwrite"


def states(api: AirflowApi) -> list[str]:
    """Of the revisions that Airflow has run."""
    return [run["state"] for run in api.runs(REVISION)]
