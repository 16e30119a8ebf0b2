"""Results as they were: by version or time, what changed between two versions and why, every value a row has had.

Event time is in the rows; the other clock, when an answer was given, is in the results' Delta versions. A commit's note
says which version of the source it speaks of: that is the reason of a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from cep_core.errors import did_you_mean
from pipelines.delta.commits import Commit, known_commits
from pipelines.delta.tables import exists, read_at
from pipelines.errors import BadNumberError, BadTimeError, ProjectError
from pipelines.results.coverage import windows_of
from pipelines.results.provenance import PROVENANCE
from pipelines.results.windows import row_window
from pipelines.spark.columns import column
from pipelines.spark.identifiers import quoted

CHANGE, COMMIT = "_change_type", "_commit_version"
ADDED, CHANGED, RETRACTED = "added", "changed", "retracted"


@dataclass(frozen=True)
class Value:
    """What a row was from a version of the results on, None where it was not there; and the commit that made it so."""

    commit: Commit
    row: Mapping[str, Any] | None


def version_of(spark: SparkSession, path: str, as_of: str) -> int:
    """The version that `as_of` means: itself, or the newest at that time (ISO 8601, UTC where it says no zone).

    Raises ProjectError (there are no results), BadNumberError, BadTimeError.
    """
    if not exists(spark, path):
        raise ProjectError(f"there are no results yet in {path}")
    commits = known_commits(spark, path)
    first, last = commits[-1].version, commits[0].version
    if as_of.isdecimal():
        if not first <= int(as_of) <= last:
            raise BadNumberError(f"version {as_of} is not there: the results have versions {first} to {last}")
        return int(as_of)
    moment = _moment(as_of)
    found = next((commit.version for commit in commits if commit.at is not None and commit.at <= moment), None)
    if found is None:
        raise BadTimeError(f"there were no results at {as_of}", hint=f"version {first} is the oldest that is known")
    return found


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadTimeError(f"'{text}' is neither a version nor a time", hint="12, or 2013-02-01T09:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def between(spark: SparkSession, path: str, plan: AnyPlan, first: int, last: int) -> tuple[dict[str, int], DataFrame]:
    """How many rows were added, changed and retracted from version `first` to `last`, and those rows: columns `kind`,
    `before` and `after` (structs, NULL where there is no row), in the order of the key."""
    old, new = read_at(spark, path, first), read_at(spark, path, last)
    shared = [name for name in new.columns if name in old.columns and name not in PROVENANCE]
    fresh = [name for name in new.columns if name not in old.columns and name not in PROVENANCE]
    then = old.select(sf.struct(*map(column, old.columns)).alias("before"))
    now = new.select(sf.struct(*map(column, new.columns)).alias("after"))

    def same(names: Sequence[str]) -> list[Column]:
        return [sf.col(f"before.{quoted(n)}").eqNullSafe(sf.col(f"after.{quoted(n)}")) for n in names]

    key = reduce(lambda a, b: a & b, same(plan.key))
    equal = reduce(lambda a, b: a & b, [*same(shared), *(sf.col(f"after.{quoted(n)}").isNull() for n in fresh)])
    kind = (
        sf.when(sf.col("before").isNull(), ADDED).when(sf.col("after").isNull(), RETRACTED).when(~equal, CHANGED)
    )  # fmt: skip
    rows = then.join(now, key, "full").withColumn("kind", kind).where(sf.col("kind").isNotNull())
    counts = {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
    order = [sf.coalesce(sf.col(f"after.{quoted(n)}"), sf.col(f"before.{quoted(n)}")) for n in plan.key]
    return {name: counts.get(name, 0) for name in (ADDED, CHANGED, RETRACTED)}, rows.orderBy(*order)


def reasons(spark: SparkSession, path: str, first: int, last: int) -> list[Commit]:
    """The publications after version `first` up to `last`, the oldest first."""
    return [
        commit
        for commit in reversed(known_commits(spark, path))
        if first < commit.version <= last and "source_version" in commit.note
    ]


def values(
    spark: SparkSession, path: str, plan: AnyPlan, groups: Mapping[str, str], time_us: int
) -> list[Value]:  # fmt: skip
    """Every value that the rows of a group have had in the window that begins at `time_us` (microseconds; of kinds
    whose windows are the pipeline's own, the one whose rows' time it is), the oldest first. Raises ProjectError."""
    for name in groups:
        if name not in plan.key:
            raise ProjectError(f"'{name}' is no column of the key", hint=did_you_mean(name, plan.key))
    commits = {commit.version: commit for commit in known_commits(spark, path)}
    feed = (
        spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", min(commits)).load(path)
    )
    window = windows_of(plan, time_us, time_us + 1)[0]
    mine = [column(name).cast("string").eqNullSafe(_text(value)) for name, value in groups.items()]
    rows = feed.where(reduce(lambda a, b: a & b, mine, row_window(plan) == sf.lit(window)))
    rows = rows.where(sf.col(CHANGE) != "update_preimage")
    found = rows.orderBy(COMMIT, *map(column, plan.key), sf.col(CHANGE)).collect()
    told = []
    for row in found:
        kept = {name: value for name, value in row.asDict().items() if not name.startswith(("_change_", "_commit_"))}
        told.append(Value(commits[row[COMMIT]], None if row[CHANGE] == "delete" else kept))
    return told


def _text(value: str) -> Column:
    return sf.lit(None) if value == "NULL" else sf.lit(value)
