"""The wheel, installed outside of any clone: for each role, a project is begun and used as far as the role goes.

Without extras the packages that it requires are linked from this environment: nothing is fetched. The environments for
Spark and for Airflow are installed from their locks, by uv, whose cache has the packages since set-up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT, SET_UP
from tests.repository.test_one_spelling import PICKLE
from tests.support.archives import unpacked

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
JARS = ("setup", "--only", "spark", "--from", str(SET_UP / "jars"))
DAY = ("--from", "2026-01-01", "--to", "2026-01-02")
ENGINE = """\
from datetime import datetime
import pyarrow, trendlake
rows = [{"event_id": f"e{n}", "event_time": datetime(2026, 1, 1, n), "event_type": "A"} for n in range(4)]
query = {"pattern": "A a+", "return": {"n": "COUNT(*)"}, "within": "1 day"}
print(trendlake.evaluate(query, pyarrow.Table.from_pylist(rows))["n"].to_pylist())
"""
READ = """\
import pickle, sys
plan = pickle.loads(bytes.fromhex(sys.stdin.read()))
print(type(plan).__module__, "cep_core" in sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.long
def test_the_source_distribution_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """It has no symbolic links: each file is in it once."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, "--sdist", str(ROOT)], capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    names = unpacked(archive, tmp_path)
    assert sum(name.endswith("/cep_core/engine.py") for name in names) == 1
    assert any(name.endswith("/tests/conftest.py") for name in names)
    subprocess.run([*build, "--wheel", str(archive).removesuffix(".tar.gz")], capture_output=True, check=True)
    assert contents(tmp_path / wheel.name) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    """The check sum of each file."""
    with zipfile.ZipFile(wheel) as archive:
        return {file.filename: file.CRC for file in archive.infolist()}


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
        actual = distribution(name)
        yield actual
        left += map(Requirement, actual.requires or ())


def test_what_the_wheel_holds(wheel: Path) -> None:
    """All that the command reads, and nothing of the tests or of a project's own."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for name in (
        "trendlake/cep_core/language/grammar.lark",
        "trendlake/pipelines/spark/LinkLogStore.java",
        "trendlake/pipelines/spark/LocalDisk.java",
        "trendlake/pipelines/spark/jars.lock",
        "trendlake/pipelines/shipped_files/conf/profiles/local.yaml",
        "trendlake/pipelines/shipped_files/dags/trendlake_dags.py",
        "trendlake/pipelines/shipped_files/data_contracts/results_trends.yaml",
        "trendlake/pipelines/shipped_files/docs/schemas/pattern.json",
        "trendlake/pipelines/shipped_files/docs/tutorial.md",
    ):
        assert name in names
    assert any(name.startswith("trendlake/pipelines/report/templates/") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"trendlake"}
    assert not any(name.endswith("flights.yaml") or "__pycache__" in name for name in names)


Command = Callable[..., str]


