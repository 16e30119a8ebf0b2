"""`trendlake.Project` with a session of the caller's, and without one where another program has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trendlake
from tests.support.python_project import DAYS, SOURCE, make_project

OTHERS = """
import sys
from pyspark.sql import SparkSession
import trendlake

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for options in ({"spark": spark}, {}):
    try:
        trendlake.Project(sys.argv[1], **options).events("trades").spark()
    except trendlake.TrendlakeError as error:
        print(error.code, error.message)
print(spark.range(3).count())
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:the session is yours")
def test_a_session_of_the_callers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes, and reads what this process does not; afterwards it goes on, with the settings that it had."""
    monkeypatch.delenv("TRENDLAKE_STATE", raising=False)
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        spark.read.format("delta").load(f"{tmp_path}/.trendlake/warehouse/sources/trades").count()  # Delta sets some
        settings = dict(spark.conf.getAll)
        with trendlake.Project(tmp_path, spark=spark) as project:
            run = project.run("falling", *DAYS, on="spark")
            results, events = project.results("falling"), project.events("trades", *DAYS)
            assert {stage.road for stage in run.stages if stage.stage == "compute"} <= {"spark", None}
            frame = results.spark()
            assert frame.sparkSession is spark
            here = results.to_arrow()
            differences = project.diff("falling", 1, 2).to_arrow()
            history = project.history("falling", DAYS[0], group={"symbol": "A"}).to_arrow()
            for limit in ("RESULTS_READ", "JUDGED", "COMPARED", "FILES"):
                monkeypatch.setattr(f"trendlake.pipelines.lake.limits.{limit}", 0)
            assert project.results("falling").to_arrow().equals(here)
            assert project.diff("falling", 1, 2).to_arrow().equals(differences)
            assert project.history("falling", DAYS[0], group={"symbol": "A"}).to_arrow().equals(history)
            rows = trendlake.evaluate(project.patterns["falling"], project.events("trades", *DAYS))
            assert rows.equals(here)
            assert events.spark().count() == events.to_arrow().num_rows
        assert frame.count() == here.num_rows
        assert dict(spark.conf.getAll) == settings
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.long
@pytest.mark.spark
def test_a_session_of_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Delta it cannot be used; and none is taken that is not given."""
    monkeypatch.delenv("TRENDLAKE_STATE", raising=False)
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path, SOURCE)
    done = subprocess.run([sys.executable, "-c", OTHERS, tmp_path], capture_output=True, text=True, env=os.environ)
    assert done.stdout.splitlines() == [
        "SESSION the session does not know Delta",
        "SESSION Spark runs in this process already, in a session that is not Trendlake's",
        "3",
    ]
