"""Leaves an archive of the Java classes that Spark loads (class data sharing), with which a session is up in half the
time.

    python scripts/class_archive.py --to .trendlake

Java writes it as a session ends that has done what commands have Spark do. Where the jars and Java are those of the
last time, nothing is done. It is a convenience: what goes wrong is said, and is no error.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAMP = "classes.stamp"
SECONDS = 300


def stamp() -> str:
    """Changes where an archive would no longer be used: Java compares the jars' times and sizes."""
    import pyspark

    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    inputs = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    java = Path(os.environ["JAVA_HOME"])
    release = java / "release"
    inputs += [str(java), release.read_text() if release.is_file() else "", Path(__file__).read_text()]
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()


def train(folder: Path) -> None:
    """What commands have Spark and Delta do, on a few rows."""
    from delta.tables import DeltaTable
    from pyspark import SparkContext
    from pyspark.sql import functions as sf

    from trendlake.pipelines.lake.create import FED
    from trendlake.pipelines.project.paths import find_project
    from trendlake.pipelines.project.profile import load_profile
    from trendlake.pipelines.spark.session import start_session

    project = find_project(ROOT)
    spark = start_session(project, load_profile(project, None))
    rows = spark.range(1000).select(
        sf.col("id").cast("string").alias("id"), sf.timestamp_micros("id").alias("time"), sf.col("id").alias("value")
    )
    path = f"{folder}/table"
    table = DeltaTable.createIfNotExists(spark).location(path).addColumns(rows.schema)
    for name, value in FED.items():
        table = table.property(name, value)
    table.execute()
    rows.where("value < 600").write.format("delta").mode("append").save(path)
    merge = DeltaTable.forPath(spark, path).alias("t").merge(rows.where("value > 500").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"value": sf.lit(0)}).whenNotMatchedInsertAll().execute()
    DeltaTable.forPath(spark, path).history(2).collect()
    spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path).count()
    read = spark.read.format("delta").option("versionAsOf", 1).load(path)
    sums = read.groupBy("time").agg(sf.sum("value").alias("value")).orderBy("value")
    sums.mapInArrow(lambda batches: batches, sums.schema).write.parquet(f"{folder}/files")
    spark.read.parquet(f"{folder}/files").toArrow()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends, and writes the archive
    gateway.proc.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, required=True, help="the state folder, with Delta's jars")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    state = asked.to.resolve()
    if asked.train:
        train(state)
        return
    archive, noted, want = state / "classes.jsa", state / STAMP, stamp()
    if archive.is_file() and noted.is_file() and noted.read_text() == want:
        return
    print("set-up: an archive of Spark's classes, by which it starts sooner", flush=True)
    archive.unlink(missing_ok=True)
    try:
        make(archive, state / "jars")
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        print(f"set-up: there is none, Spark starts as it does: {error}")
        return
    noted.write_text(want)


def make(archive: Path, jars: Path) -> None:
    """Whole or not at all: Java does not see that a part is missing. Raises RuntimeError, OSError, TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="trendlake-classes-") as folder:
        temporary = Path(folder) / archive.name
        own = {
            "TRENDLAKE_STATE": folder,
            "TRENDLAKE_JARS": str(jars),
            "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={temporary}",
        }
        inherited = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
        command = [sys.executable, __file__, "--train", "--to", folder]
        done = subprocess.run(
            command, cwd=ROOT, env=inherited | own, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode or not temporary.is_file():
            raise RuntimeError((done.stdout + done.stderr).strip()[-500:])
        partial = archive.with_suffix(".part")
        shutil.copyfile(temporary, partial)
        partial.replace(archive)


if __name__ == "__main__":
    main()
