"""Tests that share what they have made run in one process, whatever pytest and its plugins are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.conftest import ROOT
from tests.support.sharing import share

TEST = """\
import os
import pytest
pytestmark = pytest.mark.{mark}
@pytest.mark.parametrize("n", range(3))
def test(n):
    print("RAN", __name__, os.getpid())
"""
MARKS = {
    "tests/dags/test_a": "airflow",
    "tests/dags/test_b": "airflow",
    "tests/test_c": "spark",
    "tests/test_d": "random",
}
ORDER = """\
import pytest
from tests.support.sharing import longest_first
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items[:] = longest_first(items)
"""
MIXED = {
    "tests/cep_core/test_a": (),
    "tests/cep_core/test_b": ("random",),
    "tests/pipelines/test_c": ("random",),
    "tests/pipelines/test_d": ("slow",),
    "tests/pipelines/test_e": ("spark",),
    "tests/pipelines/test_f": ("random", "spark"),
    "tests/dags/test_g": ("airflow", "spark"),
    "tests/dags/test_h": (),
}


def test_the_kernels_are_compiled_before_spark_starts(tmp_path: Path) -> None:
    """While one process has Airflow, the other has the random tests of the engine; of one file all tests, in place."""
    for name, marks in MIXED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        lines = ["import pytest", "def test_first(): pass", *(f"@pytest.mark.{mark}" for mark in marks)]
        (tmp_path / f"{name}.py").write_text("\n".join([*lines, "def test_second(): pass\n"]))
    (tmp_path / "conftest.py").write_text(ORDER)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    airflow\n    spark\n    random\n    slow\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = re.findall(r"test_(\w)\.py::test_(first|second)$", done.stdout, re.MULTILINE)
    assert collected == [(letter, name) for letter in "ghbefdca" for name in ("first", "second")]


def test_files_and_airflow_stay_together(tmp_path: Path) -> None:
    """By two processes, as `make test` runs them: the longest first."""
    for name, mark in MARKS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(TEST.format(mark=mark))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    airflow\n    spark\n    random\n")
    (arguments,) = set(re.findall(r"-n 2 --dist \w+", (ROOT / "Makefile").read_text()))
    command = [sys.executable, "-m", "pytest", "-rP", "-p", "tests.support.sharing", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *arguments.split()], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    processes = defaultdict(set)
    ran = re.findall(r"^RAN (\S+) (\d+)$", done.stdout, re.MULTILINE)
    assert len(ran) == 3 * len(MARKS)
    for name, process in ran:
        processes[share(f"tests/dags/{name}" if name in ("test_a", "test_b") else name)].add(process)
    assert {share: len(ids) for share, ids in processes.items()} == {"tests/dags/": 1, "test_c": 1, "test_d": 1}
    assert len(set.union(*processes.values())) == 2
