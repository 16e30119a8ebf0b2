"""The rows of a page in DuckDB, which counts and orders them in this process, beyond memory on disk.

A table is read by this process, or by Spark where only Spark can. Both give batches of Arrow, and the same query
answers. Names of columns never come into a query: `Database.load` gives each an alias of ours
(`g0`, `ws`), and values are parameters. Times are microseconds since the epoch.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import answer_of, either
from trendlake.pipelines.lake.table import During, Having, Table
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
class Column:
    """The values that are loaded of a column. `what`: its `value` (a time as microseconds); the same of no more than
    `shortened` characters; its `text` as Spark casts it; a `count` (DECIMAL(38, 0)); a `number` (a double)."""

    name: str
    what: str = "value"
    shortened: int | None = None


def _read_here(table: Table, columns: Mapping[str, Column], where: During | Having | None) -> Iterator[pa.RecordBatch]:
    """Under their aliases. Raises as `Table.batches_here`, also for texts that are Java's own."""
    names = [*dict.fromkeys(item.name for item in columns.values())]
    for batch in table.batches_here(names, where):
        yield _converted({alias: (batch.column(item.name), item) for alias, item in columns.items()})


def _read_by_spark(
    table: Table, columns: Mapping[str, Column], where: During | Having | None
) -> Iterator[pa.RecordBatch]:
    """As `_read_here`, of any table."""
    asked = [
        (column(item.name).cast("string") if item.what == "text" else column(item.name)).alias(alias)
        for alias, item in columns.items()
    ]
    for batch in batches_of(table.frame_of(where).select(*asked)):
        yield _converted({alias: (batch.column(alias), item) for alias, item in columns.items()})


def _converted(columns: Mapping[str, tuple[pa.Array, Column]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({alias: _as_asked(values, item) for alias, (values, item) in columns.items()})


def _as_asked(values: pa.Array, asked: Column) -> pa.Array:
    if pa.types.is_string(values.type) or pa.types.is_list(values.type):
        values.validate(full=True)  # DuckDB takes it for granted that a text is UTF-8
    if asked.what == "text":
        return answer_of(texts_here(values))
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
        table: Table,
        columns: Mapping[str, Column],
        where: During | Having | None = None,
        select: str = "FROM batch",
    ) -> None:
        """Makes the table `rows` of the `columns`, by their aliases, of all rows or of those that are asked for.
        `select`: what is taken of each batch of them."""
        either(
            lambda: self.fill(_read_here(table, columns, where), select),
            lambda: self.fill(_read_by_spark(table, columns, where), select),
        )

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
