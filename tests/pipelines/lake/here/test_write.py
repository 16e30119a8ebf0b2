"""Files that this process writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from tests.pipelines.revision.test_several_tables import without_java
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.here.write import Changes, Line, change
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse


def test_rows_that_only_go_and_come(tmp_path: Path) -> None:
    """The file that is written again has one row group, as none is large."""
    path, count = tmp_path / "table", 2_000
    rows = pa.table({"number": pa.array(range(count), pa.int64()), "text": ["x"] * count})
    write_deltalake(str(path), rows)
    lake = Lake(Warehouse(str(tmp_path)), without_java, plain_paths=True)
    table, none = table_here(lake, str(path)), rows.schema.empty_table()
    new = pa.table({"number": pa.array([count], pa.int64()), "text": ["y"]})
    change(table, Changes(rows.slice(0, 3), none, none, new), "", Line("tests", 1), {})
    after = table_here(lake, str(path))
    assert sorted(after.every(["number"], count)["number"].to_pylist()) == list(range(3, count + 1))
    assert max(pq.read_metadata(path / name).num_row_groups for name in after.files) == 1
