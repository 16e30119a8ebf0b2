"""Of a table of many documents the verdicts are kept, and are those that all of few documents have."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.document_lake import DocumentLake
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.road import answer_of
from trendlake.pipelines.quality.judge import Judged, judge_of

pytestmark = pytest.mark.spark

SECOND = 1_000_000
SPAN = (2 * SECOND, 6 * SECOND)


def test_many_are_judged_as_few(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = DocumentLake.of(spark, tmp_path / "project")
    texts = ["<a>", "<a/>", "<a/>", "<a>", "<a><b/></a>", "<a/>", "<a>", "<a/>"]
    lake.append("items", [{"id": f"d{n}", "time": n * SECOND, "xml": text} for n, text in enumerate(texts)])
    contract, path = lake.contract("items"), lake.warehouse.source("items")

    def judged(documents: int) -> Judged:
        monkeypatch.setattr(limits, "DOCUMENTS_JUDGED", documents)
        return answer_of(judge_of(table_here(bare_lake(spark), path), contract, tmp_path / "kept").judged(SPAN))

    few, many = judged(len(texts)), judged(len(texts) - 1)
    assert (few.rows, few.checks, few.broken) == (many.rows, many.checks, many.broken)
    assert few.bad.to_pylist() == many.bad.to_pylist()
    assert few.bad["event_id"].to_pylist() == ["d3"]
    assert few.times is not None
    assert many.times is None
    lake.append("items", [{"id": "d3", "time": 60 * SECOND, "xml": "<a/>"}, {"id": "d4", "time": 0, "xml": "<a/>"}])
    # ids of the windows that are there once more, outside of them: that of d3 beside a row that breaks a rule
    assert judged(len(texts) + 2).bad["event_id"].to_pylist() == ["d3", "d4"]
    assert judged(0).bad["event_id"].to_pylist() == ["d3", "d4"]
