"""Why Spark goes on writing to tables of Trendlake 0.2: nobody can take clustering from a table.

The test ends when a version of Delta or of delta-rs can: then `maintain` should convert such tables (ADR 56).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.warehouse_0_2 import unpack
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.maintain import maintain

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_clustering_cannot_be_dropped(spark: SparkSession, tmp_path: Path) -> None:
    """Not by Delta, even where no column is clustered; and delta-rs writes to no table with that feature."""
    path = str(unpack(tmp_path) / "sources" / "stock")
    name = f"delta.`{path}`"
    refuse_writes(path, "InCommitTimestamp", "ClusteredTable", "DomainMetadata")
    spark.sql(f"ALTER TABLE {name} DROP FEATURE inCommitTimestamp")
    spark.sql(f"ALTER TABLE {name} CLUSTER BY NONE")
    with pytest.raises(Py4JJavaError, match="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"):
        spark.sql(f"ALTER TABLE {name} DROP FEATURE clustering")
    with pytest.raises(Py4JJavaError, match="DELTA_FEATURE_DROP_DEPENDENT_FEATURE"):
        spark.sql(f"ALTER TABLE {name} DROP FEATURE domainMetadata")
    refuse_writes(path, "ClusteredTable", "DomainMetadata")
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT * FROM {name}")
    refuse_writes(path, "ClusteredTable", "DomainMetadata")
    assert not table_here(bare_lake(spark), path).writable


def refuse_writes(path: str, *features: str) -> None:
    table = DeltaTable(path)
    with pytest.raises(CommitFailedError, match="Unsupported table features required") as error:
        write_deltalake(path, table.to_pyarrow_table().slice(0, 1), mode="append")
    assert set(str(error.value).rpartition("[")[2].strip("]").split(", ")) == set(features)


@pytest.mark.long
def test_they_are_maintained(spark: SparkSession, tmp_path: Path) -> None:
    """Sources and results by Spark, the others here: rows stay."""
    folder = unpack(tmp_path)
    names = ("sources/stock", "sources/stock_quarantine", "trendlake_runs")
    rows = {name: spark.read.format("delta").load(str(folder / name)).count() for name in names}
    done = list(maintain(bare_lake(spark), {name: str(folder / name) for name in names}))
    assert [(one.table, one.files_after) for one in done] == [(name, 1) for name in names]
    assert {name: spark.read.format("delta").load(str(folder / name)).count() for name in names} == rows
    assert [table_here(bare_lake(spark), str(folder / name)).writable for name in names] == [False, True, True]
