"""Hostile XML through the rules, the engine and the files: never an exception, never a request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.random.fuzz_documents import CHUNK, QUERY, Judged, column, contract_in, judge, listening
from tests.random.hostile_documents import hostile
from tests.support.document_lake import DocumentLake
from tests.support.flights import all_steps
from trendlake.cep_core import evaluate
from trendlake.cep_core.documents.document import broken_rules
from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import On


def test_hostile_documents(tmp_path: Path) -> None:
    """As `make fuzz KIND=documents`; every rule is met, and some are documents."""
    judged, count = Judged(), 600
    contract = contract_in(tmp_path)
    with listening() as (port, asked):
        for first in range(0, count, CHUNK):
            judge(range(first, first + CHUNK), port, tmp_path, contract, judged)
    assert asked == []
    rules = {rule for _, rule in judged.of_table}
    assert {"a document", "xml_doctype", "xml_too_deep", "xml_not_well_formed"} <= rules
    assert {sort for sort, rule in judged.of_table if rule == "a document"} >= {"plain", "spoilt", "encoded", "wide"}
    assert judged.of_table.total() == sum(judged.of_files.values()) == count
    assert judged.of_files["read"] > count / 20


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("documents", "on"),
    [pytest.param(0, "spark", marks=pytest.mark.repeats), (0, "here"), (limits.DOCUMENTS_JUDGED, "here")],
)
def test_hostile_rows_of_a_table(spark: SparkSession, tmp_path: Path, documents: int, on: On, monkeypatch: Any) -> None:
    """Judged by Spark, and in this process by the verdict on each file or all together: each broken document is set
    apart by its rule, with its own bytes, and the others are answered."""
    monkeypatch.setattr(limits, "DOCUMENTS_JUDGED", documents)
    lake = DocumentLake.of(spark, tmp_path / "project")
    drawn = [raw for _, raw in map(hostile, range(3_000, 3_150))]
    ids = pa.array([f"d{number}" for number in range(len(drawn))])
    times = pa.array(range(len(drawn)), pa.int64()).cast(TIME_TYPE)
    table = pa.table({"event_id": ids, "event_time": times, "document": column(drawn)})
    lake.contract("items")
    pq.write_table(table, tmp_path / "drawn.parquet")
    spark.read.parquet(str(tmp_path / "drawn.parquet")).write.format("delta").mode("append").save(
        lake.warehouse.source("items")
    )
    run = replace(lake.run(str(lake.pattern("pairs", "items", QUERY)), -1, 86_400_000_000, "run"), on=on)
    all_steps(run)
    rules = broken_rules(table["document"])
    wanted = {ident: rule for ident, rule in zip(ids.to_pylist(), rules.to_pylist(), strict=True) if rule is not None}
    apart = spark.read.format("delta").load(lake.warehouse.quarantine("items"))
    cells = apart.selectExpr("event_id", "rule", "cast(document AS BINARY) AS raw").collect()
    assert {cell["event_id"]: cell["rule"] for cell in cells} == wanted
    assert all(bytes(cell["raw"]) == drawn[int(cell["event_id"][1:])] for cell in cells)
    expected = evaluate(QUERY, table.filter(pc.is_null(rules)))
    pairs = {(row["left_id"], row["right_id"]) for row in lake.rows(run)}  # the ids of answers hold the pattern's name
    assert pairs == set(zip(expected["left_id"].to_pylist(), expected["right_id"].to_pylist(), strict=True)) != set()
