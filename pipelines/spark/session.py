"""One Spark session with Delta."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from trendlake.pipelines.errors import JavaMissingError, SessionError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import PYTHON, Profile
from trendlake.pipelines.project.stores import ANY_SCHEME, refuse_unsafe_store
from trendlake.pipelines.redaction import JAVA_PATTERN
from trendlake.pipelines.spark import disk_classes
from trendlake.pipelines.spark.jars import find_jars
from trendlake.pipelines.spark.java_home import JAVA_HINT, choose_java
from trendlake.pipelines.spark.java_process import start_java
from trendlake.pipelines.spark.jvm import hold_classes, java_class
from trendlake.pipelines.spark.setup_files import setup_file

FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
}
DAEMON = "spark.python.daemon.module"
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.python.worker.reuse": "true",
    DAEMON: "trendlake.pipelines.steps.worker_parent",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    **{f"spark.executorEnv.MALLOC_{name}_THRESHOLD_": str(1 << 28) for name in ("MMAP", "TRIM")},
}
"""With debugging, PySpark tells Java of each column that is made on which line of Python that was: four fifths of the
time that it takes to make one. Moments are written so that a file has statistics of them: Spark's own old way (INT96)
has none, and years after 2262 that others read wrong. Delta's VACUUM lists files in as many tasks as `parallelism`
says, by default 10,000: minutes for a few files. The checksum of a commit does not list the table's files: Delta would
ask Spark for them at every commit, and reads them from the log all the same. Delta
would read a log compaction file in place of the commits that it repeats, which are always there, and take an empty one
for commits without files. glibc in a worker keeps up to 256 MiB that
a kernel has given back: to fault the pages in again for each block takes a tenth of a kernel's time. Python workers are
forks of `pipelines/steps/worker_parent.py`, which has imported the engine."""
DRIVER, EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow does not check the bounds of each value again in Java, as Spark has made room for it: a fifth of what it
takes to hand rows to Python."""
CODE = "-XX:ReservedCodeCacheSize=240m"
"""Room for all code that Java has compiled. With the quick compiler alone there is room for 48 MB by default, which
Spark fills within minutes: from then on code is thrown away and compiled again, or not compiled any more."""
WHOLE_STAGE = "spark.sql.codegen.wholeStage"
ARCHIVE = "classes.jsa"
"""The file that `scripts/class_archive.py` writes: Spark's Java classes, read and verified (class data sharing), so
that it is up in half the time. Java sees whether they are of the jars at hand, and does without where not."""
JARS = "spark.jars"
LOG4J = f"""\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {JAVA_PATTERN}
"""
"""Errors only: Spark's greeting and its notes on the machine are no news to whoever typed a command."""


def jar_settings(project: Project, profile: Profile) -> dict[str, str]:
    """Delta's jars with the profile's own, and ours for the local disk unless the profile names another log store.
    Raises JarsMissingError, JavaMissingError."""
    delta = find_jars(project, profile)
    jars = [*map(str, delta), *filter(None, [profile.spark.get(JARS)])]
    if {disk_classes.LOG_STORE_SETTING, ANY_SCHEME} & profile.spark.keys():  # Delta takes no second one with ANY_SCHEME
        return {JARS: ",".join(jars)}
    compiled = setup_file(project, disk_classes.jar_name())
    if not compiled.is_file():
        compiled = disk_classes.compile_local_disk(project.state, delta)
    return {JARS: ",".join([*jars, str(compiled)]), disk_classes.LOG_STORE_SETTING: disk_classes.LOG_STORE}


def start_session(project: Project, profile: Profile, app: str = "trendlake", *, writes: bool = True) -> SparkSession:
    """The session of this process, started when there is none yet. `writes`: whether it may change the warehouse.

    Under spark-submit the master and jars given there stay. Raises JarsMissingError, JavaMissingError, SessionError
    where there is one of another program; of a session that writes, UnsafeStoreError, before anything is started.
    """
    if writes:
        refuse_unsafe_store(profile, project)
    other = SparkContext._active_spark_context
    if other is not None and other.getConf().get(DAEMON) != DEFAULTS[DAEMON]:
        message = "Spark runs in this process already, in a session that is not Trendlake's"
        raise SessionError(message, hint="trendlake.Project(folder, spark=session) uses it; or stop it first")
    os.environ["PYSPARK_PYTHON"] = profile.spark.get(PYTHON, sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        choose_java(project)
    settings = settings_of(profile) | {"spark.app.name": app}
    if profile.master and not submitted:
        settings["spark.master"] = profile.master
    settings.setdefault("spark.sql.warehouse.dir", str(project.state / "spark-warehouse"))
    settings[DRIVER] = f"{settings[DRIVER]} -Dlog4j2.configurationFile={_logging(project)}"
    if not submitted:
        settings[DRIVER] = f"{archived(project)} {settings[DRIVER]}"
        settings |= jar_settings(project, profile)
    try:
        if not submitted:
            start_java(settings)
        spark = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        used = os.environ.get("JAVA_HOME", "the java on the PATH")
        message = f"Java ended before Spark had started; what it said stands above ({used})"
        raise JavaMissingError(message, hint=JAVA_HINT) from None
    spark.sparkContext.setLogLevel("ERROR")
    if writes:  # files of Hadoop's may name another default file system than the profile does
        context: Any = spark.sparkContext
        refuse_unsafe_store(profile, project, context._jsc.hadoopConfiguration().get("fs.defaultFS"))
    disk_classes.use_local_disk(spark)
    hold_classes(spark)
    system = java_class(spark, "java.lang.System")
    system.setOut(system.err)  # Delta's VACUUM prints on what is a command's document for programs
    return spark


def settings_of(profile: Profile) -> dict[str, str]:
    """Trendlake's settings of Spark and the profile's."""
    settings = DEFAULTS | profile.spark | FIXED
    return settings | {name: f"{CODE} {settings[name]} {ARROW}" for name in (DRIVER, EXECUTOR)}


def archived(project: Project) -> str:
    """Options by which the driver's Java finds the archive of classes, where there is one; before the profile's."""
    archive = setup_file(project, ARCHIVE).resolve()
    if not archive.is_file() or "ArchiveClassesAtExit" in os.environ.get("SPARK_SUBMIT_OPTS", ""):
        return ""
    # Java would say on stdout, where a command's document for programs goes, that an archive is of other jars.
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:disable'


@contextmanager
def quiet(spark: SparkSession) -> Iterator[None]:
    """Without Java's log, for work whose failure is an answer and not an error."""
    before = java_class(spark, "org.apache.logging.log4j.LogManager").getRootLogger().getLevel().name()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        spark.sparkContext.setLogLevel(before)


@contextmanager
def uncompiled(spark: SparkSession | None) -> Iterator[None]:
    """Spark's plans are run as they are, not compiled to Java each: of few rows that takes less time than to compile
    them and to warm up. `spark`: None where it has not started, and is not to start for this."""
    if spark is None:
        yield
        return
    usual = spark.conf.get(WHOLE_STAGE, "true")
    spark.conf.set(WHOLE_STAGE, "false")
    try:
        yield
    finally:
        spark.conf.set(WHOLE_STAGE, str(usual))


def _logging(project: Project) -> str:
    """The settings of Java's logging, as a URL: Java reads them before Python can set anything."""
    project.make_state()
    path = project.state / "log4j2.properties"
    if not path.is_file() or path.read_text() != LOG4J:
        path.write_text(LOG4J)
    return path.resolve().as_uri()
