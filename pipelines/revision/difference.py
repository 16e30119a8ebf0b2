"""The difference between what is published and what should be, and its one commit.

The difference is taken against one version of the results, and may be committed on that version only: whoever publishes
raises the number of the same Delta transaction (`pipelines.delta.commits.in_line`), so that a commit that came between
makes this one a no-op, which is seen, and tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from pipelines.delta.commits import Commit, commit_token, find_commit, in_line
from pipelines.results.provenance import PROVENANCE
from pipelines.revision.affected import Affected
from pipelines.runs.run import Run
from pipelines.spark.identifiers import quoted

OPERATION = "__trendlake_operation"
WAS = "__trendlake_was"
"""The time that a row has in the results, by which MERGE looks for it (a row may move); NULL where it has none yet."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)
class Difference:
    """The rows that differ with their `OPERATION`, kept in memory: read from pinned versions only, they are the same
    however often Spark makes them. `low` to `high` (microseconds) is where in the results' time column they lie, and
    lay. Who asks for it closes it."""

    run: Run
    plan: AnyPlan
    rows: DataFrame
    counts: Mapping[str, int]
    low: int
    high: int

    @property
    def empty(self) -> bool:
        return not any(self.counts.values())

    def commit(self, note: Mapping[str, Any]) -> Commit | None:
        """Bring the difference into the results, in one commit with `note`, which holds the number it follows in line.
        None where another publication came first: the difference is then one from something else. Raises CONFLICTS."""
        spark, path = self.run.spark.newSession(), self.run.warehouse.results(self.run.name)
        token = commit_token(**note)  # MERGE takes note and number from the session
        in_line(spark, self.run.name, token)
        target = DeltaTable.forPath(spark, path)
        columns = target.toDF().columns
        values: dict[str, str | Column] = {quoted(name): _side("c", name) for name in columns}
        time = _side("t", self.plan.owned(range(1))[0])
        near = time.between(sf.timestamp_micros(sf.lit(self.low)), sf.timestamp_micros(sf.lit(self.high)))
        key = [_side("t", name).eqNullSafe(_side("c", name)) for name in self.plan.key]
        operation = sf.col(f"c.{OPERATION}")
        merge = target.alias("t").merge(self.rows.alias("c"), _all(key) & near)
        if self.counts[DELETE]:
            merge = merge.whenMatchedDelete(condition=operation == DELETE)
        if self.counts[UPDATE]:
            merge = merge.whenMatchedUpdate(condition=operation == UPDATE, set=values)
        if self.counts[INSERT]:
            merge = merge.whenNotMatchedInsert(condition=operation == INSERT, values=values)
        merge.execute()
        commit = find_commit(spark, path, token)
        return commit if commit.found else None

    def close(self) -> None:
        self.rows.unpersist()


def difference(published: DataFrame, staged: DataFrame, affected: Affected) -> DataFrame:
    """The rows of the windows and units that differ, with `WAS`: as they should be, with `INSERT` or `UPDATE`; as they
    are, with `DELETE`. `published`: the results; `staged`: all rows that the windows and units should have."""
    plan = affected.plan
    columns = published.columns
    given = {name.lower() for name in staged.columns}
    new = {name: _side("s", name) if name.lower() in given else sf.lit(None) for name in columns}
    content = [name for name in columns if name not in PROVENANCE]
    same = _all([_side("t", name).eqNullSafe(new[name]) for name in content])
    there, wanted = sf.col("t.__there").isNotNull(), sf.col("s.__wanted").isNotNull()
    operation = sf.when(~there, INSERT).when(~wanted, DELETE).when(~same, UPDATE)
    old = affected.rows(published).withColumn("__there", sf.lit(True)).alias("t")
    rows = staged.withColumn("__wanted", sf.lit(True)).alias("s")
    on = _all([_side("t", name).eqNullSafe(_side("s", name)) for name in plan.key])
    kinds = {field.name: field.dataType for field in published.schema.fields}
    shown = [sf.when(wanted, new[name]).otherwise(_side("t", name)).cast(kinds[name]).alias(name) for name in columns]
    joined = old.join(rows, on, "full")
    was = _side("t", plan.owned(range(1))[0]).alias(WAS)
    return joined.select(*shown, was, operation.alias(OPERATION)).where(sf.col(OPERATION).isNotNull())


def counted(run: Run, rows: DataFrame, affected: Affected) -> Difference:
    """The difference, made once."""
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    time = sf.col(quoted(affected.plan.owned(range(1))[0])), sf.col(WAS)
    first, last = (sf.unix_micros(end(*time)) for end in (sf.least, sf.greatest))  # where one is NULL, the other
    counts = [sf.count_if(sf.col(OPERATION) == name).alias(name) for name in (INSERT, UPDATE, DELETE)]
    totals = rows.agg(*counts, sf.min(first).alias("low"), sf.max(last).alias("high")).collect()[0].asDict()
    low, high = totals.pop("low") or 0, totals.pop("high") or 0
    return Difference(run, affected.plan, rows, totals, low, high)


def _side(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
