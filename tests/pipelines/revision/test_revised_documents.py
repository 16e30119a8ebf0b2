"""Revisions of kind xml_join: whatever happens to the documents, the results are those of a full recomputation."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.reference.xml_join import answers
from tests.support.document_lake import DocumentLake
from tests.support.flights import all_steps, renamed
from tests.support.xml_documents import engine
from trendlake.pipelines.lake import limits
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000
DAY = 24 * HOUR
START = 20_000 * DAY
QUERY: dict[str, Any] = {
    "kind": "xml_join",
    "queries": {
        "followed": {
            "left": {"a": "/item", "k": "$a/key"},
            "right": {"b": "/item", "l": "$b/key"},
            "operator": "followed_by",
            "where": ["$k = $l"],
            "within": "30 hours",
            "return": {"value": "$l", "node": "node($a)"},
        },
        "beside": {
            "left": {"a": "/item", "k": "$a/key", "n": "$a/note"},
            "right": {"b": "/item", "l": "$b/key"},
            "operator": "join",
            "where": ["normalize-space($k) = normalize-space($l)"],
            "within": "2 hours",
            "return": {"value": "$n"},
        },
    },
}


def document(rng: random.Random, ident: str) -> dict[str, Any]:
    """One of many that say the same; some break a rule."""
    keys = "".join(f"<key>{rng.choice(['x', 'y', ' x ', 'z'])}</key>" for _ in range(rng.randrange(3)))
    note = f"<note>{rng.randrange(3)}</note>" if rng.random() < 0.5 else ""
    broken = rng.choice(["<item><key>x</item>", "<!DOCTYPE item><item><key>x</key></item>"])
    text = f"<item>{keys}{note}</item>" if rng.random() < 0.9 else broken
    return {"id": ident, "time": START + rng.randrange(96) * HOUR, "xml": text}


@pytest.mark.parametrize("most", [pytest.param(0, marks=pytest.mark.repeats), limits.REVISED])
def test_a_revision_is_a_recomputation(spark: SparkSession, tmp_path: Path, most: int, monkeypatch: Any) -> None:
    """By Spark and in this process: late, changed, moved, broken, repaired and deleted documents."""
    monkeypatch.setattr(limits, "REVISED", most)
    rng = random.Random(f"documents {most}")
    lake = DocumentLake.of(spark, tmp_path / "project")
    documents = {ident: document(rng, ident) for ident in (f"d{n}" for n in range(30))}
    lake.deliver("items", documents.values(), "first")
    path = lake.pattern("pairs", "items", QUERY)
    run = lake.run(str(path), START - 1, START + 5 * DAY, "first")
    all_steps(run)
    agree(lake, run, documents)
    for number in range(3):
        changed = [document(rng, f"d{rng.randrange(34)}") for _ in range(rng.randrange(1, 4))]
        changed = list({one["id"]: one for one in changed}.values())
        gone = rng.sample(sorted(documents), 1)
        documents |= {one["id"]: one for one in changed}
        documents = {ident: one for ident, one in documents.items() if ident not in gone}
        lake.delete(
            "items", [*gone, *(one["id"] for one in changed)]
        )  # ingestion keeps a good row where a bad one comes
        lake.append("items", [one for one in changed if one["id"] not in gone])
        record = revise(renamed(run, f"revision {number}"))
        if not most:
            assert record.staged_version is not None
        agree(lake, run, documents)


@pytest.mark.parametrize("most", [pytest.param(0, marks=pytest.mark.repeats), limits.REVISED])
def test_rows_that_move_and_rows_of_a_late_document(
    spark: SparkSession, tmp_path: Path, most: int, monkeypatch: Any
) -> None:
    """A row moves into the window of its new `end`, and stays one row. A late document that is the left one of all its
    rows has them in windows up to `within` later."""
    monkeypatch.setattr(limits, "REVISED", most)
    lake = DocumentLake.of(spark, tmp_path / "project")
    text = "<item><key>x</key></item>"
    documents = {f"d{hour}": {"id": f"d{hour}", "time": START + hour * HOUR, "xml": text} for hour in (10, 12, 20, 39)}
    lake.deliver("items", documents.values(), "first")
    run = lake.run(str(lake.pattern("pairs", "items", QUERY)), START - 1, START + 5 * DAY, "first")
    all_steps(run)
    before = {(row["query"], row["left_id"], row["right_id"]): row for row in lake.rows(run)}
    moved = before["followed", "d10", "d12"]
    assert run.plan.pane == DAY
    documents["d12"]["time"] += DAY
    documents["late"] = {"id": "late", "time": START + 9 * HOUR, "xml": text}
    lake.delete("items", ["d12"])
    lake.append("items", [documents["d12"], documents["late"]])
    record = revise(renamed(run, "revision"))
    assert (record.staged_version is None) == (most > 0)
    rows = lake.rows(run)
    assert plain(rows) == answers(QUERY, list(documents.values()))
    again = [row for row in rows if row["answer_id"] == moved["answer_id"]]
    assert [(row["end"] - moved["end"], row["start"]) for row in again] == [(timedelta(days=1), moved["start"])]
    late = {row["right_id"]: pane_of(row) for row in rows if row["left_id"] == "late" and row["query"] == "followed"}
    assert late == {"d10": 0, "d20": 0, "d12": 1, "d39": 1}
    assert not any(row["right_id"] == "late" for row in rows if row["query"] == "followed")


def test_a_run_a_day_of_all_history(spark: SparkSession, tmp_path: Path) -> None:
    """A query without bound has the rows of the whole, with documents of equal time at the borders of runs."""
    lake = DocumentLake.of(spark, tmp_path / "project")
    days = (0, 0, 0.5, 1, 1, 1.5, 2, 2, 2.75)
    documents = [
        {"id": f"d{n}", "time": START + round(day * DAY), "xml": f"<item><key>{'xy'[n % 4 == 3]}</key></item>"}
        for n, day in enumerate(days)
    ]
    lake.deliver("items", documents, "first")
    query = {
        **QUERY,
        "queries": {
            "beside": {**QUERY["queries"]["followed"], "operator": "join", "within": "unbounded"},
            "followed": {**QUERY["queries"]["followed"], "within": "unbounded"},
        },
    }
    path = str(lake.pattern("pairs", "items", query))
    for day in range(3):
        run = lake.run(path, START + day * DAY, START + (day + 1) * DAY, f"run {day}")
        all_steps(run)
    assert plain(lake.rows(run)) == answers(query, documents)


def pane_of(row: dict[str, Any]) -> int:
    return int(_micros(row["end"]) - START) // DAY


def agree(lake: DocumentLake, run: Any, documents: dict[str, dict[str, Any]]) -> None:
    """The published rows are those of the engine over all documents, each known by the hash of its query."""
    rows = lake.rows(run)
    assert len({row["answer_id"] for row in rows}) == len(rows)
    assert all(row["plan_hash"] == run.plan.query_hashes[row["query"]] for row in rows)
    expected = engine(QUERY, list(documents.values()))
    assert len(expected) > 10
    assert plain(rows) == expected


def plain(rows: list[dict[str, Any]]) -> set[tuple[tuple[str, Any], ...]]:
    """Rows as the enumeration writes them: times in microseconds, without keys and hashes."""
    return {
        tuple(sorted((name, _micros(cell)) for name, cell in row.items() if name not in ("answer_id", "plan_hash")))
        for row in rows
    }


def _micros(cell: Any) -> Any:
    return round(cell.timestamp() * 1_000_000) if isinstance(cell, datetime) else cell
