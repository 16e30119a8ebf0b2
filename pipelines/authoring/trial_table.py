"""A source's table to try a pattern on: its newest version, judged as a run judges it.

A table on this machine's disk is read in this process, any other, and one of many rows, by Spark.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.pipelines.authoring.trial import Extent, Taken, events_of
from trendlake.pipelines.authoring.trial_rows import HeldRows
from trendlake.pipelines.errors import SourceMissingError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import exists, latest_version, read_at
from trendlake.pipelines.lake.road import NotHere, refuse, tried
from trendlake.pipelines.lake.versions import schema_of
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.columns import beginning, column
from trendlake.pipelines.steps.compute import reached

FIRST_BROKEN = "__trendlake_rule"
"""Column of a row that was judged: the first rule it breaks."""
QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
"""For a session that reads one slice: to compile plans takes longer than to run them."""


def table_of_events(run: Run) -> HeldTable | TableBySpark:
    """The newest version of the source of `run`, which says the pattern, the contract and where; its interval is not
    asked. Raises SourceMissingError, SourceSchemaError."""
    lake, path = run.lake, run.warehouse.source(run.contract.name)
    if not exists(lake, path):
        error = run.warehouse.missing(run.contract.name)
        raise SourceMissingError(error.message, hint=f"{error.hint}; or try the pattern on a file: --events FILE")
    version = latest_version(lake, path)
    q.check_columns(schema_of(lake, path, version), run.contract)
    held = tried(lambda: HeldTable(run, version))
    return TableBySpark(run, version) if isinstance(held, NotHere) else held


class HeldTable(HeldRows):
    """The table at one version, all rows of it."""

    def __init__(self, run: Run, version: int) -> None:
        """Raises NotHereError where this process cannot hold or judge the table."""
        contract, plan = run.contract, run.plan
        refuse({"ids that are made of keys": contract.made_id and plan.schema.event_id in plan.columns})
        table = table_here(run.lake, run.warehouse.source(contract.name), version)
        super().__init__(*all_parted(run, table, limits.JUDGED), contract, plan)
        self.run, self.version = run, version

    def watermark(self, windows: range) -> int | None:
        """As a run's."""
        return reached(replace(self.run, only=windows), Versions.one(self.version))


class TableBySpark:
    """The table at one version; see `pipelines.authoring.trial.Sampled`."""

    def __init__(self, run: Run, version: int) -> None:
        self.run, self.version = run, version
        self.path = run.warehouse.source(run.contract.name)

    @cached_property
    def _source(self) -> DataFrame:
        return read_at(self.run.lake, self.path, self.version)

    def _times(self) -> DataFrame:
        micros = sf.unix_micros(column(self.run.contract.event_time)).alias("micros")
        begins = sf.unix_micros(beginning(self.run.plan)).alias("begins")
        return self._source.select(micros, begins).where(sf.col("micros").isNotNull())

    def extent(self) -> Extent | None:
        micros = sf.col("micros")
        rows, oldest, newest = self._times().agg(sf.count(micros), sf.min("begins"), sf.max(micros)).collect()[0]
        return Extent(rows, oldest, newest) if rows else None

    def newest(self, number: int) -> int | None:
        """Spark keeps the newest `number` times of each part only."""
        times = self._times().orderBy(sf.desc("micros")).limit(number)
        rows, oldest = times.agg(sf.count(sf.lit(1)), sf.min("micros")).collect()[0]
        return int(oldest) if rows == number else None

    def count(self, start_us: int, end_us: int) -> int:
        return self._times().where((sf.col("micros") >= sf.lit(start_us)) & (sf.col("begins") < sf.lit(end_us))).count()

    def take(self, windows: range) -> Taken:
        run = replace(self.run, only=windows)
        inside = q.in_range(run.contract, *run.span)
        annotated = q.annotate(self._source.where(inside), run.contract.rules, rest=self._source.where(~inside))
        end = sf.timestamp_micros(sf.lit(run.plan.windows.end(windows[-1])))
        annotated = annotated.where((beginning(run.plan) < end) | column(run.contract.event_time).isNull())
        first = sf.get(BROKEN, sf.lit(0)).getField("rule").alias(FIRST_BROKEN)
        wanted = dict.fromkeys((*run.plan.columns, run.plan.schema.event_type))
        there = [column(name) for name in wanted if name in annotated.columns]
        rows = annotated.select(first, *there).toArrow()
        rules = rows.column(FIRST_BROKEN)
        broken = {item["values"]: item["counts"] for item in rules.drop_null().value_counts().to_pylist()}
        good = events_of(rows.filter(rules.is_null()), run.contract, run.plan)
        return Taken(good, rows.num_rows, broken, reached(run, Versions.one(self.version)))
