"""The good events of a pinned version of a source: as Spark reads them, or as files that the workers read by
themselves; those that one run needs, or what several runs need together.

The split of check_source is made again, as far as it can differ from all rows: where it has quarantined none, in the
same version, range and contract, every row is good; where it has found no duplicates, they are not looked for. A row is
good or not whichever range is asked for (`pipelines.quality.quarantine`), so a wider range is split as its parts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from trendlake.cep_core.plan import Reading
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.parquet_scan import Files, Span, paths_by_delta, plain_files
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import NotHere, either
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.runs.events import events_in, good_events, good_events_of_all, typed
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.columns import beginning, column

REPEATED = "repeated_rows"
"""The check whether a row of the run's windows repeats a key of another row of the table."""


@dataclass(frozen=True)
class SourceEvents:
    """The events that `reading` needs of the time range `span` of a source, at `version`. `clean`: no row of the range
    was quarantined; `repeated`: some rows there repeat a key. `run`: one of those that read it."""

    run: Run
    reading: Reading
    span: tuple[int, int]
    version: int
    clean: bool
    repeated: bool

    @classmethod
    def of(cls, runs: Sequence[tuple[Run, Record]], reading: Reading) -> SourceEvents:
        """Of runs, each with the record of its check_source, of one version."""
        spans = [run.span for run, _ in runs]
        span = min(start for start, _ in spans), max(end for _, end in spans)
        clean = all(checked.rows_quarantined == 0 for _, checked in runs)
        checks = [check for _, checked in runs for check in checked.checks] if not clean else []
        repeated = any(not check.success for check in checks if check.name == REPEATED)
        return cls(runs[0][0], reading, span, int(runs[0][1].source_version or 0), clean, repeated)

    def frame(self) -> DataFrame:
        """The good rows: columns and event types of `reading`."""
        contract, source = self.run.contract, self._source()
        inside = q.in_range(contract, *self.span)
        rows = source.where(inside)
        if not self.clean and self.repeated:
            rows = q.good_rows(q.annotate(rows, contract.rules, rest=source.where(~inside)))
        elif not self.clean:
            rows = q.keeping(rows, contract.rules)
        if self.reading.interval_start is not None:  # the range has no end; and it is read by one run
            end = self.reading.windows.end(self.run.windows[-1])
            rows = rows.where(beginning(self.reading) < sf.timestamp_micros(sf.lit(end)))
        return needed(contract, self.reading, rows)

    def here(self, most: int) -> pa.Table | NotHere:
        """The good rows in this process, all columns. Raises NotHereError, also where they are more than `most`."""
        contract, reading = self.run.contract, self.reading
        if contract.made_id and reading.schema.event_id in reading.columns:
            return NotHere("ids that are made of keys")
        table = table_here(self.run.lake, self.run.warehouse.source(contract.name), self.version)
        if contract.documents is not None:
            table.refuse_large()
        if self.clean:
            rows = events_in(self.run, table, [self.span], most)
        elif not self.repeated:
            rows = good_events(self.run, table, [self.span], most)
        else:
            rows = good_events_of_all(self.run, table, [self.span], most)
        return typed(contract, reading.schema.event_type, rows)

    def files(self) -> Files | None:
        """The files with those rows, where every row is good and the workers can read them by themselves: no column is
        missing."""
        contract, reading = self.run.contract, self.reading
        if not self.clean or (contract.made_id and reading.schema.event_id in reading.columns):
            return None
        files = self._paths()
        span = Span(contract.event_time, *self.span)
        return None if files is None else plain_files(self.run.lake, *files, reading, span, contract.constant_type)

    def _paths(self) -> tuple[tuple[str, ...], StructType] | None:
        """The files that may hold rows of the range, and the table's columns; None where they can't be read alone. Of a
        small table all files are read sooner than Delta says which."""
        run = self.run
        path = run.warehouse.source(run.contract.name)

        def here() -> tuple[tuple[str, ...], StructType] | None:
            table = table_here(run.lake, path, self.version)
            if table.row_count is None or table.row_count > limits.READ:
                table = table.near_time(run.contract.event_time, [self.span])
            return tuple(f"{table.folder}/{file}" for file in table.files), table.schema

        def by_spark() -> tuple[tuple[str, ...], StructType] | None:
            frame = self._source().where(q.in_range(run.contract, *self.span))
            paths = paths_by_delta(frame, path, self.version)
            return None if paths is None else (paths, frame.schema)

        return either(here, by_spark)

    def _source(self) -> DataFrame:
        return read_at(self.run.lake, self.run.warehouse.source(self.run.contract.name), self.version)


def read_events(run: Run, checked: Record) -> DataFrame:
    """The good rows that one run needs, as Spark reads them."""
    return SourceEvents.of([(run, checked)], run.plan).frame()


def files_of(run: Run, checked: Record) -> Files | None:
    """The files with the rows that `read_events` reads; None where the workers can't read them by themselves."""
    return SourceEvents.of([(run, checked)], run.plan).files()


def needed(contract: Contract, reading: Reading, good: DataFrame) -> DataFrame:
    """Of good rows of the source what is read: its columns and its event types."""
    if contract.constant_type is not None:
        good = good.withColumn(reading.schema.event_type, sf.lit(contract.constant_type))
    if contract.made_id:
        good = good.withColumn(reading.schema.event_id, _id_of_key(contract.key))
    types = reading.event_types
    if types is not None and not contract.assures(types):
        good = good.where(column(reading.schema.event_type).isin(list(types)))
    return good.select(*[column(name) for name in reading.columns])


def _id_of_key(key: tuple[str, ...]) -> Column:
    """The values of a key as one text, another for each key: `["UA","2013-01-02 09:00:00"]`."""
    return sf.to_json(sf.array(*[column(name).cast("string") for name in key]))
