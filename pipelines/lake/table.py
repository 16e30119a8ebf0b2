"""A version of a Delta table, read by this process, or by Spark where only Spark can: the same Arrow rows.

For questions whose answers are few rows, wherever the table is and however many rows it has: who asks does not know
who answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere, answer_of, either, tried
from trendlake.pipelines.spark.columns import column

Values = Mapping[str, Sequence[str]]
"""Columns of texts, each with the values that a row may have there."""


@dataclass(frozen=True)
class During:
    """Rows whose `time` is `low` or later and before `high`, microseconds; None: no bound."""

    time: str
    low: int | None
    high: int | None

    @property
    def slice(self) -> tuple[int, int]:
        return -(2**63) if self.low is None else self.low, 2**63 - 1 if self.high is None else self.high


@dataclass(frozen=True)
class Having:
    """Rows whose column `name` has the text `value`."""

    name: str
    value: str


@dataclass(frozen=True)
class Table:
    """The table at `path` as it is in `version`; None: in its newest one, of a table that only Spark reads. `here`: as
    this process reads it, or why it does not."""

    lake: Lake
    path: str
    version: int | None
    here: TableHere | NotHere

    @classmethod
    def at(cls, lake: Lake, path: str, version: int | None = None) -> Table:
        """The newest version where none is named. Of a table that is not there every question is an error of Spark."""
        here = tried(lambda: table_here(lake, path, version))
        return cls(lake, path, here.version if isinstance(here, TableHere) else version, here)

    @cached_property
    def frame(self) -> DataFrame:
        """As Spark reads it."""
        reader = self.lake.spark.read.format("delta")
        return (reader if self.version is None else reader.option("versionAsOf", self.version)).load(self.path)

    @cached_property
    def schema(self) -> StructType:
        return self.here.schema if isinstance(self.here, TableHere) else self.frame.schema

    @property
    def names(self) -> list[str]:
        return self.schema.fieldNames()

    @property
    def row_count(self) -> int:
        return either(lambda: answer_of(self.here).counted, lambda: self.frame.count())

    def none(self, names: Sequence[str]) -> pa.Table:
        """No rows, of columns `names`."""
        fields = StructType([self.schema[name] for name in names])
        return pa.schema(list(to_arrow_schema(fields, timezone="UTC"))).empty_table()

    def every(self, names: Sequence[str], most: int) -> pa.Table:
        """Columns `names` of all rows. `most`: how many of them this process reads."""
        return either(
            lambda: answer_of(self.here).every(names, most), lambda: self.frame.select(*map(column, names)).toArrow()
        )

    def having(self, values: Values, names: Sequence[str], most: int) -> pa.Table:
        """Columns `names` of the rows that have one of the `values` in each of its columns. `most`: as of `every`."""
        asked = list(dict.fromkeys((*values, *names)))

        def here() -> pa.Table:
            table, (first, *others) = answer_of(self.here), values
            for name, wanted in values.items():
                table = table.near(name, wanted[0]) if len(wanted) == 1 else table
            texts = {name: pa.array(wanted, pa.string()) for name, wanted in values.items()}
            columns = [first, *(name for name in asked if name != first)]
            return table.rows_with(columns, texts[first], most, {name: texts[name] for name in others})

        def by_spark() -> pa.Table:
            return self.frame.where(_among(values)).select(*map(column, asked)).toArrow()

        return either(here, by_spark).select(list(names))

    def newest(self, by: str, limit: int | None, most: int, values: Values | None = None) -> pa.Table:
        """The rows with the latest times in the column `by`, the latest first: `limit` of them, None for all; with
        `values` of those that have one. `most`: as of `every`."""

        def here() -> pa.Table:
            rows = answer_of(self.here).every(self.names, most)
            for name, wanted in (values or {}).items():
                rows = rows.filter(pc.is_in(rows[name], pa.array(wanted, pa.string())))
            return (rows.sort_by([(by, "descending")]) if by in self.names else rows).slice(0, limit)

        def by_spark() -> pa.Table:
            rows = self.frame.where(_among(values)) if values else self.frame
            rows = rows.orderBy(column(by).desc_nulls_last()) if by in self.names else rows
            return (rows if limit is None else rows.limit(limit)).toArrow()

        return either(here, by_spark)

    def extent(self, time: str) -> tuple[int, int | None, int | None]:
        """How many rows there are, and the first and the last `time`, microseconds; None where no row has one."""

        def by_spark() -> tuple[int, int | None, int | None]:
            moment = sf.unix_micros(column(time))
            return tuple(self.frame.agg(sf.count(sf.lit(1)), sf.min(moment), sf.max(moment)).collect()[0])

        return either(lambda: answer_of(self.here).extent(time), by_spark)

    def batches_here(self, names: Sequence[str], where: During | Having | None) -> Iterator[pa.RecordBatch]:
        """Columns `names` of all rows, or of those that `where` names, one batch after another; the first is empty.
        Raises NotHereError, also after some of them."""
        table = answer_of(self.here)
        if isinstance(where, Having):
            wanted = pa.array([where.value], pa.string())
            return table.near(where.name, where.value).batches_with(names, where.name, wanted)
        return table.batches(names) if where is None else table.batches(names, where.time, [where.slice])

    def frame_of(self, where: During | Having | None) -> DataFrame:
        """As Spark reads all rows, or those that `where` names."""
        rows = self.frame
        if isinstance(where, Having):
            return rows.where(column(where.name) == where.value)
        if where is not None and where.low is not None:
            rows = rows.where(column(where.time) >= sf.timestamp_micros(sf.lit(where.low)))
        if where is not None and where.high is not None:
            rows = rows.where(column(where.time) < sf.timestamp_micros(sf.lit(where.high)))
        return rows


def _among(values: Values) -> Column:
    return reduce(and_, [column(name).isin(list(wanted)) for name, wanted in values.items()])
