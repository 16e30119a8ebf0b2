"""A task and the application that it started: steps that are done, and an application that ends with its task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trendlake.jobs.actions.steps import run_steps
from trendlake.jobs.airflow.progress import TASK_GONE, progress_file, steps_done, write_step
from trendlake.pipelines.errors import StepOrderError

TASK = """
import sys, time
from trendlake.jobs.airflow.progress import progress_file
with progress_file() as path:
    print(path, flush=True)
    sys.stdin.read()
"""
APPLICATION = """
import sys, time
from pathlib import Path
from trendlake.jobs.airflow.progress import end_with_task
end_with_task(Path(sys.argv[1]))
print("started", flush=True)
time.sleep(120)
"""


def test_steps_are_read_in_their_order() -> None:
    with progress_file() as path:
        assert steps_done(path) == {}
        write_step(path, "check_source", "flights at version 3: 7 rows in")
        write_step(path, "compute", "1 window,\n2 rows")
        with path.open("a") as file:
            file.write('["publish", "cut')  # a driver that was killed while it wrote
        assert list(steps_done(path).items()) == [
            ("check_source", "flights at version 3: 7 rows in"),
            ("compute", "1 window,\n2 rows"),
        ]
    assert not path.exists()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_application_ends_with_its_task(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", TASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as task:
        assert task.stdout is not None
        path = task.stdout.readline().decode().strip()
        command = [sys.executable, "-c", APPLICATION, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as application:
            assert application.stdout is not None
            assert application.stdout.readline() == b"started\n"
            time.sleep(1.5)
            assert application.poll() is None
            os.kill(task.pid, how)
            _, errors = application.communicate(timeout=30)
            assert application.returncode == TASK_GONE
            assert b"the task that started this application has ended" in errors
    Path(path).unlink(missing_ok=True)


def test_a_file_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    write_step(tmp_path / "elsewhere", "compute", "")
    assert list(tmp_path.iterdir()) == []
    command = [sys.executable, "-c", APPLICATION.replace("120", "2"), str(tmp_path / "elsewhere")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("steps", ["compute,publish", "publish,compute", "comput", ""])
def test_steps_are_neighbours(steps: str) -> None:
    with pytest.raises(StepOrderError, match="expected neighbours of check_source, compute"):
        run_steps("any", "2013-01-01", "2013-01-02", "r", steps, None, None, None)
