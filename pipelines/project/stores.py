"""Which warehouses several processes may write at the same time: a matter of Delta's log store for their scheme."""

from __future__ import annotations

from trendlake.pipelines.errors import UnsafeStoreError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile

SAFE = frozenset({"file", "hdfs", "abfs", "abfss", "wasb", "wasbs", "gs"})
"""Schemes for which the log store that Delta takes, or ours for a local disk, creates an entry of the log or refuses,
whoever wrote the existing one: by a hard link (file), a rename that replaces nothing (hdfs, Azure), or a condition on
the object's generation (gs)."""
S3 = frozenset({"s3", "s3a", "s3n"})
"""Delta's log store for them asks whether the entry exists and then writes it: two processes may both report one
version as theirs."""
SINGLE_DRIVER = "S3SingleDriverLogStore"
"""The name of that log store: safe within one process only, also where a profile names it."""
ANY_SCHEME = "spark.delta.logStore.class"
DEFAULT_FILE_SYSTEM = ("spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name")


def refuse_unsafe_store(profile: Profile, project: Project, default: str | None = None) -> None:
    """Raises UnsafeStoreError for a warehouse whose log store may lose a commit when two processes write, unless the
    profile says that one does. `default`: Hadoop's default file system, a URI, where a session knows it."""
    scheme = scheme_of(profile, project, default)
    if profile.writers == "one" or scheme in SAFE or _has_log_store(profile, scheme):
        return
    fault = "lets" if scheme in S3 else "is not known to be safe: it may let"
    raise UnsafeStoreError(
        f"the warehouse is on {scheme}://, where Delta's log store {fault} two processes commit one version. Both "
        "would report success, and the rows of one would be lost: nothing is written there. Commands that read work",
        hint=f"name a safe log store in `spark:` of the profile: {log_store_setting(scheme)}: CLASS; or write "
        "`writers: one` in the profile, if a single process writes at a time, without Airflow (docs/clusters.md)",
    )


def refuse_airflow(profile: Profile, project: Project) -> None:
    """Raises UnsafeStoreError where Airflow may not run: as `refuse_unsafe_store`, and with `writers: one`, since
    Airflow runs each step in a process of its own, several at a time."""
    refuse_unsafe_store(profile, project)
    if profile.writers == "one":
        scheme = scheme_of(profile, project)
        named = "" if scheme in SAFE else f" and name a safe log store in `spark:`: {log_store_setting(scheme)}: CLASS"
        raise UnsafeStoreError(
            "the profile says `writers: one`, and Airflow runs its steps in several processes",
            hint="run `trendlake run` and `trendlake revise` one after the other, without Airflow; or remove "
            f"`writers: one` from the profile{named}",
        )


def scheme_of(profile: Profile, project: Project, default: str | None = None) -> str:
    """The scheme of the warehouse. A plain path is of Hadoop's default file system: `default`, else what the profile
    sets, else the local disk."""
    warehouse = profile.warehouse_of(project)
    named = [warehouse, default, *(profile.spark.get(name) for name in DEFAULT_FILE_SYSTEM)]
    return next((uri.partition("://")[0].lower() for uri in named if uri and "://" in uri), "file")


def log_store_setting(scheme: str) -> str:
    """Spark's setting of the log store for a scheme."""
    return f"spark.delta.logStore.{scheme}.impl"


def _has_log_store(profile: Profile, scheme: str) -> bool:
    """Whether the profile names a log store for the scheme, other than the one that is not safe."""
    named = [profile.spark.get(setting, "") for setting in (log_store_setting(scheme), ANY_SCHEME)]
    return any(name and not name.endswith(SINGLE_DRIVER) for name in named)
