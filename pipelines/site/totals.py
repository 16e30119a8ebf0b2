"""Sums of counts of any size, in Spark: exact where they can be, and in magnitude always."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

DECADES = 100
"""A count is summed with those of the same hundred decades, as multiples of their lowest power of ten."""
NOUGHT = -1
"""The hundred of counts that are zero."""


def order() -> Column:
    """The rank of counts: the logarithm `l`, zero below all others; NULL only where nothing is known."""
    return sf.coalesce(sf.col("l"), sf.when(sf.col("x") == 0, sf.lit(-1.0)))


def totals(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The counts of `frame` summed by `keys`: `x` (decimal(38,0); NULL beyond, or where one that was summed is), `l`
    (its log10, NULL for zero) and `n`, how many there were, from the same two columns.

    l is right to some 1e-12: with 10^(100k) the lowest power of the largest hundred there is, each count is m *
    10^(100k) or m * 10^(100(k-1)) with 1 <= m < 10^100, which a double sums without overflow; those of lower hundreds
    are together less than (their number) * 10^-100 of the largest, and are left out of the magnitude.
    """
    level = sf.coalesce(sf.floor(sf.col("l") / DECADES), sf.lit(NOUGHT)).cast("int")
    scaled = sf.coalesce(sf.pow(sf.lit(10.0), sf.col("l") - DECADES * level), sf.lit(0.0))
    unknown = sf.col("x").isNull()
    summed = (
        frame.withColumns({"level": level, "part": scaled})
        .groupBy(*keys, "level")
        .agg(
            sf.sum("part").alias("part"),
            sf.try_sum("x").alias("x"),
            sf.count_if(unknown).alias("unknown"),
            sf.count(sf.lit(1)).alias("n"),
        )
        .withColumn("unknown", sf.col("unknown") + sf.when(sf.col("x").isNull(), 1).otherwise(0))
    )
    by_level = sf.map_from_entries(sf.collect_list(sf.struct("level", "part")))
    together = summed.groupBy(*keys).agg(
        sf.max("level").alias("top"),
        by_level.alias("parts"),
        sf.try_sum("x").alias("x"),
        sf.sum("unknown").alias("unknown"),
        sf.sum("n").alias("n"),
    )
    part = sf.try_element_at("parts", sf.col("top"))
    below = sf.coalesce(sf.try_element_at("parts", sf.col("top") - 1), sf.lit(0.0)) * 10.0**-DECADES
    magnitude = sf.when(sf.col("top") > NOUGHT, DECADES * sf.col("top") + sf.log10(part + below))
    exact = sf.when(sf.col("unknown") == 0, sf.col("x")).cast("decimal(38,0)")
    return together.select(*keys, exact.alias("x"), magnitude.alias("l"), "n")
