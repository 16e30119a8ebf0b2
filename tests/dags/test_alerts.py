"""The reason of a failed task in one line, from what SparkSubmitOperator says of its application."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

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
TRIED_AGAIN = {
    "a mistake": False,
    "with a place": False,
    "a fault": True,
    "killed": True,
    "a secret": True,
    "no application": True,
    "no word": True,
    "others write the same table": True,
    "a mistake, and then killed": True,
    "an option that is none": False,
}
"""What Airflow does after each: no other attempt can mend an error of the user's, or of the data."""
MORE = {
    "others write the same table": f"{SAID.format(code=1)}\n[BUSY_TABLE] other writers changed it",
    "an option that is none": f"{SAID.format(code=2)}\nNo such option: --nothing",
    "a mistake, and then killed": f"{SAID.format(code=137)}\n[TOLERANCE] 7 of 20 rows break the contract",
}
PROGRAM = """
import json, sys
from trendlake_alerts import reason_of
from trendlake_retries import RetryCrashes
errors = [ValueError(text) if text else None for text in json.load(sys.stdin)]
decisions = [RetryCrashes().evaluate(error, 1, 2).action.value for error in errors]
print("SAID" + json.dumps([[reason_of(error) for error in errors], decisions]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    """The reason, and the decision on another attempt, of each case. Airflow is imported in a process of its own: it
    sets up logging and warnings as it likes."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'dags'}", "AIRFLOW_HOME": str(tmp_path_factory.mktemp("home"))}
    texts = {name: text for name, (text, _) in CASES.items()} | MORE
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(list(texts.values())),
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    reasons, decisions = json.loads(done.stdout.split("SAID")[1])
    return dict(zip(texts, reasons, strict=True)), dict(zip(texts, decisions, strict=True))


@pytest.mark.airflow
def test_the_reason_is_one_line(answers: tuple[dict[str, str], dict[str, str]]) -> None:
    assert {name: answers[0][name] for name in CASES} == {name: line for name, (_, line) in CASES.items()}


@pytest.mark.airflow
def test_only_what_may_pass_is_tried_again(answers: tuple[dict[str, str], dict[str, str]]) -> None:
    assert answers[1] == {name: "default" if again else "fail" for name, again in TRIED_AGAIN.items()}
