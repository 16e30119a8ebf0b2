"""Processes that commit the same versions of a local table at the same time: two JVMs by a log store, and delta-rs.

    python -m tests.support.commit_race [ROUNDS [LOG STORE]]

prints how many commits were said to have succeeded, and which of them are not in the log: of each table of `ROUNDS`
versions, as a longer log takes delta-rs longer to read than the others take to write it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError

from tests.conftest import ROOT
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.spark.disk_classes import LOG_STORE, class_path, compile_java, compile_local_disk
from trendlake.pipelines.spark.jars import find_jars
from trendlake.pipelines.spark.java_home import choose_java

RACE = Path(__file__).with_name("CommitRace.java")
JVMS = ("jvm-1", "jvm-2")
DELTA_RS = "delta-rs"
PERIOD = 4_000
"""Microseconds from one version to the next."""
ROUNDS = 500
"""Of one table."""
BEGIN = 0.2
"""Seconds from when all processes are up."""


@dataclass(frozen=True)
class Race:
    """`attempts`: commits that were tried. `committed`: by process, the versions whose commit succeeded, as it was
    told. `log`: by version the process whose entry is in the log."""

    attempts: int
    committed: Mapping[str, frozenset[int]]
    log: Mapping[int, str]

    @property
    def lost(self) -> list[tuple[str, int]]:
        """Commits that succeeded and are not in the log."""
        return [(name, v) for name, versions in self.committed.items() for v in versions if self.log.get(v) != name]


def race(folder: Path, rounds: int, log_store: str = LOG_STORE) -> Race:
    """In each of `rounds` every process tries to commit the same version of a new table in `folder`."""
    project = find_project(ROOT)
    choose_java(project)
    jars = find_jars(project)
    compile_java([RACE], folder / "classes", jars)
    path = os.pathsep.join((str(folder / "classes"), str(compile_local_disk(folder, jars)), class_path(jars)))
    table, schema = folder / "table", Schema.from_arrow(pa.schema([pa.field("n", pa.int64())]))
    DeltaTable.create(table, schema)
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    options = ("-XX:+UseSerialGC", "-Xmx256m", "-cp", path, "trendlake.CommitRace")
    jvms = {
        name: subprocess.Popen(
            [java, *options, name, log_store, str(table / "_delta_log"), str(rounds), str(PERIOD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in JVMS
    }
    assert all(jvm.stdout and jvm.stdout.readline() == "ready\n" for jvm in jvms.values())
    start = int((time.time() + BEGIN) * 1e6)
    for jvm in jvms.values():
        assert jvm.stdin
        jvm.stdin.write(f"{start}\n")
        jvm.stdin.flush()
    committed = {DELTA_RS: _committed_by_delta_rs(table, schema, rounds, start)}
    for name, process in jvms.items():
        versions = process.communicate()[0].split()
        assert process.returncode == 0
        committed[name] = frozenset(map(int, versions))
    entries = sorted((table / "_delta_log").glob("[0-9]*.json"))
    return Race(rounds * len(committed), committed, {int(entry.stem): _writer(entry) for entry in entries[1:]})


def _writer(entry: Path) -> str:
    info = json.loads(entry.read_text().splitlines()[0])["commitInfo"]
    return str(info.get("writer") or info["operation"])


def _committed_by_delta_rs(table: Path, schema: Schema, rounds: int, start: int) -> frozenset[int]:
    """Tries as the JVMs do, in this process."""
    committed, table_of_rs = set(), DeltaTable(table)
    about = CommitProperties(custom_metadata={"writer": DELTA_RS}, max_commit_retries=0)
    for version in range(1, rounds + 1):
        due = start + version * PERIOD
        while time.time_ns() // 1000 < due - PERIOD // 4:
            time.sleep(0.0002)
        try:
            table_of_rs.update_incremental()
            if table_of_rs.version() != version - 1:
                continue  # this round is over
            while time.time_ns() // 1000 < due:
                pass
            table_of_rs.create_write_transaction([], "append", schema, commit_properties=about)
            committed.add(version)
        except DeltaError:  # another process was first, or a slower one has left a gap in the log as yet
            continue
    return frozenset(committed)


if __name__ == "__main__":
    rounds, log_store = [*sys.argv[1:], *("1000", LOG_STORE)[len(sys.argv) - 1 :]]
    for number in range(-(-int(rounds) // ROUNDS)):
        with tempfile.TemporaryDirectory() as scratch:
            begun = time.perf_counter()
            done = race(Path(scratch), min(ROUNDS, int(rounds) - number * ROUNDS), log_store)
            print(f"{done.attempts:,} attempts in {time.perf_counter() - begun:.0f} s, log of {len(done.log):,}")
            counts = {name: len(versions) for name, versions in done.committed.items()}
            print(counts, "in the log:", Counter(done.log.values()))
            print(f"{len(done.lost)} lost: {done.lost[:10]}")