def commands(programs: Path, home: Path) -> Command:
    """Runs `trendlake` of the environment whose programs are in `programs`, in the project `plant` below `home` when it
    is there; returns what it printed. Nothing of this clone is in its environment variables."""
    environment = {"PATH": f"{programs}{os.pathsep}/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}

    def run(*words: str, code: int = 0) -> str:
        folder = home / "plant" if (home / "plant").is_dir() else home
        command = [str(programs / "trendlake"), *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run


def begin(run: Command, home: Path) -> Path:
    """A project with a source and a pattern, as a new user makes it; its folder. It has packages of its own whose names
    are those of our folders."""
    run("init", "plant")
    folder = home / "plant"
    for package in ("jobs", "pipelines", "cep_core", "tests", "dags"):
        (folder / package).mkdir(exist_ok=True)
        (folder / package / "__init__.py").touch()
    (folder / "january.csv").write_text(READINGS)
    roles = ("--event-id", "id", "--event-time", "at", "--type", "Reading")
    run("new", "source", "readings", "--from", "january.csv", *roles)
    run("new", "pattern", "rising", "--source", "readings", "--kind", "trends")
    (folder / "conf" / "patterns" / "rising.yaml").write_text(PATTERN)
    (folder / "conf" / "patterns" / "tests" / "rising.yaml").write_text(TESTS)
    return folder


@pytest.mark.long
def test_a_project_without_spark(installed: Path, tmp_path: Path) -> None:
    run = commands(installed, tmp_path)
    assert run("--version").startswith("trendlake ")
    folder = begin(run, tmp_path)
    assert run("validate").count("ok ") == 9
    assert "rising: 2 rows" in run("try", "rising", "--events", "january.csv")
    assert "1 passed, 0 failed" in run("test")
    run("explain", "rising", "--svg", "rising.svg")
    assert "<svg" in (folder / "rising.svg").read_text()
    assert run("docs", "tutorial").startswith("# Tutorial")
    assert '"properties"' in run("schema", "pattern")
    for words in (("setup", "--only", "spark"), ("run", "rising", *DAY)):
        printed = run(*words, code=1)
        assert "[NOT_INSTALLED]" in printed
        assert "pip install 'altair>=" in printed
        assert "trendlake" not in printed.partition("pip install")[2]


@pytest.fixture
def machine(wheel: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes an environment from the lock of a role, with the wheel; returns the folder of its programs."""
    uv = shutil.which("uv", path=f"{SET_UP}/tools/uv/bin{os.pathsep}{os.environ['PATH']}")
    assert uv is not None, "set-up leaves uv in the state folder"

    def make(role: str) -> Path:
        home = tmp_path / "environment"
        into = ["--python", str(home / "bin" / "python")]
        for words in (
            ["venv", "--no-project", "--python", sys.executable, str(home)],
            ["pip", "sync", *into, "--require-hashes", str(ROOT / "locks" / f"{role}.lock")],
            ["pip", "install", *into, "--no-deps", "--offline", str(wheel)],
        ):
            subprocess.run([uv, "--quiet", *words], check=True, env=os.environ | {"UV_SYSTEM_CERTS": "1"})
        return home / "bin"

    return make


@pytest.mark.chaos
@pytest.mark.spark
def test_a_project_with_spark(machine: Callable[[str], Path], tmp_path: Path) -> None:
    """From the lock of a Spark worker: Delta's jars are set up in the user's cache, then a run publishes rows."""
    run = commands(machine("spark"), tmp_path)
    begin(run, tmp_path)
    assert "[JARS_MISSING]" in run("setup", "--only", "spark", "--offline", code=1)
    assert f"ready for Spark: {tmp_path}/.cache/trendlake/spark-" in run(*JARS)
    run(*JARS[:3], "--offline")
    assert "48 rows" in run("ingest", "readings", "january.csv")
    run("run", "rising", *DAY)
    rows = json.loads(run("show", "rising", "--json"))["rows"]
    assert [row["machine"] for row in rows] == ["m1", "m2"]
    assert "Airflow is not installed" in run("airflow", code=1)


@pytest.mark.chaos
@pytest.mark.airflow
def test_a_project_with_airflow(machine: Callable[[str], Path], tmp_path: Path) -> None:
    """From the lock of an Airflow machine: the installed DAGs are parsed without errors, and the provider is listed."""
    run = commands(machine("airflow"), tmp_path)
    begin(run, tmp_path)
    run(*JARS)
    run("airflow", "dag-processor", "--num-runs", "1")

    def table(*words: str) -> list[dict[str, str]]:
        printed = run("airflow", *words, "-o", "json")
        return json.loads(printed[printed.index("[") : printed.rindex("]") + 1])

    assert table("dags", "list-import-errors") == []
    assert {row["dag_id"] for row in table("dags", "list")} == {"rising", "rising_revise", "ingest_readings"}
    assert "trendlake" in {row["package_name"] for row in table("providers", "list")}


@pytest.mark.long
def test_a_plan_of_a_clone_is_read(installed: Path, tmp_path: Path) -> None:
    """A pickle that was made in the clone by a short name, as Spark sends one to a worker of another environment."""
    done = subprocess.run([sys.executable, "-c", PICKLE], cwd=ROOT, capture_output=True, check=True)
    command, environment = [str(installed / "python"), "-c", READ], {"HOME": str(tmp_path)}
    answer = subprocess.run(command, input=done.stdout, cwd=tmp_path, env=environment, capture_output=True)
    assert answer.stdout.decode() == "trendlake.cep_core.trends.compile.plan False\n", answer.stderr.decode()


@pytest.mark.long
def test_the_engine_from_python(installed: Path, tmp_path: Path) -> None:
    command, environment = [str(installed / "python"), "-c", ENGINE], {"HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "[Decimal('15')]\n", done.stderr
