"""What must hold of a pattern's results: they are a recomputation's, and their change feed gives them again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tests.support.recomputation import in_order, recomputed
from tests.support.signals import Signals
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.reuse import row_hashes
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.columns import column

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
    for each version. Spark has the same rows in the end, and no version has two rows of one key in one form."""
    path = lake.warehouse.results(run.name)
    newest = latest_version(lake.lake, path)
    feed = pa.table(DeltaTable(path).load_cdf(starting_version=0))
    names = [name for name in feed.column_names if not name.startswith("_c")]
    changes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in feed.to_pylist():
        changes[row["_commit_version"]].append(row)
    assert set(changes) <= set(range(newest + 1))
    table: Counter[str] = Counter()
    forms = row_hashes(run.plan, run.windows)
    keys: Counter[str] = Counter()
    for version in sorted(changes):
        for row in changes[version]:
            change = -1 if row["_change_type"] in ("delete", "update_preimage") else 1
            table[text(row, names)] += change
            if row["plan_hash"] in forms:
                keys[text(row, identity(run.plan))] += change
        assert set(keys.values()) <= {0, 1}
        assert min(table.values(), default=0) >= 0
    there = read_at(lake.lake, path, newest).select(*map(column, names)).toArrow().to_pylist()
    assert +table == Counter(text(row, names) for row in there)


def text(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return str([str(row[name]) for name in names])
