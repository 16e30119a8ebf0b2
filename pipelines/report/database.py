"""The rows of a page in DuckDB, which counts and orders them in this process, beyond memory on disk.

`Stored` asks once which reader a table needs: this process, or Spark where only Spark can. Both give batches of Arrow,
and the same query answers. Names of columns never come into a query: `Database.load` gives each an alias of ours
(`g0`, `ws`), and values are parameters. Times are microseconds since the epoch.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import local_errors
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.report.bins import MONDAY_MICROS, SECOND
from trendlake.pipelines.results.spark_order import texts_here
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import batches_of

ROWS_AT_ONCE = 10_000
LARGEST = 10**38
"""Counts of more digits have their magnitude only, as in a column of Spark."""
HALF = 10**19
"""Counts are summed by their halves: a sum of whole ones may not fit in 128 bits."""
WAS_THERE = "coalesce(h IN (SELECT unnest(?::VARCHAR[])), false)"
"""Of rows with the plan hash `h`: whether it is one of those given."""


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
class Column:
    """The values that are loaded of a column. `what`: its `value` (a time as microseconds); the same of no more than
    `shortened` characters; its `text` as Spark casts it; a `count` (DECIMAL(38, 0)); a `number` (a double)."""

    name: str
    what: str = "value"
    shortened: int | None = None


@dataclass(frozen=True)
class Stored:
    """A version of the table at `path` as it is read: by this process (`local`), or by Spark."""

    spark: SparkSession
    path: str
    version: int | None
    local: TableHere | None

    @classmethod
    def at(cls, spark: SparkSession, path: str, version: int | None = None) -> Stored:
        """The newest version where none is named."""
        try:
            local = table_here(spark, path, version)
            return cls(spark, path, local.version, local)
        except LocalUnsupportedError:
            return cls(spark, path, version, None)

    @cached_property
    def frame(self) -> DataFrame:
        reader = self.spark.read.format("delta")
        return (reader if self.version is None else reader.option("versionAsOf", self.version)).load(self.path)

    @cached_property
    def schema(self) -> StructType:
        return self.frame.schema if self.local is None else self.local.schema

    @property
    def names(self) -> list[str]:
        return self.schema.fieldNames()

    def read_locally(self, columns: Mapping[str, Column], where: During | Having | None) -> Iterator[pa.RecordBatch]:
        """Under their aliases. Raises LocalUnsupportedError, also for texts that are Java's own, and also after some
        of the rows."""
        if self.local is None:
            raise LocalUnsupportedError("only Spark reads this table")
        names = [*dict.fromkeys(item.name for item in columns.values())]
        if isinstance(where, Having):
            of_file = self.local.near(where.name, where.value)
            batches = of_file.batches_with(names, where.name, pa.array([where.value], pa.string()))
        elif where is not None:
            batches = self.local.batches(names, where.time, [where.slice])
        else:
            batches = self.local.batches(names)
        with local_errors():
            for batch in batches:
                yield _converted({alias: (batch.column(item.name), item) for alias, item in columns.items()})

    def read_by_spark(self, columns: Mapping[str, Column], where: During | Having | None) -> Iterator[pa.RecordBatch]:
        """As `read_locally`, of any table."""
        rows = self.frame
        if isinstance(where, Having):
            rows = rows.where(column(where.name) == where.value)
        elif where is not None:
            time = column(where.time)
            if where.low is not None:
                rows = rows.where(time >= sf.timestamp_micros(sf.lit(where.low)))
            if where.high is not None:
                rows = rows.where(time < sf.timestamp_micros(sf.lit(where.high)))
        asked = [
            (column(item.name).cast("string") if item.what == "text" else column(item.name)).alias(alias)
            for alias, item in columns.items()
        ]
        for batch in batches_of(rows.select(*asked)):
            yield _converted({alias: (batch.column(alias), item) for alias, item in columns.items()})


def _converted(columns: Mapping[str, tuple[pa.Array, Column]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({alias: _as_asked(values, item) for alias, (values, item) in columns.items()})


def _as_asked(values: pa.Array, asked: Column) -> pa.Array:
    if pa.types.is_string(values.type) or pa.types.is_list(values.type):
        values.validate(full=True)  # DuckDB takes it for granted that a text is UTF-8
    if asked.what == "text":
        return texts_here(values)
    if asked.what == "count":
        return values.cast(pa.decimal128(38, 0))
    if asked.what == "number":
        return values.cast(pa.float64())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64())
    if asked.shortened is not None and pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, asked.shortened)
    return values


class Database:
    """Tables of rows for one page, which are gone when it is closed. `folder`: stores what does not fit in
    `limits.PAGE_BYTES`, for as long."""

    def __init__(self, folder: Path | None = None) -> None:
        self._connection = _database(folder, limits.PAGE_BYTES, os.getpid()).cursor()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def load(
        self,
        table: Stored,
        columns: Mapping[str, Column],
        where: During | Having | None = None,
        select: str = "FROM batch",
    ) -> None:
        """Makes the table `rows` of the `columns`, by their aliases, of all rows or of those that are asked for.
        `select`: what is taken of each batch of them."""
        try:
            self.fill(table.read_locally(columns, where), select)
        except LocalUnsupportedError:
            self.fill(table.read_by_spark(columns, where), select)

    def fill(self, batches: Iterable[pa.RecordBatch], select: str = "FROM batch") -> None:
        """Makes the table `rows` of one batch or more; the first says the types."""
        first, *second = islice(batches := iter(batches), 2)  # mostly an empty one, and one with all the rows
        self._take(f"CREATE OR REPLACE TEMP TABLE rows AS {select}", [first, *second])
        for batch in batches:
            self._take(f"INSERT INTO rows {select}", [batch])

    def _take(self, query: str, batches: Sequence[pa.RecordBatch]) -> None:
        self._connection.register("batch", pa.Table.from_batches(batches))
        self.run(query)
        self._connection.unregister("batch")

    def run(self, query: str, *values: object) -> None:
        self._connection.execute(query, values or None)

    def all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values or None).fetchall()

    def one(self, query: str, *values: object) -> tuple[Any, ...]:
        (row,) = self.all(query, *values)
        return row

    def each(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """As `all`, a few at once; until the last of them nothing else can be asked."""
        self._connection.execute(query, values or None)
        while rows := self._connection.fetchmany(ROWS_AT_ONCE):
            yield from rows


def spill_folder(warehouse: Warehouse) -> Path | None:
    """The folder for what does not fit in memory: the project's state, where there is a project."""
    return None if warehouse.project is None else warehouse.project.state


