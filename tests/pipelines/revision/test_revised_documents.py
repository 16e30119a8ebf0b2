"""Revisions of kind xml_join: whatever happens to the documents, the results are those of a full recomputation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.revision import local
from pipelines.steps.revise import revise
from tests.support.document_lake import DocumentLake
from tests.support.flights import all_steps, renamed
from tests.support.xml_documents import engine

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


@pytest.mark.parametrize("most", [0, local.ROWS])
def test_a_revision_is_a_recomputation(spark: SparkSession, tmp_path: Path, most: int, monkeypatch: Any) -> None:
    """By Spark and in this process: late, changed, moved, broken, repaired and deleted documents."""
    monkeypatch.setattr(local, "ROWS", most)
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


def agree(lake: DocumentLake, run: Any, documents: dict[str, dict[str, Any]]) -> None:
    """The published rows are those of the engine over all documents, each known by the hash of its query."""
    rows = lake.rows(run)
    assert len({row["answer_id"] for row in rows}) == len(rows)
    assert all(row["plan_hash"] == run.plan.query_hashes[row["query"]] for row in rows)
    zero = {"start", "end"}
    actual = {
        tuple(sorted((name, round(cell.timestamp() * 1_000_000) if name in zero else cell) for name, cell in row.items()
                     if name not in ("answer_id", "plan_hash")))
        for row in rows
    }  # fmt: skip
    expected = engine(QUERY, list(documents.values()))
    assert len(expected) > 10
    assert actual == expected
