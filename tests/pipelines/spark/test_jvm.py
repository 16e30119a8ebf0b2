"""Classes of Java that are at hand: those that py4j would give, without asking for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.spark.jvm import BY_FULL_NAME, BY_LAST_NAME, BY_PARTS, HeldClass, java_class

pytestmark = pytest.mark.spark

NAMES = [*(name.rpartition(".")[2] for name in BY_LAST_NAME), *BY_FULL_NAME]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_class_of_that_name(spark: SparkSession, name: str) -> None:
    view: Any = spark.sparkContext._jvm
    assert isinstance(held := getattr(view, name), HeldClass)
    assert held._fqn == JVMView.__getattr__(view, name)._fqn


@pytest.mark.parametrize("name", BY_PARTS)
def test_it_is_the_class_in_that_package(spark: SparkSession, name: str) -> None:
    at: Any = spark.sparkContext._jvm
    for part in name.split("."):
        package, at = at, getattr(at, part)
    assert isinstance(at, HeldClass)
    assert at._fqn == JavaPackage.__getattr__(package, part)._fqn == name
    assert package.NoSuchClass._fqn == f"{package._fqn}.NoSuchClass"  # others there are asked for as before


def test_nothing_is_asked_for_again(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, tables and functions of Python's, the second time."""
    schema = pa.schema({"n": pa.int64()})

    def use(name: str) -> list[Any]:
        frame = spark.createDataFrame([(1,), (2,)], "n long").select((sf.col("n") + sf.lit(1)).alias("n"))
        frame.write.format("delta").save(str(tmp_path / name))
        table = DeltaTable.forPath(spark, str(tmp_path / name)).toDF()
        copied = table.mapInArrow(lambda batches: batches, "n long").toArrow()
        assert copied.schema.names == schema.names
        return sorted(copied["n"].to_pylist())

    assert use("first") == [2, 3]
    asked: list[str] = []
    for kind in (JVMView, JavaPackage, JavaClass):

        def noted(self: Any, name: str, real: Any = kind.__getattr__) -> Any:
            asked.append(name)
            return real(self, name)

        monkeypatch.setattr(kind, "__getattr__", noted)
    assert use("second") == [2, 3]
    assert asked == []


def test_fields_are_read_each_time(spark: SparkSession) -> None:
    """A method is the same for good, what a field holds may be another."""
    held = java_class(spark, "java.lang.System")
    assert java_class(spark, "java.lang.System") is held
    assert isinstance(held.nanoTime, JavaMember)
    assert held.err is not None
    assert "nanoTime" in vars(held)
    assert "err" not in vars(held)
