"""jobs/submit.py, which spark-submit runs as a script."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

SUBMIT = ROOT / "jobs" / "submit.py"
PROBE = f"""
import runpy, sys
from importlib.util import find_spec
sys.path.insert(0, {str(SUBMIT.parent)!r})  # as Python does with a script's folder
before = find_spec("terminal") is not None
runpy.run_path({str(SUBMIT)!r}, run_name="imported")
print(before, find_spec("terminal") is not None)
"""


def test_packages_of_jobs_do_not_shadow_others() -> None:
    """`jobs/airflow` must not be imported as `airflow`."""
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_it_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, SUBMIT, "--version"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.startswith("trendlake ")
