"""What publications have noted for years is read and would be written the same: of a warehouse of Trendlake 0.2, each
commit of results and each run record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.warehouse_0_2 import unpack
from trendlake.pipelines.results.notes import Note


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("from_0_2"))


def in_commits(warehouse: Path) -> list[str]:
    """The notes in the logs of all results tables."""
    entries = [
        json.loads(line)
        for file in sorted(warehouse.glob("results/*/_delta_log/*.json"))
        for line in file.read_bytes().splitlines()
    ]
    return [entry["commitInfo"]["userMetadata"] for entry in entries if "userMetadata" in entry.get("commitInfo", {})]


def in_records(warehouse: Path) -> list[str]:
    rows = DeltaTable(str(warehouse / "trendlake_runs")).to_pyarrow_table(columns=["stage", "note"]).to_pylist()
    return [row["note"] for row in rows if row["note"] is not None]


def test_notes_are_what_was_stored(warehouse: Path) -> None:
    """Byte for byte, but for the number of the attempt, which is no fact of the note."""
    commits, records = in_commits(warehouse), in_records(warehouse)
    assert len(commits) > 10
    assert len(records) > 10
    for text in (*commits, *records):
        stored: dict[str, Any] = json.loads(text)
        stored.pop("attempt", None)
        assert json.dumps(Note.from_json(stored).as_json()) == json.dumps(stored)
    assert all(Note.of_commit(json.loads(text)) is not None for text in commits)


@pytest.mark.parametrize(
    "stored", [{"owned": [[0]]}, {"owned": [[0, 1]]}, {"owned": 3}, {"stretches": [[1, 2]]}, {"grid": {"column": "x"}}]
)
def test_a_note_that_nobody_has_written(stored: dict[str, Any]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        Note.from_json(stored)
