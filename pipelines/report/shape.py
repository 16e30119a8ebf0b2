"""Which columns of a results table are what, and rows of one shape whatever the columns are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS
from trendlake.pipelines.report.facts import Measure
from trendlake.pipelines.spark.columns import column

_SYSTEM = frozenset({"window_start", "window_end"}) | PROVENANCE_COLUMNS


@dataclass(frozen=True)
class Shape:
    """`measure` is what the report counts by: the first whole DECIMAL, else the first number, else the rows."""

    groups: tuple[str, ...]
    measures: tuple[str, ...]
    measure: Measure
    companions: frozenset[str]

    @classmethod
    def of(cls, schema: st.StructType, group_by: Sequence[str] = (), returns: Sequence[str] = ()) -> Shape:
        """The shape of a table of kind trends.

        Groups and measures are the pattern's where the table has them (it may also keep columns of an earlier state
        of the pattern); without a pattern, groups stand before the window and measures are what is left.
        """
        names = schema.fieldNames()
        companions = frozenset(n for n in names if n.endswith("_log10") and n.removesuffix("_log10") in names)
        before = names[: names.index("window_start")]
        groups = tuple(group_by) if returns and set(group_by) <= set(names) else tuple(before)
        rest = [n for n in names if n not in (*before, *groups, *_SYSTEM) and n not in companions]
        measures = tuple(n for n in returns if n in rest) or tuple(rest)
        counts = [n for n in measures if _is_count(schema[n].dataType)]
        numbers = [n for n in measures if isinstance(schema[n].dataType, st.NumericType)]
        if counts or not numbers:
            return cls(groups, measures, Measure(counts[0] if counts else "rows", True), companions)
        return cls(groups, measures, Measure(numbers[0], False), companions)

    def columns(self) -> list[Column]:
        """The row of the report: `g0..` groups as text, `ws` and `we` in microseconds, `v0..` measures and `l0..` their
        log10, NULL where a measure has none."""
        groups = [column(name).cast("string").alias(f"g{i}") for i, name in enumerate(self.groups)]
        values = [column(name).alias(f"v{i}") for i, name in enumerate(self.measures)]
        logs = [
            (column(f"{name}_log10") if f"{name}_log10" in self.companions else sf.lit(None))
            .cast("double")
            .alias(f"l{i}")
            for i, name in enumerate(self.measures)
        ]
        window = [sf.unix_micros("window_start").alias("ws"), sf.unix_micros("window_end").alias("we")]
        return [*groups, *window, *values, *logs]


def between(table: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """The rows whose window ends in `(since, until]`."""
    if since is not None:
        table = table.where(sf.col("window_end") > sf.lit(since))
    return table if until is None else table.where(sf.col("window_end") <= sf.lit(until))


def _is_count(kind: st.DataType) -> bool:
    return isinstance(kind, st.DecimalType) and kind.scale == 0
