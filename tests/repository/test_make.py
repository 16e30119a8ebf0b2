"""What the Makefile's verbs remove, in a copy of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

TABLE = "warehouse/sources/trades/_delta_log/00000000000000000000.json"
REBUILT = (
    "jars/delta.jar",
    "tools/uv/bin/uv",
    "docs-site/index.html",
    "classes.jsa",
    "java_home",
    "trendlake-local-disk-1.jar",
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A Makefile beside a state folder with a table, a report, and what set-up leaves; its name has a space."""
    folder = tmp_path / "a clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Makefile", folder)
    for name in (TABLE, "reports/index.html", "airflow/airflow.db", *REBUILT):
        path = folder / ".trendlake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def make(folder: Path, verb: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    return subprocess.run(
        ["make", verb], cwd=folder, env=env, input=answer, capture_output=True, text=True, check=False
    )


def test_clean_leaves_tables_alone(clone: Path) -> None:
    done = make(clone, "clean")
    assert done.returncode == 0, done.stderr
    left = {str(path.relative_to(clone / ".trendlake")) for path in (clone / ".trendlake").rglob("*") if path.is_file()}
    assert left == {TABLE, "reports/index.html", "airflow/airflow.db"}


@pytest.mark.parametrize("answer", ["", "\n", "y\n", "yes\n"])
def test_destroy_asks(clone: Path, answer: str) -> None:
    done = make(clone, "destroy", answer)
    assert done.returncode != 0
    assert "holds 1 table" in done.stdout
    assert "nothing was removed" in done.stdout
    assert (clone / ".trendlake" / TABLE).exists()


def test_destroy_removes_what_it_said(clone: Path) -> None:
    assert make(clone, "destroy", "destroy\n").returncode == 0
    assert not (clone / ".trendlake").exists()
    assert (clone / "Makefile").exists()
    assert make(clone, "destroy").returncode == 0
