"""How a session starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SETTINGS
from trendlake.jobs.airflow.spark_settings import PROPERTIES, write_spark_settings
from trendlake.pipelines.errors import JavaMissingError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.spark.java_home import choose_java
from trendlake.pipelines.spark.session import ARCHIVE, DRIVER
from trendlake.pipelines.spark.setup_files import shared_folder


@pytest.mark.parametrize(
    ("java_home", "message"),
    [
        (None, "there is no Java: JAVA_HOME is not set, and no java is on the PATH"),
        ("/none", "there is no Java in /none"),
    ],
)
def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java_home: str | None, message: str) -> None:
    """One error with what to do, before Spark's scripts can fail."""
    monkeypatch.setattr("trendlake.pipelines.project.shipped.CLONE", tmp_path / "no clone")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if java_home:
        monkeypatch.setenv("JAVA_HOME", java_home)
    with pytest.raises(JavaMissingError, match=message) as raised:
        choose_java(Project(tmp_path, tmp_path / "state"))
    assert "install Java 17" in str(raised.value.hint)


def started(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A session of a process of its own, which works in `folder`, and one after it."""
    program = folder / "program.py"
    program.write_text(PROGRAM + AGAIN)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "LANG"}
    command = [sys.executable, str(program), str(folder / "state"), json.dumps(SETTINGS)]
    env = inherited | {"PYTHONPATH": str(ROOT)} | env
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
@pytest.mark.spark
def test_a_folder_that_ascii_cannot_name(tmp_path: Path) -> None:
    """cron has no locale: Java is given one. It stays when its session is stopped, and the next one uses it."""
    folder = tmp_path / "größe"
    folder.mkdir()
    done = started(folder, LC_ALL="C")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")  # nor a word of Java's


def test_a_java_that_cannot_run_spark(tmp_path: Path) -> None:
    """What it says is there, and one error instead of Python's lines."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    real = shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin") if "JAVA_HOME" in os.environ else None
    real = real or str(shutil.which("java"))
    fails = "*org.apache.spark*) echo class file version 61.0 >&2; exit 1;;"
    java.write_text(f'#!/bin/sh\ncase "$*" in {fails} esac\nexec "{real}" "$@"\n')
    java.chmod(0o755)
    done = started(tmp_path, JAVA_HOME=str(java.parents[1]))
    assert "class file version 61.0" in done.stderr
    assert "[JAVA_MISSING] Java ended before Spark had started" in done.stderr


PROGRAM = """
import json, sys
from pathlib import Path
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.spark.session import start_session
asked = Project(Path("."), Path(sys.argv[1])), Profile(master="local[1]", spark=json.loads(sys.argv[2]))
session = start_session(*asked)
"""
AGAIN = """
import subprocess
processes = []
start = subprocess.Popen.__init__
subprocess.Popen.__init__ = lambda process, *how, **more: processes.append(how) or start(process, *how, **more)
session.stop()
assert start_session(*asked).range(3).count() == 3
assert not processes, processes
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.skipif(not (shared_folder() / ARCHIVE).is_file(), reason="set-up could make no archive of classes")
@pytest.mark.parametrize("way", ["a command", "a step of Airflow's"])
def test_java_has_its_classes_from_the_archive_that_set_up_made(tmp_path: Path, way: str) -> None:
    log, program, state = tmp_path / "classes.log", tmp_path / "program.py", tmp_path / "state"
    settings = SETTINGS | {DRIVER: f"{SETTINGS[DRIVER]} -Xlog:class+load:file={log}"}
    write_spark_settings(tmp_path, Project(ROOT, state), Profile(spark=settings))
    program.write_text(PROGRAM)
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    submit += ["--properties-file", str(tmp_path / PROPERTIES)]
    command = [*([sys.executable] if way == "a command" else submit), str(program), str(state), json.dumps(settings)]
    env = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout
    (line,) = (line for line in log.read_text().splitlines() if " org.apache.spark.SparkContext source: " in line)
    assert line.endswith("shared objects file (top)")
