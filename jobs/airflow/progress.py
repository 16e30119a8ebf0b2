"""How an Airflow task and the Spark application that it started know of each other.

The task makes a file and holds a lock on it. The application writes into it each step that it has done, of a batch also
which patterns have failed and which have new results. It ends when the lock is free: a killed task has no time to end
its application, and the machine frees its locks.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

TASK_GONE = 4
"""The exit code of an application whose task has ended before it."""
FAILED, CHANGED = "failed", "changed"
PAUSE = 1.0
"""Seconds between two looks at the lock."""


@contextmanager
def progress_file() -> Iterator[Path]:
    """A new file, locked by this process until the block ends."""
    with tempfile.NamedTemporaryFile(prefix="trendlake-steps-", suffix=".jsonl") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield Path(file.name)


@dataclass(frozen=True)
class Failure:
    """A pattern of a batch that failed: its file, the step that raised, one line, and whether that was an error of the
    user's or the data, which another attempt would meet again."""

    pattern: str
    file: str
    step: str
    reason: str
    mistake: bool


def write_step(path: Path, step: str, summary: str) -> None:
    """Note that a step is done, with the line about it. A file that is not on this machine is left alone."""
    _write(path, [step, summary])


def write_members(path: Path, failures: list[Failure], changed: list[str]) -> None:
    """Note which patterns of a batch have failed, and the names of those whose results have a new version."""
    _write(path, {FAILED: [asdict(failure) for failure in failures], CHANGED: changed})


def _write(path: Path, line: object) -> None:
    if path.is_file():
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def steps_done(path: Path) -> dict[str, str]:
    """The steps that the application has done, in their order, each with the line about it."""
    return dict(json.loads(line) for line in path.read_text().splitlines() if line.endswith("]"))


def members_done(path: Path) -> tuple[list[Failure], list[str]]:
    """The last arguments of `write_members`; empty if the application is of no batch, or ended before."""
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    members = json.loads(lines[-1]) if lines else {FAILED: [], CHANGED: []}
    return [Failure(**failure) for failure in members[FAILED]], members[CHANGED]


def end_with_task(path: Path) -> None:
    """Ends this process within seconds of the one that holds the lock, from now on. Does nothing where the file is not
    on this machine: a driver on another one is ended by the cluster."""
    if path.is_file():
        Thread(target=_watch, args=(path,), daemon=True, name="ends with the task").start()


def _watch(path: Path) -> None:
    with path.open() as file:
        while not _free(file.fileno()):
            time.sleep(PAUSE)
    print("the task that started this application has ended: so does the application", file=sys.stderr, flush=True)
    os._exit(TASK_GONE)


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
