"""On a store where two processes may commit one version, each command that writes is refused before Spark starts, and
each command that reads goes on to start it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from tests.conftest import ROOT
from tests.support.own_source import FALLING, output_of, start
from trendlake.jobs.main import app

ROWS = "id,at,company,price\nt1,2026-01-05T09:00:00,A,10\nt2,2026-01-05T09:00:01Z,A,9.5\n"
RANGE = ["--from", "2026-01-05", "--to", "2026-01-06"]
RUN = [*RANGE, "--run-id", "r1"]
STATE = "result:failed"
"""A selector for which the run record is read first."""
WRITE = {
    "ingest": [["trades", "trades.csv"], ["trades", "trades.csv", "--replace"], ["flights"]],
    "generate": [["stock"]],
    "run": [["falling", *RANGE], [STATE, *RANGE], ["*", *RANGE]],
    "backfill": [["falling", *RANGE], ["--stale"]],
    "check-source": [["falling", *RUN]],
    "compute": [["falling", *RUN]],
    "check-results": [["falling", *RUN]],
    "publish": [["falling", *RUN]],
    "run-steps": [["falling", *RUN, "--steps", "compute"], ["falling", *RUN, "--steps", "compute", "--batch", "b"]],
    "apply": [["--yes"], ["falling", "--yes"]],
    "revise": [["falling"], [STATE], ["--source", "trades"], ["falling", "--if-published"]],
    "maintain": [[]],
    "reset": [["falling", "--yes"]],
    "source delete": [["trades", "--ids", "trades.csv", "--yes"]],
    "quarantine replay": [["trades", "trades.csv"]],
}
"""Commands that may change the warehouse, with ways to call them."""
READ = {
    "backfill": [["falling", *RANGE, "--dry-run"], ["--stale", "--dry-run"]],
    "revise": [["falling", "--dry-run"], [STATE, "--dry-run"], ["--source", "trades", "--dry-run"]],
    "site": [[]],
    "report": [["falling", "--run-id", "r1"]],
    "ls": [[STATE]],
    "plan": [[]],
    "show": [["falling"]],
    "runs": [[]],
    "diff": [["falling", "--from", "1", "--to", "2"]],
    "history": [["falling", "--window", "2026-01-05"]],
    "source delete": [["trades", "--ids", "trades.csv", "--dry-run"]],
    "quarantine show": [["trades"]],
    "new source": [["other", "--table", "s3a://bucket/t", "--event-id", "id", "--event-time", "at", "--type", "T"]],
}
"""Commands that read tables."""
WITHOUT_TABLES = {
    "init",
    "validate",
    "explain",
    "expand",
    "schema",
    "test",
    "new pattern",
    "docs",
    "setup",
    "airflow",
    "shell",
    "try",
}
"""Commands that ask for no table of the warehouse, `try` among them where it has a file; Airflow, see below; and
`shell`, whose commands ask for their own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project whose warehouse is on S3, and where Spark cannot start: its jars are nowhere."""
    folder = tmp_path_factory.mktemp("mine")
    start(folder, folder / "trades.csv", ROWS)
    (folder / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    for name in ("flights", "stock"):
        (folder / "data_contracts" / f"{name}.yaml").write_bytes((ROOT / f"data_contracts/{name}.yaml").read_bytes())
    _warehouse(folder, "s3a://bucket/lake")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_JARS", str(folder / "nowhere"))
        patch.setenv("TRENDLAKE_STATE", str(folder / "state"))
        patch.delenv("TRENDLAKE_PROFILE", raising=False)
        patch.chdir(folder)
        yield folder


def _warehouse(folder: Path, place: str, more: str = "") -> None:
    (folder / "conf" / "profiles" / "local.yaml").write_text(f"master: local[2]\nwarehouse: {place}\n{more}")


def _all(calls: dict[str, list[list[str]]]) -> list[list[str]]:
    return [[*name.split(), *words] for name, ways in calls.items() for words in ways]


def test_each_command_is_known_to_write_or_to_read() -> None:
    """A new command has to be entered above."""

    def names(command: object, path: tuple[str, ...]) -> Iterator[str]:
        parts = getattr(command, "commands", None)
        if parts is None:
            yield " ".join(path)
        for name, part in (parts or {}).items():
            yield from names(part, (*path, name))

    assert set(names(get_command(app), ())) == WRITE.keys() | READ.keys() | WITHOUT_TABLES


@pytest.mark.parametrize("words", _all(WRITE), ids=" ".join)
def test_a_command_that_writes_is_refused(folder: Path, words: list[str]) -> None:
    """It says both ways out, and has not looked for Spark's jars."""
    out = " ".join(output_of(*words, "--project-dir", folder, code=1).split())
    assert "[UNSAFE_STORE]" in out
    assert "spark.delta.logStore.s3a.impl: CLASS" in out
    assert "`writers: one`" in out
    assert not (folder / "state").exists()


@pytest.mark.parametrize("words", _all(READ), ids=" ".join)
def test_a_command_that_reads_is_not(folder: Path, words: list[str]) -> None:
    """It goes on to start Spark, which is not there."""
    assert "[JARS_MISSING]" in output_of(*words, "--project-dir", folder, code=1)


@pytest.mark.parametrize(
    "more", ["writers: one\n", "spark:\n  spark.delta.logStore.s3a.impl: org.example.LogStore\n"], ids=["one", "named"]
)
def test_both_ways_out_work_as_they_are_printed(folder: Path, more: str) -> None:
    """A command that writes goes on to start Spark. In a process of its own: a Java that runs has its jars."""
    _warehouse(folder, "s3a://bucket/lake", more)
    try:
        command = [sys.executable, "-m", "trendlake.jobs.main", "run", "falling", *RANGE, "--project-dir", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    finally:
        _warehouse(folder, "s3a://bucket/lake")
    assert done.returncode == 1
    assert "[JARS_MISSING]" in done.stderr


@pytest.mark.parametrize(("more", "said"), [("", "commit one version"), ("writers: one\n", "several processes")])
def test_airflow_is_refused(folder: Path, more: str, said: str) -> None:
    """`trendlake airflow` before it starts anything."""
    _warehouse(folder, "s3a://bucket/lake", more)
    try:
        out = " ".join(output_of("airflow", "--project-dir", folder, code=1).split())
    finally:
        _warehouse(folder, "s3a://bucket/lake")
    assert "[UNSAFE_STORE]" in out
    assert said in out
