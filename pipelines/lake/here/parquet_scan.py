"""The files of a pinned version of a source, read by the workers themselves, as columns: Spark makes rows of the
columns that it reads, and then columns again to hand them to Python, which costs more than all that the workers do.

Delta says which files hold the version and may hold rows of the windows (`paths_by_delta`), and only what has but one
reading is read so: no deletion vectors, no column mapping, none of the columns a partition's, files of this machine's
file system. A worker that finds a file to be otherwise reports it, and the run goes on with Spark's own reader: there
is nothing that only this one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from trendlake.cep_core.events.arrays import arrow, numbers, repeated, valid
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.errors import OtherwiseWrittenError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

Batches = Iterator[pa.RecordBatch]
Part = tuple[str, int, int]
"""A file's path, and which share of its row groups, of how many."""

HARMLESS = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "inCommitTimestamp"}
"""Features of Delta's protocol for readers that leave the rows of a file what they are."""
BATCH_ROWS = 1 << 19
PARTS_PER_CORE = 3
PARTS_A_TASK = 16


@dataclass(frozen=True)
class Span:
    """Rows with `start` <= `column` < `end`, microseconds since the epoch."""

    column: str
    start: int
    end: int


@dataclass(frozen=True)
class TableFiles:
    """`columns` of the rows in `span` (None: of all) in the files at `paths` of a table. `constant`: a column that the
    files do not have, and the text that each row has in it; `united`: the rows as those of a union of tables."""

    paths: tuple[str, ...]
    columns: pa.Schema
    span: Span | None
    constant: tuple[str, str] | None = None
    united: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None


