"""The good events of a pinned version of a source: as Spark reads them, or as files that the workers read by
themselves; those that one run needs, or what several runs need together.

The split of check_source is made again, as far as it can differ from all rows: where it has quarantined none, in the
same version, range and contract, every row is good; where it has found no duplicates, they are not looked for. A row is
good or not whichever range is asked for (`pipelines.quality.quarantine`), so a wider range is split as its parts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from trendlake.cep_core.events.tables import id_column
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.sources import SOURCE
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.parquet_scan import Files, Span, TableFiles, paths_by_delta, plain_columns
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import NotHere, either
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.rules.split import typed
from trendlake.pipelines.runs.events import events_in, good_events, good_events_of_all
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
        """Of runs, each with the record of its check_source, of one version of one table. A run may be as of one of the
        tables of its pattern (`Run.parts`)."""
        spans = [run.span for run, _ in runs]
        span = min(start for start, _ in spans), max(end for _, end in spans)
        run, version = runs[0][0], _version(*runs[0])
        clean = all(_quarantined(run, checked) == 0 for run, checked in runs)
        checks = [check for run, checked in runs for check in checked.checks if _about(run, check)]
        repeated = not clean and any(not check.success for check in checks if check.name == REPEATED)
        return cls(run, reading, span, version, clean, repeated)

    def frame(self) -> DataFrame:
        """The good rows: columns and event types of `reading`."""
        rows = self.good()
        if self.reading.interval_start is not None:  # the range has no end; and it is read by one run
            end = self.reading.windows.end(self.run.windows[-1])
            rows = rows.where(beginning(self.reading) < sf.timestamp_micros(sf.lit(end)))
        return needed(self.run.contract, self.reading, rows)

    def good(self) -> DataFrame:
        """The good rows in the range, with the columns of the table."""
        contract, source = self.run.contract, self._source()
        inside = q.in_range(contract, *self.span)
        rows = source.where(inside)
        if not self.clean and self.repeated:
            rows = q.good_rows(q.annotate(rows, contract.rules, rest=source.where(~inside)))
        elif not self.clean:
            rows = q.keeping(rows, contract.rules)
        return rows

    def here(self, most: int) -> pa.Table | NotHere:
        """The good rows in this process, all columns. Raises NotHereError, also where they are more than `most`."""
        contract, reading = self.run.contract, self.reading
        if contract.made_id and reads_id(self.run, self.reading):
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
        reading, kind = self.reading, self.run.contract.constant_type
        column = reading.schema.event_type
        table = self.table_files([name for name in reading.columns if kind is None or name != column])
        if table is None:
            return None
        if kind is not None and column in reading.columns:
            columns = table.columns.append(pa.field(column, pa.string()))
            table = replace(table, columns=columns, constant=(column, kind))
        return Files.for_reading(self.run.lake, [table], table.columns, reading)

    def table_files(self, names: Sequence[str]) -> TableFiles | None:
        """As `files`, of columns that the table has."""
        contract = self.run.contract
        if not self.clean or (contract.made_id and reads_id(self.run, self.reading)):
            return None
        files = self._paths()
        if files is None:
            return None
        paths, stored = files
        columns = plain_columns(stored, names)
        return None if columns is None else TableFiles(paths, columns, Span(contract.event_time, *self.span))

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


def _version(run: Run, checked: Record) -> int:
    """The version of the run's table that was pinned."""
    return int((checked.source_version if checked.sources is None else checked.sources[run.key]["version"]) or 0)


def _quarantined(run: Run, checked: Record) -> int | None:
    """How many rows of the run's table were."""
    return checked.rows_quarantined if checked.sources is None else checked.sources[run.key]["quarantined"]


def _about(run: Run, check: Check) -> bool:
    """Whether a check is of the run's table."""
    return run.key == SOURCE or (check.data or {}).get("source") == run.key


def reads_id(run: Run, reading: Reading) -> bool:
    """Whether the id of the events of the run's one table is read."""
    tables = reading.schema.tables
    return (reading.schema.event_id if tables is None else id_column(run.key)) in reading.columns


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
        good = good.withColumn(reading.schema.event_id, id_of_key(contract.key))
    types = reading.event_types
    if types is not None and not contract.assures(types):
        good = good.where(column(reading.schema.event_type).isin(list(types)))
    return good.select(*[column(name) for name in reading.columns])


def id_of_key(key: tuple[str, ...]) -> Column:
    """The values of a key as one text, another for each key: `["UA","2013-01-02 09:00:00"]`."""
    return sf.to_json(sf.array(*[column(name).cast("string") for name in key]))
