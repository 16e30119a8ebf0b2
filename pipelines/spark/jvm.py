"""Classes of Java, as Python asks for them by name."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark.sql import SparkSession

DELTA_LOG = "org.apache.spark.sql.delta.DeltaLog"
BY_LAST_NAME = (
    "org.apache.spark.SparkConf",
    "org.apache.spark.api.python.PythonErrorUtils",
    "org.apache.spark.api.python.PythonRDD",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.api.python.SerDeUtil",
    "org.apache.spark.api.python.SimplePythonFunction",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.sql.functions",
)
"""Classes that PySpark asks for by their last names."""
BY_FULL_NAME = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
    "org.apache.spark.sql.functions",
    "org.apache.spark.storage.StorageLevel",
)
"""Classes that PySpark asks for again and again."""
BY_PARTS = ("io.delta.tables.DeltaTable", "java.util.HashMap", "py4j.reflection.TypeUtil")
"""Classes that Delta and PySpark ask for as `jvm.io.delta...`: Java is asked whether there is a class `io`, one
`io.delta`, and so on."""


class HeldClass(JavaClass):  # type: ignore[misc]
    """A class of Java whose static methods are asked for once each."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):  # what a field holds may change
            self.__dict__[name] = member
        return member


def hold_classes(spark: SparkSession) -> None:
    """Has the classes at hand that PySpark and Delta use for every column and table. py4j asks Java for a class and for
    its method whenever one is called, and Java searches all jars for a name that is none of a class's: that takes
    longer than to call `col`."""
    view: Any = spark.sparkContext._jvm
    for name in BY_FULL_NAME:
        java_class(spark, name)
    for name in BY_LAST_NAME:
        setattr(view, name.rpartition(".")[2], java_class(spark, name))
    for name in BY_PARTS:
        at, packages = view, name.split(".")[:-1]
        for depth, package in enumerate(packages, 1):
            whole = ".".join(packages[:depth])
            at = vars(at).setdefault(package, JavaPackage(whole, view._gateway_client, view._id))
        setattr(at, name.rpartition(".")[2], java_class(spark, name))


def java_class(spark: SparkSession, name: str) -> Any:
    """The class of that full name, or a Scala object by its static methods. Asked for by its parts, as
    `jvm.org.apache...`, all jars are searched for a class `org`, for one `org.apache`, and so on."""
    view: Any = spark.sparkContext._jvm
    return vars(view).setdefault(name, HeldClass(name, view._gateway_client))
