"""The difference between what is published and what should be, and its one commit.

The difference is taken against one version of the results, and may be committed on that version only: whoever publishes
raises the number of the same Delta transaction (`pipelines.lake.commits.in_line`), so that a commit that came between
makes this one a no-op, which is seen, and tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.publication import (
    DELETE,
    INSERT,
    OPERATION,
    UPDATE,
    Publication,
    conjunction,
    equal,
    in_columns,
    side,
)
from trendlake.pipelines.revision.affected import Affected
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.identifiers import quoted

WAS = "__trendlake_was"
"""The time that a row has in the results, by which MERGE looks for it (a row may move); NULL where it has none yet."""
THERE, WANTED = "__trendlake_there", "__trendlake_wanted"
"""Columns that are not NULL in published rows, and in rows that there should be."""
ROWS = "__trendlake_rows"
"""How many rows of the results a row of the difference stands for."""


@dataclass(frozen=True)
class Difference:
    """The rows that differ with their `OPERATION`, kept in memory: read from pinned versions only, they are the same
    however often Spark makes them. `low` to `high` (microseconds) is the range of the results' time column in which
    they are and were. The caller closes it."""

    run: Run
    plan: AnyPlan
    rows: DataFrame
    counts: Mapping[str, int]
    low: int
    high: int

    @property
    def empty(self) -> bool:
        return not any(self.counts.values())

    def commit(self, note: Note) -> Commit | None:
        """Bring the difference into the results, in one commit with `note`, which holds the number it follows in line.
        None where another publication came first: the difference is then one from something else. Raises CONFLICTS."""
        near = (self.plan.owned(range(1))[0], self.low, self.high)
        return Publication(self.run, note).apply(self.rows, self.counts, identity(self.plan), near)

    def close(self) -> None:
        self.rows.unpersist()


def difference(published: DataFrame, staged: DataFrame, affected: Affected) -> DataFrame:
    """The rows of the windows and units that differ, with `WAS`: as they should be, with `INSERT` or `UPDATE`; as they
    are, with `DELETE`. `published`: the results; `staged`: all rows that the windows and units should have. Published
    rows that share an identity are one row, with `DELETE`, and `ROWS` says how many they are."""
    plan = affected.plan
    columns, by = published.columns, identity(plan)
    new = in_columns(columns, staged.columns, "s")
    there, wanted = side("t", THERE).isNotNull(), side("s", WANTED).isNotNull()
    operation = sf.when(~there, INSERT).when(~wanted, DELETE).when(~equal("t", new), UPDATE)
    alike = Window.partitionBy(*map(column, by))
    numbers = {ROWS: sf.count(sf.lit(1)).over(alike), THERE: sf.row_number().over(alike.orderBy(*map(column, by)))}
    old = affected.rows(published).withColumns(numbers).where(sf.col(THERE) == 1).alias("t")
    rows = staged.withColumn(WANTED, sf.lit(True)).alias("s")
    on = conjunction([side("t", ROWS) == 1, *(side("t", name).eqNullSafe(side("s", name)) for name in by)])
    kinds = {field.name: field.dataType for field in published.schema.fields}
    shown = [sf.when(wanted, new[name]).otherwise(side("t", name)).cast(kinds[name]).alias(name) for name in columns]
    joined = old.join(rows, on, "full")
    was = side("t", plan.owned(range(1))[0]).alias(WAS)
    number = sf.coalesce(side("t", ROWS), sf.lit(1)).alias(ROWS)
    return joined.select(*shown, was, number, operation.alias(OPERATION)).where(sf.col(OPERATION).isNotNull())


def counted(run: Run, rows: DataFrame, affected: Affected) -> Difference:
    """The difference, made once."""
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    time = sf.col(quoted(affected.plan.owned(range(1))[0])), sf.col(WAS)
    first, last = (sf.unix_micros(end(*time)) for end in (sf.least, sf.greatest))  # where one is NULL, the other
    counts = [
        sf.coalesce(sf.sum(sf.when(sf.col(OPERATION) == name, sf.col(ROWS))), sf.lit(0)).alias(name)
        for name in (INSERT, UPDATE, DELETE)
    ]
    totals = rows.agg(*counts, sf.min(first).alias("low"), sf.max(last).alias("high")).collect()[0].asDict()
    low, high = totals.pop("low") or 0, totals.pop("high") or 0
    return Difference(run, affected.plan, rows, totals, low, high)
