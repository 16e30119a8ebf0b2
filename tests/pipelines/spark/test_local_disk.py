"""Hadoop's local disk without processes does what Hadoop's own does, which starts some."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from trendlake.pipelines.spark.disk_classes import FILE_SYSTEMS, LOG_STORE, use_local_disk

pytestmark = pytest.mark.spark
HADOOPS_OWN = "org.apache.hadoop.fs.RawLocalFileSystem"


@pytest.fixture
def by_class(spark: SparkSession) -> Callable[..., Any]:
    """A Java object by the name of its class, from jars of the session too; with Hadoop's configuration or none."""
    java: Any = spark.sparkContext._jvm
    loader = java.Thread.currentThread().getContextClassLoader()

    def made_of(name: str, *given: Any) -> Any:
        kinds = java.java.lang.reflect.Array.newInstance(java.Class.forName("java.lang.Class"), len(given))
        values = java.java.lang.reflect.Array.newInstance(java.Class.forName("java.lang.Object"), len(given))
        for at, one in enumerate(given):
            kinds[at], values[at] = one.getClass(), one
        return java.Class.forName(name, True, loader).getConstructor(kinds).newInstance(values)

    return made_of


@pytest.fixture
def disks(spark: SparkSession, by_class: Callable[..., Any]) -> tuple[Any, Any]:
    """Ours and Hadoop's."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    both = by_class("trendlake.LocalDisk"), by_class(HADOOPS_OWN)
    for disk in both:
        disk.initialize(spark.sparkContext._jvm.java.net.URI("file:///"), conf)
    return both


@pytest.mark.parametrize("again", [False, True])
def test_a_session_uses_it(spark: SparkSession, tmp_path: Path, again: bool) -> None:
    """By both of Hadoop's ways, with checksums; setting it a second time changes nothing."""
    if again:
        use_local_disk(spark)
    java: Any = spark.sparkContext._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path = java.org.apache.hadoop.fs.Path(str(tmp_path / "a"))
    files = path.getFileSystem(conf)
    context = java.org.apache.hadoop.fs.FileContext.getFileContext(conf).getDefaultFileSystem()
    assert [files.getClass().getName(), context.getClass().getName()] == list(FILE_SYSTEMS.values())
    files.create(path).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [".a.crc", "a"]


def test_the_jar_of_another_version(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of settings for spark-submit may name an older jar: Hadoop's own file system stays in use."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    before = {name: hadoop.get(name) for name in FILE_SYSTEMS}
    monkeypatch.setattr("trendlake.pipelines.spark.disk_classes.jar_name", lambda: "trendlake-local-disk-0.jar")
    try:
        for name in FILE_SYSTEMS:
            hadoop.unset(name)
        use_local_disk(spark)
        assert not any(hadoop.get(name) in FILE_SYSTEMS.values() for name in FILE_SYSTEMS)
    finally:
        for name, value in before.items():
            hadoop.set(name, value)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o1777, 0o000])
@pytest.mark.parametrize("name", ["a", "100%25 ä", "-R"])
def test_modes(spark: SparkSession, disks: tuple[Any, Any], tmp_path: Path, mode: int, name: str) -> None:
    """Of files and folders, as they are made and as they are changed."""
    java: Any = spark.sparkContext._jvm
    permission = java.org.apache.hadoop.fs.permission.FsPermission(mode)
    modes = []
    for disk, folder in zip(disks, (tmp_path / "ours", tmp_path / "theirs"), strict=True):
        folder.mkdir()
        file, inner = (java.org.apache.hadoop.fs.Path(str(folder), f"{what}{name}") for what in ("", "d"))
        disk.create(file, False, 4096, 1, 1 << 25, None).close()
        before = [stat.S_IMODE(os.stat(folder / name).st_mode)]
        disk.setPermission(file, permission)
        disk.mkdirs(inner, permission)
        modes.append([*before, *(stat.S_IMODE(os.stat(folder / one).st_mode) for one in (name, f"d{name}"))])
    assert modes[0] == modes[1]
    assert modes[0][1] == mode


def test_links(spark: SparkSession, disks: tuple[Any, Any], tmp_path: Path) -> None:
    """What a name is said to be: a file, a folder, a link to one or to nothing, or missing."""
    java: Any = spark.sparkContext._jvm
    (tmp_path / "file").write_text("abc")
    (tmp_path / "folder").mkdir()
    for link, to in (("to file", "file"), ("to folder", "folder"), ("to none", "none")):
        (tmp_path / link).symlink_to(tmp_path / to)
    for name in ("file", "folder", "to file", "to folder", "to none", "none"):
        path = java.org.apache.hadoop.fs.Path(str(tmp_path), name)
        ours, theirs = (_described(disk, path) for disk in disks)
        assert ours == theirs, name


def _described(disk: Any, path: Any) -> Any:
    try:
        status = disk.getFileLinkStatus(path)
    except Py4JJavaError as error:
        return error.java_exception.getClass().getName()
    return status.toString()


def test_a_missing_file_has_no_mode(spark: SparkSession, disks: tuple[Any, Any], tmp_path: Path) -> None:
    java: Any = spark.sparkContext._jvm
    path = java.org.apache.hadoop.fs.Path(str(tmp_path / "none"))
    for disk in disks:
        with pytest.raises(Py4JJavaError, match="none"):
            disk.setPermission(path, java.org.apache.hadoop.fs.permission.FsPermission(0o644))


def test_a_replaced_entry_is_read_back(spark: SparkSession, by_class: Callable[..., Any], tmp_path: Path) -> None:
    """Also where Hadoop has left a checksum of what stood there before."""
    java: Any = spark.sparkContext._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    ours, hadoops = (by_class(name, conf) for name in (LOG_STORE, "io.delta.storage.HDFSLogStore"))
    path = java.org.apache.hadoop.fs.Path(f"file:{tmp_path}/_last_checkpoint")
    for store, line in ((hadoops, "one"), (ours, "another"), (ours, "a third"), (hadoops, "a fourth"), (ours, "last")):
        store.write(path, java.java.util.ArrayList([line]).iterator(), True, conf)
        assert list(_lines(ours, path, conf)) == list(_lines(hadoops, path, conf)) == [line]
    assert [file.name for file in tmp_path.iterdir()] == ["_last_checkpoint"]


def _lines(store: Any, path: Any, conf: Any) -> list[str]:
    lines, read = store.read(path, conf), []
    while lines.hasNext():
        read.append(lines.next())
    lines.close()
    return read
