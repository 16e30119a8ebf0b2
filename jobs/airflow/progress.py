"""How an Airflow task and the Spark application that it started know of each other.

The task makes a file and holds a lock on it. The application writes into it each step that it has done, and ends when
the lock is free: a killed task has no time to end its application, and the machine frees its locks.
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
from pathlib import Path
from threading import Thread

TASK_GONE = 4
"""The exit code of an application whose task has ended before it."""
PAUSE = 1.0
"""Seconds between two looks at the lock."""


@contextmanager
def progress_file() -> Iterator[Path]:
    """A new file, locked by this process until the block ends."""
    with tempfile.NamedTemporaryFile(prefix="trendlake-steps-", suffix=".jsonl") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield Path(file.name)


def write_step(path: Path, step: str, summary: str) -> None:
    """Note that a step is done, with the line about it. A file that is not on this machine is left alone."""
    if path.is_file():
        with path.open("a") as file:
            file.write(json.dumps([step, summary]) + "\n")


def steps_done(path: Path) -> dict[str, str]:
    """The steps that the application has done, in their order, each with the line about it."""
    return dict(json.loads(line) for line in path.read_text().splitlines() if line.endswith("]"))


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
