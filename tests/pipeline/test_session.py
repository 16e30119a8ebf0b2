"""How a session starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_java_has_its_classes_from_the_archive_that_set_up_made(tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    settings = SETTINGS | {DRIVER: f"{SETTINGS[DRIVER]} -Xlog:class+load:file={log}"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), json.dumps(settings)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert not done.stdout
    (line,) = (line for line in log.read_text().splitlines() if " org.apache.spark.SparkContext source: " in line)
    assert line.endswith("shared objects file (top)")
