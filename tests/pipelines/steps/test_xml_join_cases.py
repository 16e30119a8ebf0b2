"""The worked cases of kind xml_join on Spark: Delta in, every step of the pipelines, the expected rows; and revised."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.cep_core.xml_join.test_worked_cases import ANSWERED, REFUSED, compare
from tests.support.document_lake import DocumentLake
from tests.support.flights import all_steps, renamed
from tests.support.xml_documents import in_micros, rows_of
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DocumentLake:
    """A warehouse for all the cases."""
    return DocumentLake.of(spark, tmp_path_factory.mktemp("cases") / "project")


def answer_rows(lake: DocumentLake, run: Any) -> Any:
    rows = lake.rows(run)
    for row in rows:
        assert row.pop("plan_hash") == run.plan.query_hashes[row["query"]]
    return rows_of(pa.Table.from_pylist(rows, run.plan.result_schema))


@pytest.mark.long
@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["name"])
def test_case(lake: DocumentLake, case: dict[str, Any]) -> None:
    """Published rows, quarantined documents, and the changes that each revision publishes."""
    name = case["name"].replace("-", "_")
    documents = in_micros(case["documents"])
    times = [
        one["time"]
        for one in (
            *documents,
            *(one for step in case.get("revisions", ()) for one in in_micros(step.get("upsert", ()))),
        )
    ]
    lake.append(name, documents)
    path = lake.pattern(f"{name}_answers", name, {"name": name, **case["query"]})
    run = lake.run(str(path), min(times) - 1, max(times) + 86_400_000_000, f"run {name}")
    all_steps(run)
    expected = [{**row, "query": row.get("query", run.name)} for row in case["expect"]]
    compare(answer_rows(lake, run), expected)
    check_quarantine(lake, name, case)
    before = answer_rows(lake, run)
    for number, step in enumerate(case.get("revisions", ())):
        changed = {one["id"] for one in step.get("upsert", ())} | set(step.get("delete", ()))
        lake.delete(name, changed)
        if step.get("upsert"):
            lake.append(name, in_micros(step["upsert"]))
        revise(renamed(run, f"revision {name} {number}"))
        after = answer_rows(lake, run)
        compare(after - before, step["inserted"])
        compare(before - after, step["retracted"])
        before = after


def check_quarantine(lake: DocumentLake, name: str, case: dict[str, Any]) -> None:
    wanted = {key: rule for key, rule in case.get("quarantine", {}).items() if rule is not None}
    if not wanted:
        return
    rows = DeltaTable(lake.warehouse.quarantine(name)).to_pyarrow_table(columns=["event_id", "rule"]).to_pylist()
    assert {row["event_id"]: row["rule"] for row in rows} == wanted


@pytest.mark.parametrize("case", [case for case in REFUSED if "documents" in case], ids=lambda case: case["name"])
def test_too_many_answers(lake: DocumentLake, case: dict[str, Any]) -> None:
    """A worker's error reaches the user as it is in process, and nothing is published."""
    name = case["name"].replace("-", "_")
    lake.append(name, in_micros(case["documents"]))
    path = lake.pattern(f"{name}_answers", name, case["query"])
    run = lake.run(str(path), -1, 86_400_000_000, f"run {name}")
    STEPS["check_source"](run)
    with pytest.raises(TrendlakeError, match=r"\[TOO_MANY_ANSWERS\] .* has 2 answers that end with the document 'd3'"):
        STEPS["compute"](run)
