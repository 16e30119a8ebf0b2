"""The rooms and the arrows between them: dags -> jobs -> pipelines -> cep_core, never back."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("cep_core", "pipelines", "jobs", "dags")
"""From the bottom up: a module may import from its own room and from those below."""
FOREIGN = {
    "cep_core": {"pyspark", "delta", "airflow", "great_expectations", "typer", "rich"},
    "pipelines": {"airflow", "typer"},
    "jobs": {"airflow"},
    "dags": {"pyspark", "delta", "great_expectations"},
}
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"}


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top name of every import, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_down(room: str) -> None:
    """No module imports from a room above its own, nor what its room must not know."""
    above = set(ROOMS[ROOMS.index(room) + 1 :]) | FOREIGN[room]
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(room)
        for line, name in imports(path)
        if name in above
    ]
    assert modules(room)
    assert not found


@pytest.mark.parametrize("room", ROOMS)
def test_imports_are_absolute(room: str) -> None:
    """So that the arrows can be read in every file's head."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not found


def test_the_public_package_shows_the_engine_only() -> None:
    """`import trendlake` brings neither Spark nor the command."""
    found = {name for path in modules("trendlake") for _, name in imports(path)}
    assert found == {"cep_core", "importlib"}


def test_the_engine_reads_no_clock() -> None:
    """Results depend on events and plan only: cep_core asks nobody what time it is."""
    found = []
    for path in modules("cep_core"):
        tree = ast.parse(path.read_text())
        named = {name for _, name in imports(path)} & {"time", "calendar", "sched"}
        found += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(named)]
        found += [
            f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.attr}()"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CLOCKS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in {"datetime", "date", "time", "dt"}
        ]
    assert not found


def test_the_engine_loads_without_spark_and_airflow() -> None:
    """Importing cep_core brings neither along, whatever is installed."""
    code = "import sys, cep_core; print(sorted({'pyspark', 'airflow', 'delta', 'pipelines'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
