"""How much of its work Spark has done, for who waits."""

from __future__ import annotations

import time
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.progress import Count

pytestmark = pytest.mark.spark


def test_the_tasks_of_a_job(spark: SparkSession) -> None:
    """None before it and after it; meanwhile those of its stage."""
    lake, seen = bare_lake(spark), set[Count]()
    assert lake.tasks is None
    frame = spark.range(0, 6, 1, 6).selectExpr("java_method('java.lang.Thread', 'sleep', 150L + id)")
    job = Thread(target=frame.collect)
    job.start()
    while job.is_alive():
        count = lake.tasks
        seen |= set() if count is None else {count}
        time.sleep(0.02)
    job.join()
    assert {(count.total, count.units) for count in seen} == {(6, "tasks of Spark")}
    assert len({count.done for count in seen}) > 1
    assert lake.tasks is None
