"""The log store that makes commits of several processes to a table on a local disk safe, as a jar for Spark.

The source is `LinkLogStore.java`, which says what it does. The Java compiler that Spark brings along (Janino) compiles
it, since a machine that runs Spark may have no other; set-up does so, and else the first session.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pipelines.errors import JarsMissingError
from pipelines.spark.java_home import java_program
from pipelines.spark.setup_files import spark_jars

SOURCE = Path(__file__).with_name("LinkLogStore.java")
SETTING = "spark.delta.logStore.file.impl"
CLASS = "trendlake.LinkLogStore"
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
"""Janino's command line; its options are those of javac."""


def jar_name() -> str:
    """Another one where the source is another."""
    return f"trendlake-log-store-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.jar"


def compile_log_store(folder: Path, delta: Sequence[Path]) -> Path:
    """Makes `jar_name()` in `folder`, if it is not there; returns its path. `delta`: Delta's jars. Several processes
    may do so at once. Raises as `compile_java`."""
    jar = folder / jar_name()
    if not jar.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="log-store-", dir=folder) as scratch:
            compile_java(SOURCE, Path(scratch), delta)
            fresh = Path(scratch) / jar.name
            with zipfile.ZipFile(fresh, "w") as archive:
                for file in sorted(Path(scratch).rglob("*.class")):
                    archive.write(file, file.relative_to(scratch))
            fresh.replace(jar)
    return jar


def compile_java(source: Path, to: Path, delta: Sequence[Path]) -> None:
    """Compiles a Java file against Spark's and Delta's jars. Raises JarsMissingError where the compiler fails,
    JavaMissingError."""
    path = class_path(delta)
    command = [java_program(), "-cp", path, COMPILER, "-d", str(to), "-classpath", path, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    # Janino's exit status is 0 whatever became of it.
    if done.returncode or not any(to.rglob("*.class")):
        raise JarsMissingError(
            f"{source.name} cannot be compiled: {(done.stderr or done.stdout).strip()[:500]}",
            hint="are the jars those of `trendlake setup`, and is JAVA_HOME a Java 17 or newer?",
        )


def class_path(delta: Sequence[Path]) -> str:
    """Spark's jars and Delta's."""
    return os.pathsep.join(map(str, (*spark_jars(), *delta)))
