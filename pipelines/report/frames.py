"""Spark's side of a results table: whatever its columns are called, rows of (key, window, amount) and sums
over them.

Counts are summed exactly (`try_sum` of DECIMAL(38,0)) as long as every part is exact, and by their `_log10`
companions with the largest factored out, log10(sum) = m + log10(sum(10^(log10 - m))), so that 10^3000 does
not overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pipelines.quarantine import column
from pipelines.report.facts import Measure

_SYSTEM = ("window_start", "window_end", "plan_hash", "source_version", "run_id", "computed_at")


@dataclass(frozen=True)
class Shape:
    """Which columns of a results table are what; the table keeps group columns, window, measures, origin in
    this order.

    `measure` is what the report counts by: the first whole DECIMAL, else the first number, else the rows
    themselves.
    """

    groups: tuple[str, ...]
    measures: tuple[str, ...]
    measure: Measure
    companions: frozenset[str]

    @classmethod
    def of(cls, schema: st.StructType) -> Shape:
        """The shape of a table of kind trends."""
        names = schema.fieldNames()
        companions = frozenset(n for n in names if n.endswith("_log10") and n.removesuffix("_log10") in names)
        groups = tuple(names[: names.index("window_start")])
        measures = tuple(n for n in names if n not in groups and n not in _SYSTEM and n not in companions)
        counts = [n for n in measures if _is_count(schema[n].dataType)]
        numbers = [n for n in measures if isinstance(schema[n].dataType, st.NumericType)]
        if counts or not numbers:
            return cls(groups, measures, Measure(counts[0] if counts else "rows", True), companions)
        return cls(groups, measures, Measure(numbers[0], False), companions)

    @property
    def counts_rows(self) -> bool:
        """Whether no column is a number, so that each row counts one."""
        return self.measure.name not in self.measures


def between(table: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """The rows whose window ends in `(since, until]`."""
    if since is not None:
        table = table.where(sf.col("window_end") > sf.lit(since))
    return table if until is None else table.where(sf.col("window_end") <= sf.lit(until))


def normal(table: DataFrame, shape: Shape, extra: Sequence[Column] = ()) -> DataFrame:
    """Rows (key, ws, we, x, l, o): the group as JSON, the window in microseconds, the measure's exact value
    or NULL, its log10 or NULL, and what to order by.
    """
    groups = sf.struct(*[column(g).cast("string").alias(f"g{i}") for i, g in enumerate(shape.groups)])
    key = sf.to_json(groups) if shape.groups else sf.lit("{}")
    exact, log10 = _measure(shape)
    order = sf.coalesce(log10, sf.lit(-1.0)) if shape.measure.is_count else exact
    return table.select(
        key.alias("key"),
        sf.unix_micros("window_start").alias("ws"),
        sf.unix_micros("window_end").alias("we"),
        exact.alias("x"),
        log10.alias("l"),
        order.alias("o"),
        *extra,
    )


def grid(rows: DataFrame) -> Row:
    """Of normal rows: `rows`, `windows`, the least `step` between windows, `overlapping`, and `first` and
    `last` start.
    """
    windows = rows.groupBy("ws", "we").agg(sf.count(sf.lit(1)).alias("n"))
    following = sf.lead("ws").over(SqlWindow.partitionBy(sf.lit(1)).orderBy("ws", "we"))
    later = sf.col("next") > sf.col("ws")
    return (
        windows.withColumn("next", following)
        .agg(
            sf.coalesce(sf.sum("n"), sf.lit(0)).alias("rows"),
            sf.count(sf.lit(1)).alias("windows"),
            sf.min(sf.when(later, sf.col("next") - sf.col("ws"))).alias("step"),
            sf.coalesce(sf.max(sf.col("next") < sf.col("we")), sf.lit(False)).alias("overlapping"),
            sf.min("ws").alias("first"),
            sf.max("ws").alias("last"),
        )
        .collect()[0]
    )


def by(rows: DataFrame, keys: Sequence[str], *, add: bool) -> DataFrame:
    """Normal rows gathered by `keys`: x, l and o of their sum (`add`) or of the largest; also how many
    `windows` and `groups` they span and the `leader`, the key of the largest.
    """
    extra = [
        sf.countDistinct("ws", "we").alias("windows"),
        sf.countDistinct("key").alias("groups"),
        sf.max_by("key", "o").alias("leader"),
    ]
    gathered = [sf.col(key) for key in keys] or [sf.lit(0).alias("all")]
    if not add:
        best = sf.max_by(sf.struct("x", "l", "o"), "o").alias("best")
        return rows.groupBy(*gathered).agg(best, *extra).select("*", "best.*").drop("best")
    largest = sf.max("l").over(SqlWindow.partitionBy(*gathered))
    exact = sf.when(sf.count("x") == sf.count(sf.lit(1)), sf.try_sum("x"))
    log10 = sf.max("m") + sf.log10(sf.sum(sf.pow(sf.lit(10.0), sf.col("l") - sf.col("m"))))
    summed = rows.withColumn("m", largest).groupBy(*gathered).agg(exact.alias("x"), log10.alias("l"), *extra)
    return summed.withColumn("o", sf.coalesce("l", sf.lit(-1.0)))


def _is_count(kind: st.DataType) -> bool:
    return isinstance(kind, st.DecimalType) and kind.scale == 0


def _measure(shape: Shape) -> tuple[Column, Column]:
    if shape.counts_rows:
        return sf.lit(1).cast("decimal(38,0)"), sf.lit(0.0)
    value = column(shape.measure.name)
    if not shape.measure.is_count:
        return value.cast("double"), sf.lit(None).cast("double")
    derived = sf.when(value > 0, sf.log10(value.cast("double")))
    companion = f"{shape.measure.name}_log10"
    return value, sf.coalesce(column(companion), derived) if companion in shape.companions else derived
