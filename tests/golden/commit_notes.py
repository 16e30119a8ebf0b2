"""The notes that our commits carry (`userMetadata`), by stage: the keys and the JSON types of their values.

Tables of users hold them for years, and `revise`, `diff` and `history` read them. `python -m tests.golden.commit_notes`
writes what the code writes now; a test compares.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.conftest import ROOT
from tests.support.flights import Flights, all_steps, flight, snowball
from trendlake.pipelines.ingest import small_files
from trendlake.pipelines.ingest.delete import delete_rows, rows_where
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.replay import newest, replay
from trendlake.pipelines.ingest.small_files import put_together
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.spark.session import start_session
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

NOTES = Path(__file__).parent / "commit_notes.json"
DAY = ("2013-03-01", "2013-03-02")


def commit_notes(lake: Flights) -> dict[str, dict[str, str]]:
    """Of each stage that commits: deliveries, a run, a revision, a deletion, a replay, small files put together,
    over an empty lake."""
    broken = flight(500, "2013-03-01T12:00:00", tailnum="D942DN")
    lake.deliver([*snowball(1, 12), *snowball(1, 12, "EV"), broken])
    run = lake.run(lake.pattern(), *DAY, "first")
    with patch.object(limits, "PUBLISHED", 0):  # the rows of so many are counted by the note
        all_steps(run)
    lake.deliver([flight(999, "2013-03-01T20:00:00", tailnum="N1UA", dep_delay=50.0)], feed="late")
    with patch.object(small_files, "MANY", 2):
        put_together(lake.lake, lake.warehouse.source("flights"), lake.contract, "compaction")
    revise(lake.run(lake.pattern(), *DAY, "revision"))
    delete_rows(lake.lake, lake.contract, rows_where("flight = 999", lake.contract), "deletion")
    check_source(replace(run, run_id="second"))
    version = newest(lake.lake, lake.contract)
    rows = open_rows(lake.lake, lake.contract, version)
    tail = rows.schema.get_field_index("tailnum")
    mended = rows.set_column(tail, "tailnum", [["N942DN"]])
    replay(lake.lake, lake.contract, mended, "replay")
    tables = (lake.warehouse.source("flights"), lake.warehouse.results("test_pattern"))
    notes = [commit.note for table in tables for commit in known_commits(lake.lake, table) if commit.note]
    return {stage: shape([n for n in notes if n["stage"] == stage]) for stage in sorted({n["stage"] for n in notes})}


def shape(notes: list[dict[str, Any]]) -> dict[str, str]:
    """The keys of notes, each with the types that its values have."""
    types: dict[str, set[str]] = {}
    for note in notes:
        for key, value in note.items():
            types.setdefault(key, set()).add(type_of(value))
    return {key: " | ".join(sorted(names)) for key, names in sorted(types.items())}


def type_of(value: Any) -> str:
    """The JSON type of a value; of an object its keys, of an array what it holds."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {type_of(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + " | ".join(sorted({type_of(item) for item in value})) + "]"
    return "null" if value is None else type(value).__name__


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        project = replace(find_project(ROOT), state=Path(folder))
        spark = start_session(find_project(ROOT), Profile(master="local[2]"), "trendlake golden notes")
        shapes = commit_notes(Flights(spark, project, Profile(master="local[2]")))
        spark.stop()
    NOTES.write_text(json.dumps(shapes, indent=1) + "\n")
