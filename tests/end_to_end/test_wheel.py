"""The wheel, installed outside of any clone beside nothing but what it asks for: a project is begun, a pattern written,
checked, tried on a file, tested, explained and drawn, without Spark's or Airflow's packages.

Those it asks for are linked from this environment, so that nothing is fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

READINGS = "id,at,machine,celsius\n" + "".join(
    f"{hour}-{machine},2026-01-01T{hour:02d}:00:00Z,{machine},{60 + hour * 7 % 11}\n"
    for hour in range(24)
    for machine in ("m1", "m2")
)
PATTERN = """\
name: rising
kind: trends
source: readings
pattern: Reading R{3,}
where: ["[machine]", "R.celsius < NEXT(R).celsius"]
return: {rises: COUNT(*), hottest: MAX(R.celsius)}
group_by: [machine]
within: 1 day
"""
TESTS = """\
- name: three that rise are one
  events:
    - {at: 2026-01-01T01:00:00Z, machine: m1, celsius: 60}
    - {at: 2026-01-01T02:00:00Z, machine: m1, celsius: 61}
    - {at: 2026-01-01T03:00:00Z, machine: m1, celsius: 62}
  expect:
    - {machine: m1, rises: 1, hottest: 62}
"""
ENGINE = """\
from datetime import datetime
import pyarrow, trendlake
rows = [{"event_id": f"e{n}", "event_time": datetime(2026, 1, 1, n), "event_type": "A"} for n in range(4)]
query = {"pattern": "A a+", "return": {"n": "COUNT(*)"}, "within": "1 day"}
print(trendlake.evaluate(query, pyarrow.Table.from_pylist(rows))["n"].to_pylist())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and what it asks for."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
        (listed,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(listed).decode()
    asked = [Requirement(text) for text in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)]
    for package in needed(asked):
        for entry in {str(file).split("/")[0] for file in package.files or ()} - {"..", "__pycache__"}:
            place, link = Path(str(package.locate_file(entry))), packages / entry
            if place.exists() and not link.exists():
                link.symlink_to(place)
    program = home / "bin" / "trendlake"
    program.write_text(f"#!{home}/bin/python\nfrom trendlake.command import main\n\nmain()\n")
    program.chmod(0o755)
    return home / "bin"


def needed(asked: list[Requirement]) -> Iterator[Distribution]:
    """The packages that these requirements come to, without those of extras."""
    left, known = list(asked), set()
    while left:
        one = left.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name in known or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        known.add(name)
        found = distribution(name)
        yield found
        left += map(Requirement, found.requires or ())


def test_what_the_wheel_holds(wheel: Path) -> None:
    """All that the command reads, and nothing of the tests or of a project's own."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for name in (
        "cep_core/language/grammar.lark",
        "pipelines/spark/LinkLogStore.java",
        "pipelines/shipped_files/conf/profiles/local.yaml",
        "pipelines/shipped_files/dags/trendlake_dags.py",
        "pipelines/shipped_files/data_contracts/results_trends.yaml",
        "pipelines/shipped_files/docs/schemas/pattern.json",
        "pipelines/shipped_files/docs/tutorial.md",
    ):
        assert name in names
    assert any(name.startswith("pipelines/report/templates/") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"trendlake", "cep_core", "pipelines", "jobs"}
    assert not any(name.endswith("flights.yaml") or "__pycache__" in name for name in names)


def test_a_project_without_spark(installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{installed}{os.pathsep}/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def run(*words: str, code: int = 0) -> str:
        command = [str(installed / "trendlake"), *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    folder = tmp_path
    run("init", "plant")
    folder = tmp_path / "plant"
    (folder / "january.csv").write_text(READINGS)
    roles = ("--event-id", "id", "--event-time", "at", "--type", "Reading")
    run("new", "source", "readings", "--from", "january.csv", *roles)
    run("new", "pattern", "rising", "--source", "readings")
    (folder / "conf" / "patterns" / "rising.yaml").write_text(PATTERN)
    (folder / "conf" / "patterns" / "tests" / "rising.yaml").write_text(TESTS)
    assert run("validate").count("ok ") == 6
    assert "rising: 2 rows" in run("try", "rising", "--events", "january.csv")
    assert "1 passed, 0 failed" in run("test")
    run("explain", "rising", "--svg", "rising.svg")
    assert "<svg" in (folder / "rising.svg").read_text()
    assert run("docs", "tutorial").startswith("# Tutorial")
    assert '"properties"' in run("schema", "pattern")
    said = run("run", "rising", "--from", "2026-01-01", "--to", "2026-01-02", code=1)
    assert "[NOT_INSTALLED]" in said
    assert "pip install 'trendlake[spark]'" in said


def test_the_engine_from_python(installed: Path, tmp_path: Path) -> None:
    command, environment = [str(installed / "python"), "-c", ENGINE], {"HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "[Decimal('15')]\n", done.stderr
