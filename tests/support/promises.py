"""What must hold of a pattern's results: they are a recomputation's, and their change feed gives them again."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from pipelines.delta.tables import latest_version, read_at
from pipelines.runs.run import Run
from pipelines.spark.columns import column
from tests.support.recomputation import in_order, recomputed
from tests.support.signals import Signals

HISTORIES: Counter[str] = Counter()
"""Random histories that have come to their end, by pattern; `make chaos` prints them."""
REVISIONS: Counter[str] = Counter()
"""Their revisions, by who has computed what they publish."""


def agree(lake: Signals, run: Run) -> None:
    """Results are read by delta-rs: as another reader of the table sees them, and sooner than Spark plans a job."""
    table = DeltaTable(lake.warehouse.results(run.name))
    rows = in_order(table.to_pyarrow_table(columns=list(run.plan.result_schema.names)).to_pylist(), run)
    assert rows == recomputed(run, lake.version(), run.windows)


def replayed(lake: Signals, run: Run) -> None:
    """Every change of the results since there were none, one after another: as delta-rs reads them, which plans no job
    for each version. Spark has the same rows in the end."""
    path = lake.warehouse.results(run.name)
    newest = latest_version(lake.spark, path)
    feed = pa.table(DeltaTable(path).load_cdf(starting_version=0))
    names = [name for name in feed.column_names if not name.startswith("_c")]
    changes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in feed.to_pylist():
        changes[row["_commit_version"]].append(row)
    assert set(changes) <= set(range(newest + 1))
    table: dict[Any, Any] = {}
    for version in sorted(changes):
        for row in sorted(changes[version], key=lambda row: row["_change_type"] not in ("delete", "update_preimage")):
            key = tuple(str(row[name]) for name in run.plan.key)
            if row["_change_type"] in ("delete", "update_preimage"):
                assert table.pop(key) == [row[name] for name in names]
            else:
                assert key not in table
                table[key] = [row[name] for name in names]
    there = read_at(lake.spark, path, newest).select(*map(column, names)).toArrow().to_pylist()
    assert sorted(table.values(), key=str) == sorted((list(row.values()) for row in there), key=str)
