"""A caller's session of Spark. A project works by another one of the same Spark, so that the caller's settings stay."""

from __future__ import annotations

from pyspark.sql import SparkSession

from trendlake.pipelines.errors import SessionError
from trendlake.pipelines.spark.session import DEFAULTS, FIXED

EXTENSIONS, CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
OF_A_SESSION = ("spark.sql.", "spark.databricks.")
"""How settings begin that a session may have for itself."""


def refuse_unusable(session: SparkSession) -> None:
    """Raises SessionError for a session of Spark Connect, and for one that does not know Delta."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SessionError(
            "a session of Spark Connect has no Java in this process, by which tables are committed",
            hint="give a classic session, or none",
        )
    if FIXED[EXTENSIONS] not in str(session.conf.get(EXTENSIONS, "")):
        raise SessionError(
            "the session does not know Delta",
            hint=f"start it with {EXTENSIONS}={FIXED[EXTENSIONS]} and {CATALOG}={FIXED[CATALOG]}, and Delta's jars",
        )


def use_own_settings(session: SparkSession) -> None:
    """Gives a session that no other code has Trendlake's settings, as far as a session may have its own."""
    for name, value in (DEFAULTS | FIXED).items():
        if name.startswith(OF_A_SESSION) and name != EXTENSIONS:
            session.conf.set(name, value)
