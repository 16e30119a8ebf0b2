"""One project, used twice: in this process, and on Spark (`limits.driver_rows: 0`). Every command answers the same.

Patterns of several kinds and a family are run, revised after late events and a correction, shown, compared and
maintained: one of each kind with `EXAMPLES=all`. Without it the other kinds are run on Spark by tests/pipelines/steps.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.random.profile import ALL
from tests.support.bare_lake import bare_lake
from tests.support.one_session import Desk, share_session
from tests.support.warehouse_0_2 import FOLDER
from trendlake.pipelines import generate
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.lake.here.read import table_here

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MORE_STREAMS = {"retail": (400, 1.0), "posts": (160, 0.5), "feeds": (60, 0.1)} if ALL else {}
STREAMS = {"stock": (480, 1.0), "quotes": (480, 1.0), **MORE_STREAMS}
"""Events, and events a second, of each source."""
SHORT = ("down_trends", "volume_alarm", "dips")
LONG = ("way_out", "rumors", "reposted") if ALL else ()
"""Patterns of short windows, and such as are run for the whole day."""
PATTERNS = (*SHORT, *LONG)
TABLES = (*(f"sources/{name}" for name in STREAMS), *(f"results/{name}" for name in PATTERNS))
QUARANTINES = ("stock", "quotes")
MINUTES = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:04")
DAY = ("--from", "2026-01-05", "--to", "2026-01-06")
OF_THE_ROAD = {"road", "road_reason", "local", "computed", "computed_in_part", "rows_out"}
"""`computed`, `computed_in_part`, `rows_out`: a small revision computes whole windows here, and on Spark the changed
groups of them. `local`: the version of the code that does so here."""
OF_THE_TIME = {
    "seconds",
    "started_at",
    "finished_at",
    "attempt",
    "at",
    "time",
    "committed_at",
    "computed_at",
    "staged_version",
}
NAMES = re.compile(
    r"(?P<run>[a-z]+_\d{8}T\d{6}_\d{3})|(?P<table>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<time>2\d{3}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{3,6}(Z|\+00:00)?)"
)
"""Run ids that commands have made up, ids of tables, moments of the clock (to the millisecond)."""


class Project(Desk):
    """The project in a folder of its own, and the documents that its commands have printed."""

    def __init__(self, folder: Path, limits: str) -> None:
        super().__init__(folder, ("--project-dir", str(folder)))
        for name in ("conf", "data_contracts"):
            shutil.copytree(FOLDER / name, folder / name)
        (folder / "conf/profiles/local.yaml").write_text(f"master: local[2]\n{limits}")
        (folder / "deliveries").mkdir()

    def said(self, *words: str, code: int | None = 0) -> str:
        return "\n".join(self.canonical(one) for one in self.documents(*words, code=code))

    def canonical(self, document: Any) -> str:
        """A text that is equal for equal documents; what belongs to one road, one folder or one moment left out, and
        how many rows of a revision are judged: those that it computes. Neighbours that ids order are counted in this
        process only."""

        def walk(value: Any) -> Any:
            if isinstance(value, dict):
                left_out = OF_THE_ROAD | OF_THE_TIME
                if "broken" in (value.get("data") or ()):
                    left_out = {*left_out, "observed"}
                if "broken" in value:
                    left_out = {*left_out, "rows"}
                return {name: walk(item) for name, item in value.items() if name not in left_out}
            if isinstance(value, list):
                return [
                    walk(item) for item in value if not (isinstance(item, dict) and item.get("check") == "id_order")
                ]
            if isinstance(value, str):
                return NAMES.sub(lambda name: str(name.lastgroup), value.replace(str(self.folder), "FOLDER"))
            return value

        return json.dumps(walk(document), indent=1, sort_keys=True, default=str)

    def deliver(self, source: str, part: str, rows: pa.Table) -> str:
        file = self.folder / "deliveries" / f"{source}_{part}.parquet"
        pq.write_table(rows, file)
        return self.said("ingest", source, str(file))

    def path(self, table: str) -> str:
        return str(self.folder / ".trendlake/warehouse" / table)


def deliveries(name: str) -> dict[str, pa.Table]:
    """A stream in two parts: most events, one of them broken; then late ones, and a correction."""
    events, rate = STREAMS[name]
    whole = generate.STREAMS[name].build(events, rate, 7, generate.START_US)
    whole = whole.select([column for column in whole.column_names if column != "transaction"])  # 0.2 had none
    rows = whole.to_pylist()
    late = [row for number, row in enumerate(rows) if number % 20 == 7]
    first = [row for row in rows if row not in late]
    changed = dict(first[11])
    if name in QUARANTINES:
        changed["price"] += 3.5
        first.append(dict(first[40], event_id=first[40]["event_id"][:-1] + "999", price=-1.0))
    parts = {"first": first, "late": [*late, changed]}
    return {part: pa.Table.from_pylist(rows, whole.schema) for part, rows in parts.items()}


def walk(project: Project) -> dict[str, str]:
    """What each command says."""
    parts = {source: deliveries(source) for source in STREAMS}
    said = {f"ingest {name}": project.deliver(name, "first", parts[name]["first"]) for name in STREAMS}
    said["run short"] = project.said("run", *SHORT, *MINUTES, "--run-id", "first")
    if LONG:
        said["run long"] = project.said("run", *LONG, *DAY, "--run-id", "first")
    for name in PATTERNS:
        said[f"show {name}"] = project.said("show", name, "--limit", "1000")
    said |= {f"ingest {name} late": project.deliver(name, "late", parts[name]["late"]) for name in STREAMS}
    said["revise"] = project.said("revise", *PATTERNS, "--run-id", "later")
    for name in PATTERNS:
        said[f"show {name} revised"] = project.said("show", name, "--limit", "1000")
        said[f"diff {name}"] = project.said("diff", name, "--from", "1", "--to", "2", code=None)
    said["history"] = project.said("history", "down_trends", "--window", "2026-01-05T09:01", "--group", "sector=health")
    for name in QUARANTINES:
        said[f"quarantine show {name}"] = project.said("quarantine", "show", name)
    said["runs"] = project.said("runs", "--limit", "200")
    return said


def stored(spark: SparkSession, project: Project, table: str) -> str:
    """The rows of a table without their times, and its change feed by version, in order."""
    version = table_here(bare_lake(spark), project.path(table))
    names = [name for name in version.schema.names if name not in ("published_at", "quarantined_at")]
    rows = version.every(names, 10_000).to_pylist()
    lines = sorted(project.canonical(row) for row in rows)
    feed = version.feed_by_version([name for name in names if name != "run_id"], 0, 10_000)
    changes = [(number, sorted(project.canonical(row) for row in changed.to_pylist())) for number, changed in feed]
    return json.dumps([lines, changes], indent=1)


def notes(spark: SparkSession, project: Project, table: str) -> str:
    """The note of each commit, and how many rows it has changed."""

    def about(commit: Commit) -> Any:
        return {"version": commit.version, "changed": commit.changed if commit.note else None, "note": commit.note}

    return project.canonical([about(commit) for commit in known_commits(bare_lake(spark), project.path(table))])


@pytest.mark.long
def test_both_roads_answer_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share_session(monkeypatch, spark)
    projects = Project(tmp_path / "here", ""), Project(tmp_path / "spark", "limits: {driver_rows: 0}\n")
    local, by_spark = (walk(project) for project in projects)
    roads = [
        {record["road"] for record in project.document("runs", "--limit", "200")["records"]} - {None}
        for project in projects
    ]
    assert roads == [{"here"}, {"spark"}]
    for command, answer in local.items():
        assert answer == by_spark[command], command
    assert '"values": []' not in local["history"]
    for table in TABLES:
        first, second = (notes(spark, project, table) for project in projects)
        assert first == second, table
        first, second = (stored(spark, project, table) for project in projects)
        assert first == second, table
    answers = [project.document("maintain")["tables"] for project in projects]
    files = [[(one["table"], one["files_after"]) for one in tables] for tables in answers]
    assert files[0] == files[1]
    assert {number for _, number in files[0]} <= {0, 1}
