"""A project with published results that a pattern reads, and a copy of it for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.one_session import share_session
from tests.support.own_source import FALLING, output_of, start

DAYS = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:10")
EVENTS = [(company, minute, k) for company in "AB" for minute in range(10) for k in (1, 2)]
ROWS = [f"{n},2026-01-05T09:{minute:02d}:{k}0Z,{company},{9 - k}" for n, (company, minute, k) in enumerate(EVENTS)]
WEEKLY = """\
name: weekly
source: results/falling
pattern: falling R+
return: {most: MAX(R.trends)}
within: 10 minutes
"""
BELOW = (
    WEEKLY.replace("name: weekly", "name: below")
    .replace("results/falling", "results/weekly")
    .replace("falling R+", "weekly R+")
    .replace("MAX(R.trends)", "COUNT(*)")
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`falling` and `weekly`, which reads its results, are published; `below` reads those."""
    folder = tmp_path_factory.mktemp("plan") / "project"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_STATE", str(folder / ".trendlake"))
        start(folder, folder / "trades.csv", "\n".join(["id,at,company,price", *ROWS, ""]))
        for text in (FALLING, WEEKLY, BELOW):
            (folder / "conf" / "patterns" / f"{text.split()[1]}.yaml").write_text(text)
        output_of("ingest", "trades", folder / "trades.csv", "--project-dir", folder)
        output_of("run", "falling", *DAYS, "--project-dir", folder)
        output_of("run", "weekly", *DAYS, "--project-dir", folder)
    return folder


@pytest.fixture
def project(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which commands find by the environment: workers of Spark outlive the folder of a test."""
    folder = tmp_path / "project"
    shutil.copytree(published, folder)
    use_project(folder, monkeypatch)
    return folder


@pytest.fixture
def shared_project(project: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As `project`, for commands that may need Spark: they do not start or stop it."""
    share_session(monkeypatch, spark)
    use_project(project, monkeypatch)
    return project


def use_project(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("TRENDLAKE_PROJECT", str(folder))
    patch.setenv("TRENDLAKE_STATE", str(folder / ".trendlake"))
