"""Results are removed as a whole, or not at all, and the error says why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support.disks import read_only, small_disk
from trendlake.pipelines.errors import NotWritableError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.results.reset import reset
from trendlake.pipelines.storage_errors import storage_error

pytestmark = pytest.mark.spark


def test_a_warehouse_that_is_read_only(spark: SparkSession, tmp_path: Path) -> None:
    """The table stays as it is; where it may be written again, it goes."""
    with small_disk(tmp_path / "lake", 800) as disk:
        warehouse = Warehouse(str(disk))
        path = Path(warehouse.results("rising"))
        write_deltalake(path, pa.table({"n": [1, 2]}))
        files = set(path.rglob("*"))
        with read_only(disk), pytest.raises(OSError, match="Read-only file system") as error:
            reset(Lake.of(spark, warehouse), "results/rising", str(path))
        assert isinstance(storage_error(error.value), NotWritableError)
        assert set(path.rglob("*")) == files
        reset(Lake.of(spark, warehouse), "results/rising", str(path))
        assert not path.exists()
        assert not [item for item in Path(warehouse.staged).rglob("*") if item.is_file()]