@dataclass(frozen=True)
class Files:
    """`columns` of the rows of `tables`, read as `typed` leaves the rows of a DataFrame: of those whose `kind` is one
    of `kinds` (where that is not None), which is given as its number in `kinds` where that is `numbered`, or not at all
    where there is one kind only. `encoded`: texts that come as dictionaries."""

    lake: Lake
    tables: tuple[TableFiles, ...]
    columns: pa.Schema
    kind: str
    kinds: tuple[str, ...] | None
    numbered: bool
    encoded: tuple[str, ...]

    @classmethod
    def for_reading(cls, lake: Lake, tables: Sequence[TableFiles], columns: pa.Schema, reading: Reading) -> Files:
        kind = reading.schema.event_type
        return cls(lake, tuple(tables), columns, kind, None, numbered=True, encoded=()).of(reading)

    def of(self, reading: Reading) -> Files:
        """The same files as one of several readings needs them that read them together."""
        key = reading.unit_key
        texts = [field.name for field in self.columns if pa.types.is_string(field.type)]
        encoded = tuple(name for name in texts if name in (*key, self.kind))
        return replace(self, kinds=reading.event_types, numbered=self.kind not in key, encoded=encoded)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for table in self.tables for path in table.paths)

    @property
    def schema(self) -> StructType:
        """As Spark's, of all columns."""
        return from_arrow_schema(self.columns)

    def mapInArrow(self, function: Callable[[Batches], Batches], schema: StructType) -> DataFrame:  # noqa: N802
        """As a DataFrame's, of the batches that the workers read."""
        cores = self.lake.spark.sparkContext.defaultParallelism * PARTS_PER_CORE
        shares = max(1, -(-cores // max(1, len(self.paths))))
        numbered_paths = [(number, path) for number, table in enumerate(self.tables) for path in table.paths]
        parts = [(number, (path, share, shares)) for number, path in numbered_paths for share in range(shares)]
        tasks = max(1, min(len(parts), max(cores, len(parts) // PARTS_A_TASK)))
        read = reader(self)

        def work(numbered: Batches) -> Batches:
            mine = [task for batch in numbered for task in numbers(batch.column(0)).tolist()]
            return function(batch for task in mine for part in parts[task::tasks] for batch in read(*part))

        return self.lake.spark.range(0, tasks, 1, tasks).mapInArrow(work, schema)


def paths_by_delta(frame: DataFrame, path: str, version: int) -> tuple[str, ...] | None:
    """The files that may hold rows of `frame`, which reads that version of the Delta table at `path` and asks for
    nothing but a span of time; None where they can't be read alone."""
    if not _alone(frame, path, version):
        return None
    uris = [urlsplit(uri) for uri in frame.inputFiles()]
    if any(uri.scheme != "file" or uri.netloc for uri in uris):
        return None
    return tuple(unquote(uri.path) for uri in uris)


def _alone(frame: DataFrame, path: str, version: int) -> bool:
    """Whether a file's rows, as they are, are rows of the table's version."""
    spark = frame.sparkSession
    log = java_class(spark, DELTA_LOG).forTable(spark._jsparkSession, path)
    none = getattr(log, "getSnapshotAt$default$2")(), getattr(log, "getSnapshotAt$default$3")()
    snapshot = log.getSnapshotAt(version, *none, False)
    about = snapshot.metadata()
    features = set(snapshot.protocol().getReaderFeatures() or ())
    mapped = about.columnMappingMode().name() != "none"
    return features <= HARMLESS and not mapped and not about.partitionColumns().nonEmpty()


def plain_columns(columns: StructType, names: Sequence[str]) -> pa.Schema | None:
    """Arrow's types of the columns, each under the name it was asked for by; None where one needs Spark to read it."""
    fields = {same_name(field.name): field for field in columns.fields}
    asked = [fields[same_name(name)] for name in names]
    kinds = to_arrow_schema(StructType(asked), timezone="UTC").types
    if any(field.metadata.keys() - {"comment"} for field in asked):  # a default, a padded text, a mapped name
        return None
    if any(pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in kinds):
        return None
    return pa.schema(list(zip(names, kinds, strict=True)))


def reader(files: Files) -> Callable[[int, Part], Batches]:
    """The function that reads a part of a file of the table of that number. It is sent to the workers."""
    tables, kind, kinds, numbered, encoded = files.tables, files.kind, files.kinds, files.numbered, files.encoded

    def read(number: int, part: Part) -> Batches:
        table = tables[number]
        for batch in _batches(part, table, encoded):
            rows = batch if table.span is None else _in_span(batch, table.span)
            rows = rows if table.united is None else table.united(rows)
            yield rows if kinds is None else _of_kinds(rows, kind, kinds, numbered=numbered)

    return read


def _batches(part: Part, table: TableFiles, encoded: Sequence[str]) -> Batches:
    """The rows of a part of a file; what cannot be read is an OtherwiseWrittenError, and Spark reads it."""
    try:
        yield from _read(part, table, encoded)
    # a KeyError: a file from before the table got a column that is to be encoded
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
        raise OtherwiseWrittenError(f"{part[0]}: {error}") from error


def _read(part: Part, table: TableFiles, encoded: Sequence[str]) -> Batches:
    """Texts of a table of a union come as they are: it makes rows of the union of them."""
    path, share, shares = part
    texts = (
        ()
        if table.united is not None
        else [name for name in encoded if table.constant is None or name != table.constant[0]]
    )
    return plain_batches(
        path, table.columns, lambda file: range(share, file.num_row_groups, shares), texts, table.constant
    )


def plain_batches(
    path: str,
    schema: pa.Schema,
    wanted: Callable[[Any], Sequence[int]],
    encoded: Sequence[str] = (),
    constant: tuple[str, str] | None = None,
    *,
    threads: bool = False,
    rows: int = BATCH_ROWS,
) -> Batches:
    """The rows of the row groups that are `wanted` of a file (its `ParquetFile` says which there are), columns of
    `schema`, `rows` at a time; with `threads` read by all cores. Raises OtherwiseWrittenError where to read them takes
    Spark, and as pyarrow does."""
    from pyarrow.parquet import ParquetFile  # 50 ms of a worker's start, for those that read only

    with ParquetFile(path, memory_map=True, read_dictionary=list(encoded), coerce_int96_timestamp_unit="us") as file:
        if from_old_calendar(file.schema_arrow.metadata or {}):
            raise OtherwiseWrittenError(f"{path}: its dates may be those of the old calendar")
        fields = {field.name: field for field in file.schema_arrow}
        stored = {file.schema.column(i).path: file.schema.column(i).physical_type for i in range(len(file.schema))}
        there = [name for name in schema.names if name in fields]
        if {same_name(name) for name in set(schema.names) - set(there)} & {same_name(name) for name in fields}:
            raise OtherwiseWrittenError(f"{path}: a column's name is written otherwise")
        for name in there:
            _refuse_other_type(path, fields[name], schema.field(name).type, stored.get(name, ""))
        groups = list(wanted(file))
        for batch in file.iter_batches(rows, groups, there, use_threads=threads) if groups else ():
            yield _as(batch, schema, constant)


def from_old_calendar(metadata: dict[bytes, bytes]) -> bool:
    """Whether days before 1582 may be those of the Julian calendar in a file: Spark converts them."""
    writer = metadata.get(b"org.apache.spark.version", b"4").split(b".")
    old = writer[0].isdigit() and (int(writer[0]), int(writer[1]) if len(writer) > 1 else 9) < (3, 1)
    return old or bool({b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"} & metadata.keys())


def _refuse_other_type(path: str, field: pa.Field, wanted: pa.DataType, stored: str) -> None:
    """A column may be of the type asked for, or a moment in another unit; Spark's old way of writing moments has no
    time zone and means UTC."""
    kind = plain_type(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
    same = kind == wanted
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted):
        same = (kind.tz is not None or stored == "INT96") == (wanted.tz is not None)
    if not same:
        raise OtherwiseWrittenError(f"{path}: {field.name} is {kind}, not {wanted}")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type as it is of columns that Spark writes. Of texts, bytes and lists Arrow has several types for one that
    Parquet has, and a file says which of them its writer used: delta-rs, pandas and Polars use others."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind


def _as(batch: pa.RecordBatch, schema: pa.Schema, constant: tuple[str, str] | None) -> pa.RecordBatch:
    """The batch's columns in the schema's order and, but for texts as dictionaries, types. A column that the file does
    not have is NULL: it was written before the table got it."""
    have = {name: batch.column(name) for name in batch.schema.names}
    arrays = []
    for field in schema:
        array = have.get(field.name)
        if constant is not None and field.name == constant[0]:
            array = repeated(constant[1], batch.num_rows)
        elif array is None:
            array = pa.nulls(batch.num_rows, field.type)
        elif not (pa.types.is_dictionary(array.type) and pa.types.is_string(field.type)):
            array = array.cast(field.type)
        elif array.type.value_type != field.type:
            array = array.cast(pa.dictionary(array.type.index_type, field.type))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def _in_span(batch: pa.RecordBatch, span: Span) -> pa.RecordBatch:
    """The rows in the span; those without a time are in none."""
    time = batch.column(span.column)
    values = numbers(time, 0)
    inside = (values >= span.start) & (values < span.end)
    if time.null_count:
        inside &= valid(time)
    return batch if inside.all() else batch.filter(arrow(inside))


def _of_kinds(batch: pa.RecordBatch, column: str, kinds: tuple[str, ...], *, numbered: bool) -> pa.RecordBatch:
    """The rows of one of `kinds`."""
    at = batch.schema.get_field_index(column)
    values = batch.column(at)
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    number = {kind: code for code, kind in enumerate(kinds)}
    known = np.array([number.get(kind.as_py(), -1) for kind in values.dictionary] + [-1], np.int32)
    codes = known[numbers(values.indices, -1)]
    in_kinds = codes >= 0
    if numbered:
        batch = batch.remove_column(at) if len(kinds) == 1 else batch.set_column(at, column, arrow(codes))
    return batch if in_kinds.all() else batch.filter(arrow(in_kinds))
