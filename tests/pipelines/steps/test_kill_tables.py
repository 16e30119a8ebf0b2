"""SIGKILL of the driver of a pattern over three tables and a reference table, at each boundary of what it writes: its
quarantines, its results and its records. The rows are those of before or those of a recomputation, and each table's
broken rows are in its quarantine once.

Each boundary in `make chaos` with KILLS; every third without.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import PART
from tests.pipelines.revision.test_several_histories import NAMES
from tests.pipelines.revision.test_several_tables import good, on_spark, published, rows_of, shown, version
from tests.pipelines.steps.test_lookups import SEVERAL, VALID, all_steps
from tests.pipelines.steps.test_lookups import good as good_customers
from tests.support.drivers import REVISE, RUN, Victim
from tests.support.tables_lake import SeveralTables, customer, order
from tests.support.victim import Order
from trendlake.cep_core import run_plan
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.results.ledger import read_ledger

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

STEP = 1 if int(os.environ.get("TRENDLAKE_KILLS", "0")) else 3
COMMITS = 100
PATTERN: Mapping[str, Any] = {**SEVERAL, "lookup": {"customer": {**VALID, "of": ["Order", "Payment"]}}}
READ = ("customers", *NAMES)


def expected(tables: SeveralTables) -> list[dict[str, Any]]:
    """What the engine says of the rows that keep their contracts."""
    run = tables.run(0, 2, "by hand")
    events = {name: good(tables, name) for name in NAMES}
    rows = run_plan(run.plan, events, run.windows, None, {"customers": good_customers(tables)})
    return sorted(rows.cast(run.plan.result_schema).to_pylist(), key=repr)


def happens(tables: SeveralTables, rng: random.Random, number: int) -> None:
    """Rows of every table, a broken one of orders and of customers among them, and a customer of another segment."""
    for name in NAMES:
        tables.deliver(name, rows_of(rng, name, 4))
    tables.deliver("orders", [order(1000 + number, rng.randrange(40), "a", 500)])
    segment = rng.choice(["b2b", "b2c", "none"])
    rows = [customer("1", "a", segment, -9, 5 + number), customer("2", "a", "b2b", 5 + number)]
    tables.deliver("customers", [*rows, customer(f"broken {number}", "b", "x" * 10)])


def doubles_in_quarantine(tables: SeveralTables) -> list[str]:
    """Tables whose quarantine has a row more than once for one run."""
    doubles = []
    for name in READ:
        path = tables.lake.warehouse.quarantine(name)
        if Path(path).exists():
            rows = DeltaTable(path).to_pyarrow_table()
            ids = next(one for one in ("number", "ref", "id", "row") if one in rows.column_names)
            counts = (
                pa.table({"run": rows["run_id"], "id": rows[ids]})
                .group_by(["run", "id"])
                .aggregate([([], "count_all")])
            )
            doubles += [name] * any(count > 1 for count in counts["count_all"].to_pylist())
    return doubles


@pytest.mark.parametrize("by_spark", [False, True], ids=["here", "spark"])
def test_killed_at_each_boundary(spark: SparkSession, tmp_path: Path, by_spark: bool) -> None:
    """First a run, then a revision that follows all four tables."""
    rng = random.Random(f"tables {PART}")
    tables = on_spark(spark, tmp_path / "project", **PATTERN)
    happens(tables, rng, 0)
    all_steps(tables.run(0, 2, "first"))
    for number, steps in enumerate((RUN, REVISE), 1):
        shown_before = expected(tables)
        while expected(tables) == shown_before:
            happens(tables, rng, number)
        places = killed(tables, steps, f"work {number}", by_spark)
        assert any("quarantine" in place for place in places) or STEP > 1
        vector = " ".join(f"{name}@{version(tables, name)}" for name in READ)
        assert shown(tables) == {vector}


def killed(tables: SeveralTables, steps: tuple[str, ...], run_id: str, by_spark: bool) -> list[str]:
    """Kills a driver after its first quarantine, then at a boundary by its number, begins again, kills that one further
    on, and so on, until one comes to its end. Returns where they were killed."""
    before, wanted, places = published(tables), expected(tables), []
    run = tables.run(0, 2, run_id)
    for number, place in enumerate(itertools.chain(["after writing quarantine"], itertools.count(STEP, STEP))):
        victim, passed = Victim(tables.root, number), tables.root / f"places {run_id} {number}"
        try:
            bounds = (run.start_us, run.end_us)
            victim.order(Order("unpaid", steps, run_id, *bounds, str(passed), place, by_spark=by_spark))
            survived = victim.survived()
        finally:
            victim.kill()
        assert published(tables) in (before, wanted)
        assert doubles_in_quarantine(tables) == []
        if survived:
            break
        places.append(passed.read_text().splitlines()[-1])
    assert published(tables) == wanted
    commits = recent_commits(run.lake, run.warehouse.results(run.name), COMMITS)
    assert sum(any(commit.changed) for commit in commits if commit.note.get("run_id") == run_id) <= 1
    assert read_ledger(run.lake, run.name, run.plan, run.sources.name).segments
    return places
