"""Documents lie in small row groups, whoever writes the file: a revision reads those near a changed document only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.document_lake import DocumentLake
from trendlake.pipelines.ingest import commits
from trendlake.pipelines.lake.here import row_groups, write
from trendlake.pipelines.lake.here.read import table_here

pytestmark = pytest.mark.spark

SECOND = 1_000_000
GROUP_BYTES = 40_000


@pytest.mark.long
def test_few_documents_a_row_group(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commits, write):
        monkeypatch.setattr(module, "GROUP_BYTES", GROUP_BYTES)
    lake = DocumentLake.of(spark, tmp_path / "project")
    texts = [f"<a><k>{'x' * 500}{number}</k></a>" for number in range(600)]
    documents = [{"id": f"d{n:03}", "time": n * SECOND, "xml": text} for n, text in enumerate(texts)]
    lake.deliver("items", documents, "first")
    lake.deliver("items", [documents[7] | {"xml": "<a/>"}], "a correction, by MERGE")
    path = lake.warehouse.source("items")
    for version in (1, 2):
        table = table_here(bare_lake(spark), path, version)
        groups = sum(ParquetFile(table.folder / file).num_row_groups for file in table.files)
        assert groups >= len(texts) // 100, version  # Java's writer looks at the size after each hundred rows
        near = row_groups.near("event_time", [(10 * SECOND, 12 * SECOND)])
        assert sum(len(near(table.folder / file)) for file in table.files) == 1, version  # rows stay in their order
        day = table.rows(["event_id"], "event_time", [(10 * SECOND, 12 * SECOND)], 10)
        assert sorted(day["event_id"].to_pylist()) == ["d010", "d011"]
