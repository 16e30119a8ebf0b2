"""Spark's settings as a file, for what spark-submit starts: Trendlake's settings, the profile's, Delta's jars.

A session that Python starts has them from `pipelines.spark.session`; under spark-submit Java runs before Python
does, so its memory and its class path have to be known earlier.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.redaction import JAVA_PATTERN
from trendlake.pipelines.spark.session import DRIVER, archived, jar_settings, settings_of

LOG4J = f"""\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {JAVA_PATTERN}
# No news: said on every machine without Hadoop's C library, and for every query with many columns.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.strings.name = org.apache.spark.sql.catalyst.util.SparkStringUtils
logger.strings.level = error
"""
PROPERTIES = "spark-defaults.conf"


def write_spark_settings(folder: Path, project: Project, profile: Profile) -> None:
    """Makes `PROPERTIES` in `folder`. Raises JarsMissingError."""
    settings = settings_of(profile)
    folder.mkdir(parents=True, exist_ok=True)
    logging = folder / "log4j2.properties"
    logging.write_text(LOG4J)
    options = (archived(project), settings[DRIVER], f"-Dlog4j2.configurationFile={logging.resolve().as_uri()}")
    settings |= jar_settings(project, profile) | {
        "spark.pyspark.driver.python": sys.executable,  # else it would be the workers', where the profile names one
        DRIVER: " ".join(options),
    }
    defaults = folder / PROPERTIES
    defaults.touch(mode=0o600)
    defaults.chmod(0o600)  # the profile's settings may hold secrets
    defaults.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
