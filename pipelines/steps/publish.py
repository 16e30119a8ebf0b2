"""Step 4: the staged rows become the results of the run's windows, in one Delta commit.

A MERGE matched on the key (null-safe: a group may be NULL, a register NaN) from the staged version, which is pinned and
is not computed again however often Spark reads it. Rows that are the same are left alone, so the change feed tells of
changes only; rows of the run's windows that are no longer results are deleted. Doing it again changes nothing.
"""

from __future__ import annotations

from functools import reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from pipelines.commits import Commit, commit_token, find_commit, recent_commits
from pipelines.errors import StaleRunError
from pipelines.quarantine import quoted
from pipelines.runs import Record, moment, recorded
from pipelines.steps.run import Run
from pipelines.stretches import narrowed, noted
from pipelines.warehouse import exists, read_at, with_retries

PROVENANCE = ("source_version", "run_id", "computed_at")
"""Columns that say where a row comes from: that they differ is no change of the result."""
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "false",
    "delta.logRetentionDuration": "interval 365 days",
    "delta.deletedFileRetentionDuration": "interval 365 days",
}
"""A past answer can be read again for a year. Deletion vectors and the change feed do not go well together yet."""


def publish(run: Run) -> Record:
    """Merge the staged rows into `results/<pattern>` and record what changed.

    Raises StepOrderError, StaleRunError (these windows hold results of a newer version of the source already).
    """
    record = run.record("publish")
    with recorded(run.spark, run.warehouse, record):
        checked = run.need("check_results")
        run, _ = narrowed(run, checked)
        record.source_version = checked["source_version"]
        record.staged_version = checked["staged_version"]
        # A session of its own: MERGE takes the commit's note from the session, which threads would share.
        spark = run.spark.newSession()
        staged = read_at(spark, run.warehouse.staging(run.name, run.run_id), int(checked["staged_version"]))
        path = run.warehouse.results(run.name)
        create_results(spark, path, staged.schema, run.owned[0])
        commit = with_retries(lambda: _merge(run, spark, path, staged, record), f"publishing {run.name}")
        record.results_version = commit.version
        record.rows_in = checked["rows_out"]
        record.rows_inserted = commit.metric("numTargetRowsInserted")
        record.rows_updated = commit.metric("numTargetRowsUpdated")
        record.rows_deleted = commit.metric("numTargetRowsDeleted")
        record.rows_out = checked["rows_out"]
    return record


def create_results(spark: SparkSession, path: str, schema: StructType, owner: str) -> None:
    """The results table, where it is not there: change feed on, clustered by the column that says which window a row
    is of. Columns that a changed pattern
    brings are added; those it no longer has stay, NULL in new rows."""
    if not exists(spark, path):
        builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema)
        for key, value in PROPERTIES.items():
            builder = builder.property(key, value)
        with_retries(builder.clusterBy(owner).execute, "creating the results table")
    have = {name.lower() for name in spark.read.format("delta").load(path).columns}
    if any(name.lower() not in have for name in schema.fieldNames()):
        none = spark.createDataFrame([], schema)
        writer = none.write.format("delta").mode("append").option("mergeSchema", "true")
        with_retries(lambda: writer.save(path), "adding columns to the results table")


def _merge(run: Run, spark: SparkSession, path: str, staged: DataFrame, record: Record) -> Commit:
    _refuse_stale(run, spark, path, int(record.source_version or 0))
    owner, low, high = run.owned
    facts = {
        "source_version": record.source_version,
        "plan_hash": run.plan.hash,
        "first_window": low,
        "last_window": high - 1,
        **noted(run),
    }
    token = commit_token(run.run_id, "publish", **facts)
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", token)
    target = DeltaTable.forPath(spark, path)
    columns = target.toDF().columns
    given = {name.lower() for name in staged.columns}
    values: dict[str, str | Column] = {
        quoted(name): _side("s", name) if name.lower() in given else sf.lit(None) for name in columns
    }
    in_windows = _side("t", owner).between(sf.lit(moment(low)), sf.lit(moment(high - 1)))
    key = [_side("t", name).eqNullSafe(_side("s", name)) for name in run.plan.key]
    content = [name for name in columns if name not in PROVENANCE]
    same = [_side("t", name).eqNullSafe(values[quoted(name)]) for name in content]
    (
        target.alias("t")
        .merge(staged.alias("s"), _all(key) & in_windows)
        .whenMatchedUpdate(condition=~_all(same), set=values)
        .whenNotMatchedInsert(values=values)
        .whenNotMatchedBySourceDelete(condition=in_windows)
        .execute()
    )
    return find_commit(spark, path, token)


def _refuse_stale(run: Run, spark: SparkSession, path: str, version: int) -> None:
    """Results of a newer source version are not replaced by older ones of the same pattern."""
    _, low, high = run.owned
    for commit in recent_commits(spark, path):
        note = commit.note
        if note.get("stage") != "publish" or note.get("plan_hash") != run.plan.hash:
            continue
        if note["source_version"] > version and note["first_window"] < high and note["last_window"] >= low:
            raise StaleRunError(
                f"run {note['run_id']} has published windows of this run from version {note['source_version']} "
                f"of '{run.contract.name}'; this run read version {version}",
                hint=f"run `trendlake run {run.name}` again: it reads the newest version",
            )


def _side(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
