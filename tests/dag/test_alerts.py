"""The reason of a failed task in one line, from what SparkSubmitOperator says of its application."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAID = "Cannot execute: spark-submit --master local[2] submit.py publish p.yaml. Error code is: {code}."
CASES = {
    "a mistake": (
        f"{SAID.format(code=1)}\nLast spark-submit output:\n12:00:01 WARN X: [SLOW] of Java\n"
        "[TOLERANCE] 7 of 20 rows break the contract\n    mend them",
        "[TOLERANCE] 7 of 20 rows break the contract",
    ),
    "with a place": (
        f"{SAID.format(code=1)}\n/p/a.yaml:3:5: [UNKNOWN_KEY] 'wihtin' is no key\n    wihtin: 1",
        "/p/a.yaml:3:5: [UNKNOWN_KEY] 'wihtin' is no key",
    ),
    "a fault": (
        f"{SAID.format(code=3)}\nLast spark-submit output:\nTraceback (most recent call last):\n  File x\n"
        "pyspark.AnalysisException: [TABLE_GONE] no table\n[FAULT] AnalysisException: [TABLE_GONE] no table",
        "[FAULT] AnalysisException: [TABLE_GONE] no table",
    ),
    "killed": (SAID.format(code=-9), "the Spark application ended with code -9 and gave no reason: its log is above"),
    "a secret": (
        f"{SAID.format(code=3)}\n[FAULT] IOError: no s3a://key:swordfish@bucket",
        "[FAULT] IOError: no s3a://***@bucket",
    ),
    "no application": ("spark-submit is not there\nat all", "ValueError: spark-submit is not there"),
    "no word": ("", "its process was killed, or its machine is gone"),
}
PROGRAM = """
import json, sys
from trendlake_alerts import reason_of
print("SAID" + json.dumps([reason_of(ValueError(text) if text else None) for text in json.load(sys.stdin)]))
"""


@pytest.mark.airflow
def test_the_reason_is_one_line(tmp_path: Path) -> None:
    """Airflow is imported in a process of its own: it sets up logging and warnings as it likes."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'dags'}", "AIRFLOW_HOME": str(tmp_path)}
    asked = json.dumps([text for text, _ in CASES.values()])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=asked, env=env, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.split("SAID")[1])
    assert dict(zip(CASES, found, strict=True)) == {name: line for name, (_, line) in CASES.items()}
