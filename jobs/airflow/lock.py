"""The process that serves a project's Airflow now, and its address."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import Project


def address(project: Project) -> str | None:
    """Where the project's Airflow answers; None where `trendlake airflow` does not run it now."""
    try:
        with _file(project).open() as file:
            return None if _locked(file.fileno(), fcntl.LOCK_SH) else file.read() or None
    except FileNotFoundError:
        return None


@contextmanager
def claimed(project: Project) -> Iterator[Path]:
    """While open, no other process can serve the project, and `address` is what is written to the file given. Raises
    ProjectError where another one serves it."""
    path = _file(project)
    project.make_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _locked(file.fileno(), fcntl.LOCK_EX):
            raise ProjectError(f"the project's Airflow runs already: {path.read_text() or 'in another process'}")
        path.write_text("")
        yield path


def _file(project: Project) -> Path:
    """Its lock ends with the process that holds it, however that ends."""
    return project.state / "airflow" / "serving"


def _locked(file: int, how: int) -> bool:
    """Whether this process holds the lock now, because no other process did."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
