"""A warehouse whose log store may lose the commit of one of two processes is not written, unless the profile says why
that cannot happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.pipelines.errors import ProfileError, UnsafeStoreError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile, read_profile
from trendlake.pipelines.project.stores import refuse_airflow, refuse_unsafe_store

PROJECT = Project(Path("/project"), Path("/state"))
S3 = ("s3a://bucket/lake", "s3://bucket", "s3n://bucket/lake", "S3A://bucket/lake")
UNKNOWN = ("oss://bucket/lake", "cosn://bucket/lake", "ofs://om/volume/lake", "dbfs://lake", "webhdfs://node:9870/lake")
SAFE = (
    "warehouse",
    "/mnt/lake",
    "file:///lake",
    "hdfs://node:8020/lake",
    "abfs://box@store.dfs.core.windows.net/lake",
    "abfss://box@store.dfs.core.windows.net/lake",
    "wasbs://box@store.blob.core.windows.net/lake",
    "gs://bucket/lake",
)


@pytest.mark.parametrize("warehouse", [*S3, *UNKNOWN])
def test_a_store_without_a_safe_log_store_is_refused_with_both_ways_out(warehouse: str) -> None:
    """Each way out, taken as it is printed, is accepted."""
    scheme = warehouse.partition("://")[0].lower()
    with pytest.raises(UnsafeStoreError) as refused:
        refuse_unsafe_store(Profile(warehouse=warehouse), PROJECT)
    assert f"spark.delta.logStore.{scheme}.impl: CLASS" in str(refused.value)
    assert "`writers: one`" in str(refused.value)
    refuse_unsafe_store(Profile(warehouse=warehouse, writers="one"), PROJECT)
    named = Profile(warehouse=warehouse, spark={f"spark.delta.logStore.{scheme}.impl": "org.example.LogStore"})
    refuse_unsafe_store(named, PROJECT)
    refuse_airflow(named, PROJECT)


@pytest.mark.parametrize("warehouse", SAFE)
def test_a_store_with_a_safe_log_store_is_written(warehouse: str) -> None:
    """By Airflow too."""
    refuse_airflow(Profile(warehouse=warehouse), PROJECT)


@pytest.mark.parametrize(
    "spark",
    [
        {"spark.delta.logStore.s3.impl": "org.example.LogStore"},
        {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"},
        {"spark.delta.logStore.class": "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore"},
        {"spark.delta.logStore.s3a.impl": ""},
    ],
)
def test_another_schemes_log_store_and_deltas_own_are_no_way_out(spark: dict[str, str]) -> None:
    """Delta's own for s3a is the one that loses commits, also where a profile names it."""
    with pytest.raises(UnsafeStoreError):
        refuse_unsafe_store(Profile(warehouse="s3a://bucket/lake", spark=spark), PROJECT)


def test_a_log_store_for_all_schemes_is_a_way_out() -> None:
    """Delta's older setting."""
    spark = {"spark.delta.logStore.class": "org.example.LogStore"}
    refuse_unsafe_store(Profile(warehouse="s3a://bucket/lake", spark=spark), PROJECT)


@pytest.mark.parametrize("setting", ["spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name"])
def test_a_plain_path_is_of_hadoops_default_file_system(setting: str) -> None:
    """Of the profile's, and of the one that a session has from Hadoop's own files."""
    with pytest.raises(UnsafeStoreError):
        refuse_unsafe_store(Profile(warehouse="/lake", spark={setting: "s3a://bucket"}), PROJECT)
    refuse_unsafe_store(Profile(warehouse="/lake", spark={setting: "hdfs://node:8020"}), PROJECT)
    refuse_unsafe_store(Profile(warehouse="file:///lake", spark={setting: "s3a://bucket"}), PROJECT)
    with pytest.raises(UnsafeStoreError):
        refuse_unsafe_store(Profile(warehouse="/lake"), PROJECT, "s3a://bucket")
    refuse_unsafe_store(Profile(warehouse="/lake"), PROJECT, "file:///")


def test_tables_of_other_programs_are_only_read() -> None:
    """Where they lie says nothing about the warehouse."""
    refuse_unsafe_store(Profile(warehouse="/lake", sources={"trades": "s3a://bucket/trades"}), PROJECT)


@pytest.mark.parametrize("warehouse", ["s3a://bucket/lake", "warehouse"])
def test_airflow_is_no_single_writer(warehouse: str) -> None:
    """Its tasks are processes, several at a time."""
    with pytest.raises(UnsafeStoreError, match="several processes") as refused:
        refuse_airflow(Profile(warehouse=warehouse, writers="one"), PROJECT)
    assert ("spark.delta.logStore.s3a.impl" in str(refused.value)) == warehouse.startswith("s3a")


def test_one_writer_is_one_step_at_a_time(tmp_path: Path) -> None:
    """Whatever the default is; another number is a mistake of the profile, with its line."""
    path = tmp_path / "p.yaml"
    path.write_text("writers: one\n")
    assert read_profile(path).limits.steps == 1
    path.write_text("limits: {shard_rows: 9}\nwriters: one\n")
    assert (read_profile(path).limits.steps, read_profile(path).limits.shard_rows) == (1, 9)
    path.write_text("writers: one\nlimits:\n  steps: 2\n")
    with pytest.raises(ProfileError, match=r"with `writers: one` it is 1") as refused:
        read_profile(path)
    assert "p.yaml:3:" in str(refused.value)
    path.write_text("writers: several\n")
    with pytest.raises(ProfileError, match="'one'"):
        read_profile(path)


def test_the_profiles_that_are_shipped_are_safe() -> None:
    """Each can be used as it is, by Airflow too."""
    for path in (ROOT / "conf" / "profiles").glob("*.yaml"):
        refuse_airflow(read_profile(path), PROJECT)
