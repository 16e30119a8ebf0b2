"""Java classes by which Spark uses tables on a local disk safely and quickly, as a jar for it.

Each source says what it does: `LinkLogStore.java` makes commits of several processes safe, `LocalDisk.java` lets Hadoop
use the disk without starting processes. The Java compiler that Spark brings along (Janino) compiles them, since a
machine that runs Spark may have no other; set-up does so, and else the first session.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from trendlake.pipelines.errors import JarsMissingError
from trendlake.pipelines.spark.java_home import java_program
from trendlake.pipelines.spark.jvm import java_class
from trendlake.pipelines.spark.setup_files import spark_jars

SOURCES = tuple(Path(__file__).with_name(f"{name}.java") for name in ("LinkLogStore", "LocalDisk"))
LOG_STORE_SETTING = "spark.delta.logStore.file.impl"
LOG_STORE = "trendlake.LinkLogStore"
FILE_SYSTEMS = {
    "fs.file.impl": "trendlake.LocalDisk$WithChecksums",
    "fs.AbstractFileSystem.file.impl": "trendlake.LocalDisk$ContextWithChecksums",
}
"""Settings of Hadoop's two ways to a file system."""
HADOOPS = {"fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs"}
"""The values that Hadoop sets by itself."""
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
"""Janino's command line; its options are those of javac."""


def jar_name() -> str:
    """Another one where the source is another."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    return f"trendlake-local-disk-{hashlib.sha256(text).hexdigest()[:12]}.jar"


def compile_local_disk(folder: Path, delta: Sequence[Path]) -> Path:
    """Makes `jar_name()` in `folder`, if it is missing; returns its path. `delta`: Delta's jars. Several processes may
    do so at once. Raises as `compile_java`."""
    jar = folder / jar_name()
    if not jar.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="local-disk-", dir=folder) as scratch:
            compile_java(SOURCES, Path(scratch), delta)
            fresh = Path(scratch) / jar.name
            with zipfile.ZipFile(fresh, "w") as archive:
                for file in sorted(Path(scratch).rglob("*.class")):
                    archive.write(file, file.relative_to(scratch))
            fresh.replace(jar)
    return jar


def use_local_disk(spark: SparkSession) -> None:
    """Sets `FILE_SYSTEMS` in Hadoop's configuration if the session has this version's jar, except for settings that the
    user has made. The settings of spark-submit may still name the jar of an older version, without these classes. Spark
    cannot have them from its start: it opens the local disk before it loads the jar."""
    context: Any = spark.sparkContext
    if jar_name() not in context.getConf().get("spark.jars", ""):
        return
    hadoop = context._jsc.hadoopConfiguration()
    settings = {name: value for name, value in FILE_SYSTEMS.items() if hadoop.get(name) in (None, HADOOPS.get(name))}
    for name, value in settings.items():
        hadoop.set(name, value)
    if settings:
        files = java_class(spark, "org.apache.hadoop.fs.FileSystem")
        files.getLocal(hadoop).close()  # Spark's first one, which Hadoop would go on to hand out
        files.getLocal(hadoop)  # before a caller with other settings asks first, and all get its file system


def compile_java(sources: Sequence[Path], to: Path, delta: Sequence[Path]) -> None:
    """Compiles Java files against Spark's and Delta's jars. Raises JarsMissingError where the compiler fails,
    JavaMissingError."""
    path = class_path(delta)
    command = [java_program(), "-cp", path, COMPILER, "-d", str(to), "-classpath", path, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    names = ", ".join(source.name for source in sources)
    # Janino's exit status is 0 whatever became of it.
    if done.returncode or not any(to.rglob("*.class")):
        raise JarsMissingError(
            f"{names} cannot be compiled: {(done.stderr or done.stdout).strip()[:500]}",
            hint="are the jars those of `trendlake setup`, and is JAVA_HOME a Java 17 or newer?",
        )


def class_path(delta: Sequence[Path]) -> str:
    """Spark's jars and Delta's."""
    return os.pathsep.join(map(str, (*spark_jars(), *delta)))