@cache
def _database(folder: Path | None, memory: int, process: int) -> duckdb.DuckDBPyConnection:
    """The one of this process: to open one takes longer than to answer a small page. It asks nothing of the network and
    reads no file of its own accord."""
    spill = (folder or Path(tempfile.gettempdir())) / f"pages-{uuid4().hex}"
    database = duckdb.connect(
        config={
            "memory_limit": f"{memory >> 20}MiB",
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        }
    )

    def close() -> None:
        if os.getpid() == process:
            database.close()
            shutil.rmtree(spill, ignore_errors=True)

    atexit.register(close)
    return database


def summed(keys: str, rows: str, *, known: bool = False) -> str:
    """A query of the counts of `rows` (`x`, and `l`, its log10: NULL for zero) by `keys`: `n` of them, of how many `x`
    is `unknown`, the two halves of their exact sum (`high`, `low`), and `l`, the log10 of the sum of powers with the
    largest factored out, so that nothing overflows. Where each `x` is `known` there is none: the halves say it."""
    magnitude = "NULL::DOUBLE"
    if not known:
        rows = f"(SELECT *, max(l) OVER (PARTITION BY {keys}) AS top FROM {rows})"
        magnitude = "max(top) + log10(sum(pow(10.0, l - top)))"
    return f"""
        SELECT count(*) AS n, count(*) - count(x) AS unknown, coalesce(sum(x::HUGEINT // {HALF}), 0) AS high,
            coalesce(sum(x::HUGEINT % {HALF}), 0) AS low, {magnitude} AS l, {keys}
        FROM {rows} GROUP BY {keys}"""


def logarithm(x: str, l: str) -> str:  # noqa: E741 - as the column
    """The log10 of a count: the column's, else the count's own."""
    return f"coalesce({l}, CASE WHEN {x} > 0 THEN log10({x}::DOUBLE) END)"


def stretch(micros: str, seconds: int) -> str:
    """`bins.number_of_micros` of a column."""
    size = seconds * SECOND
    since = f"({micros} - {MONDAY_MICROS})"
    return f"(({since} - (({since} % {size}) + {size}) % {size}) // {size})"
