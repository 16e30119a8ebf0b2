"""No kernel reads or writes outside its arrays: numba checks every index, in a process and a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.random


@pytest.mark.slow
@pytest.mark.chaos
def test_every_index_is_inside(tmp_path: Path) -> None:
    """1,000 questions; without the check such a mistake ends in wrong numbers or a crash of the worker."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "TRENDLAKE_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.random.fuzz", "--chunks", "1", "--seconds", "500"]
    for theme in (("--seed", "9003"), ("--seed", "1", "--long")):
        done = subprocess.run(
            [*command, *theme], cwd=ROOT, env=os.environ | checked, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
