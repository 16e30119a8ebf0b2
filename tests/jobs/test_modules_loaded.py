"""A command imports what it needs: how many modules each has loaded at its end, and which must not be among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.test_without_java import FIRST, LATER, PATTERN

pytestmark = pytest.mark.long

HEAVY = {"great_expectations", "pandas", "numba", "scipy", "sqlalchemy", "altair", "jinja2", "vl_convert", "duckdb"}
ENGINE = {"numba", "scipy"}
COMMANDS = {
    "--help": (220, {*HEAVY, "numpy", "pyarrow", "lark", "pydantic", "rich", "yaml"}),
    "ls": (670, HEAVY | {"pyspark", "deltalake", "lxml"}),
    "validate": (710, HEAVY | {"pyspark", "deltalake"}),
    "show falling": (960, HEAVY),
    "history falling --window 2024-01-01 --group symbol=A": (960, HEAVY),
    "runs": (850, HEAVY),
    "ingest trades later.csv": (910, HEAVY),
    "try falling": (1510, HEAVY - ENGINE),
}
"""Of each command: at most so many modules (a tenth more than on the day this was written), and packages that none of
them is of."""
RUN = "run falling --from 2024-01-01 --to 2024-01-03"
COMPILING = "compiling code for this processor, once"
ASKED = """
import atexit, json, sys

def tell(file=sys.argv[2]):
    there = {name: module for name, module in sys.modules.items() if module is not None}
    lazy = [name for name, module in there.items() if type(module).__name__ == "_LazyModule"]
    with open(file, "w") as written:
        json.dump({"modules": sorted(there), "lazy": lazy}, written)

atexit.register(tell)
sys.argv = ["trendlake", *sys.argv[1].split()]
from trendlake.command import main
main()
"""


def loaded(folder: Path, command: str) -> tuple[list[str], list[str], str]:
    """The modules at the end of `command`, those of them that have not been executed, and what it prints on stderr."""
    environment = os.environ | {"TRENDLAKE_CACHE": str(folder / "cache")}
    environment.pop("TRENDLAKE_STATE", None)
    given = [sys.executable, "-c", ASKED, command, str(folder / "modules.json")]
    done = subprocess.run(given, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    said = json.loads((folder / "modules.json").read_text())
    return said["modules"], said["lazy"], done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run."""
    folder = tmp_path_factory.mktemp("modules")
    loaded(folder, "init .")
    for name, text in {"first.csv": FIRST, "later.csv": LATER, "conf/patterns/falling.yaml": PATTERN}.items():
        (folder / name).write_text(text)
    loaded(folder, "new source trades --from first.csv --event-time event_time --event-id event_id --type Trade")
    loaded(folder, "ingest trades first.csv")
    return folder


def test_a_run(project: Path) -> None:
    """Great Expectations judges, and draws nothing. The first run says that it compiles."""
    modules, lazy, first = loaded(project, RUN)
    again = loaded(project, RUN)[2]
    assert {"great_expectations", "numba", "duckdb"} <= set(modules)
    assert {"altair", "scipy.stats"} <= set(lazy)
    assert {"sqlalchemy", "pyspark.ml", "pyspark.sql.connect"} & set(modules) == set()
    assert len(modules) <= 2_900
    assert [first.count(COMPILING), again.count(COMPILING)] == [1, 0]
    assert not any(name.startswith(("altair.", "scipy.stats.")) for name in modules)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command(project: Path, command: str) -> None:
    most, absent = COMMANDS[command]
    modules, _, _ = loaded(project, command)
    assert {name.partition(".")[0] for name in modules} & absent == set()
    assert len(modules) <= most
