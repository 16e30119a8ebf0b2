"""A table of the warehouse to try a pattern on: its newest version, judged as a run judges it.

A table on this machine's disk is read in this process, any other, and one of many rows, by Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.windows import END
from trendlake.pipelines.authoring.trial import Extent
from trendlake.pipelines.authoring.trial_rows import HeldRows, Span, TakenRows
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.lake.road import NotHere, refuse, tried
from trendlake.pipelines.lake.versions import schema_of
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.results.source_events import id_of_key
from trendlake.pipelines.runs.consistency import watermark_of
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.columns import column, earliest

FIRST_BROKEN = "__trendlake_rule"
"""Column of a row that was judged: the first rule it breaks."""
QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
"""For a session that reads one slice: to compile plans takes longer than to run them."""


def newest_version(
    part: Run, columns: Sequence[str], begins: Sequence[str] = (), *, ids: bool = False
) -> HeldTable | TableBySpark:
    """The newest version of the one table of `part` (`Run.every_part`), whose interval is not asked. `columns`: those
    that are read; `begins`: as of `HeldRows`; `ids`: whether ids that are made of keys are read. Raises
    SourceSchemaError."""
    lake, path = part.lake, part.warehouse.source(part.contract.name)
    version = latest_version(lake, path)
    q.check_columns(schema_of(lake, path, version), part.contract)
    of_keys = ids and part.contract.made_id
    held = tried(lambda: HeldTable(part, version, begins, made_ids=of_keys))
    return TableBySpark(part, version, columns, begins, made_ids=of_keys) if isinstance(held, NotHere) else held


class HeldTable(HeldRows):
    """The table at one version, all rows of it; a `SampledTable`."""

    def __init__(self, part: Run, version: int, begins: Sequence[str] = (), *, made_ids: bool = False) -> None:
        """Raises NotHereError where this process cannot hold or judge the table."""
        contract = part.contract
        refuse({"ids that are made of keys": made_ids})
        table = table_here(part.lake, part.warehouse.source(contract.name), version)
        super().__init__(*all_parted(part, table, limits.JUDGED), contract, begins)
        self.part, self.version, self.where = part, version, in_words(part, version)

    def watermark(self, near: Span | None) -> int:
        """As a run's."""
        return watermark_of(self.part, self.version, near)


class TableBySpark:
    """The table at one version; a `SampledTable`."""

    def __init__(
        self, part: Run, version: int, columns: Sequence[str], begins: Sequence[str] = (), *, made_ids: bool = False
    ) -> None:
        self.part, self.version, self.where = part, version, in_words(part, version)
        self.columns, self.begins, self.made_ids = columns, begins, made_ids

    @cached_property
    def _source(self) -> DataFrame:
        path = self.part.warehouse.source(self.part.contract.name)
        return read_at(self.part.lake, path, self.version)

    def _beginning(self) -> Column:
        return earliest(self.part.contract.event_time, self.begins)

    def _times(self) -> DataFrame:
        micros = sf.unix_micros(column(self.part.contract.event_time)).alias("micros")
        begins = sf.unix_micros(self._beginning()).alias("begins")
        return self._source.select(micros, begins).where(sf.col("micros").isNotNull())

    def extent(self) -> Extent | None:
        micros = sf.col("micros")
        rows, oldest, newest = self._times().agg(sf.count(micros), sf.min("begins"), sf.max(micros)).collect()[0]
        return Extent(rows, oldest, newest) if rows else None

    def newest(self, number: int) -> Int64s:
        """Spark keeps the newest `number` times of each part only."""
        times = self._times().select("micros").orderBy(sf.desc("micros")).limit(number).toArrow()
        return numbers(times.column("micros").combine_chunks())

    def count(self, start_us: int, end_us: int) -> int:
        return self._times().where((sf.col("micros") >= sf.lit(start_us)) & (sf.col("begins") < sf.lit(end_us))).count()

    def take(self, span: Span | None) -> TakenRows:
        contract = self.part.contract
        if span is None:
            annotated = q.annotate(self._source, contract.rules)
        else:
            inside = q.in_range(contract, span[0], max(span[1], END + 1) if self.begins else span[1])
            annotated = q.annotate(self._source.where(inside), contract.rules, rest=self._source.where(~inside))
            begun = self._beginning() < sf.timestamp_micros(sf.lit(span[1]))
            annotated = annotated.where(begun | column(contract.event_time).isNull())
        first = sf.get(BROKEN, sf.lit(0)).getField("rule").alias(FIRST_BROKEN)
        ids = [id_of_key(contract.key).alias(contract.roles["event_id"])] if self.made_ids else []
        rows = annotated.select(first, *ids, *map(column, self.columns)).toArrow()
        rules = rows.column(FIRST_BROKEN)
        broken = {item["values"]: item["counts"] for item in rules.drop_null().value_counts().to_pylist()}
        good: pa.Table = rows.filter(rules.is_null()).drop_columns([FIRST_BROKEN])
        return TakenRows(good, rows.num_rows, broken)

    def watermark(self, near: Span | None) -> int:
        """As a run's."""
        return watermark_of(self.part, self.version, near)


def in_words(part: Run, version: int) -> str:
    return f"{part.contract.name} at version {version}"
