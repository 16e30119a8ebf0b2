"""How a session starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.spark_settings import PROPERTIES, write_spark_settings
from pipelines.profile import Profile
from pipelines.project import Project
from pipelines.session import ARCHIVE, CLONE, DRIVER
from tests.conftest import ROOT, SETTINGS

PROGRAM = """
import json, sys
from pathlib import Path
from pipelines.profile import Profile
from pipelines.project import Project
from pipelines.session import start_session
start_session(Project(Path("."), Path(sys.argv[1])), Profile(master="local[1]", spark=json.loads(sys.argv[2])))
"""


@pytest.mark.spark
@pytest.mark.skipif(not (CLONE / ARCHIVE).is_file(), reason="set-up could make no archive of classes")
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
