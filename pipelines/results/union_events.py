"""The events of a pattern with `sources`: the good rows of each table at its pinned version, united by the engine
(`cep_core.events.union`), in this process and in Spark's workers alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core.derived import union
from trendlake.cep_core.events.tables import Tables, id_column, order_column
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.lake.here.parquet_scan import Files, TableFiles
from trendlake.pipelines.lake.road import NotHere, refuse_more
from trendlake.pipelines.results.source_events import SourceEvents, id_of_key
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.columns import column

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class UnionEvents:
    """The events that `reading` needs of each of the tables `parts`; `run`: the one that reads them."""

    run: Run
    reading: Reading
    parts: tuple[SourceEvents, ...]

    @classmethod
    def of(cls, run: Run, checked: Record, reading: Reading) -> UnionEvents:
        return cls(run, reading, tuple(SourceEvents.of([(part, checked)], reading) for part in run.parts))

    @property
    def span(self) -> tuple[int, int]:
        return self.parts[0].span

    def frame(self) -> DataFrame:
        """The good rows: columns and event types of `reading`."""
        return union_frame(self.run, [(part.run, part.good()) for part in self.parts], self.reading)

    def here(self, most: int) -> dict[str, pa.Table] | NotHere:
        """The good rows of each table in this process, by its name. Raises NotHereError, also where they are more than
        `most` together."""
        tables: dict[str, pa.Table] = {}
        for part in self.parts:
            rows = part.here(most)
            if isinstance(rows, NotHere):
                return rows
            tables[part.run.key] = rows
        refuse_more(sum(rows.num_rows for rows in tables.values()), most, "events")
        return tables

    def files(self) -> Files | None:
        """The files with those rows, where the workers can read those of each table by themselves."""
        tables, columns = self.reading.schema.tables, union_schema(self.run, self.reading)
        assert tables is not None
        files: list[TableFiles] = []
        for part in self.parts:
            own = part.table_files(own_columns(part.run, self.reading))
            if own is None:
                return None
            files.append(replace(own, united=_uniter(part.run.key, of_one(tables, part.run.key), columns)))
        return Files.for_reading(self.run.lake, files, columns, self.reading)


def union_frame(run: Run, parts: Sequence[tuple[Run, DataFrame]], reading: Reading) -> DataFrame:
    """Rows of some of the run's tables, at least one, as rows of their union, with the columns of `reading`. Each of
    `parts` has the run as of one table, and rows with the columns `own_columns`."""
    tables = reading.schema.tables
    assert tables is not None
    schema = union_schema(run, reading)
    frames = [_mapped(part, rows, tables, schema, reading) for part, rows in parts]
    return reduce(DataFrame.unionByName, frames)


def _mapped(run: Run, rows: DataFrame, tables: Tables, schema: pa.Schema, reading: Reading) -> DataFrame:
    own = rows.select(*map(column, own_columns(run, reading)))
    if _made_id(run, reading):
        own = own.withColumn(run.contract.roles["event_id"], id_of_key(run.contract.key))
    return own.mapInArrow(_mapper(run.key, of_one(tables, run.key), schema), from_arrow_schema(schema))


def _made_id(run: Run, reading: Reading) -> bool:
    """Whether the id of the events of the run's one table is read, and is made of keys."""
    return run.contract.made_id and id_column(run.key) in reading.columns


def _mapper(name: str, tables: Tables, schema: pa.Schema) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: batches of a table in, batches of the union out."""

    unite = _uniter(name, tables, schema)

    def map_batches(batches: Batches) -> Batches:
        for batch in batches:
            rows = pa.Table.from_batches([unite(batch)])
            yield from rows.cast(schema).to_batches()  # Spark takes no dictionaries

    return map_batches


def _uniter(name: str, tables: Tables, schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """The function from rows of the table to those of the union, columns of `schema`: types and names of tables may be
    dictionaries of texts."""

    def unite(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = union({name: pa.Table.from_batches([batch])}, tables, schema.names)
        return pa.RecordBatch.from_arrays([_in_type(rows[field.name], field.type) for field in schema], schema.names)

    return unite


def _in_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column in its type, as a dictionary where it is one: of another table's ids NULL of their type."""
    array = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, kind)
    return array if _plain(array.type) == kind else array.cast(kind)


def of_one(tables: Tables, name: str) -> Tables:
    """The description of one table alone."""
    own = tuple(table for table in tables.tables if table.name == name)
    return replace(tables, tables=own, types=tuple(one for one in tables.types if one.table == name))


def own_columns(run: Run, reading: Reading) -> list[str]:
    """The columns of the run's one table that are read, in the order of its contract."""
    tables, wanted = reading.schema.tables, set(reading.columns)
    assert tables is not None
    (table,) = of_one(tables, run.key).tables
    types = {one.name for one in tables.types if one.table == run.key}
    columns = [one for one in tables.columns if one.name in wanted]
    read = {origin.own for one in columns for origin in one.origins if origin.type in types}
    read |= {table.event_time, table.event_type}
    if id_column(run.key) in wanted:
        read |= {table.event_id, *(run.contract.key if run.contract.made_id else ())}
    if table.sequence and order_column(run.key) in wanted:
        read.add(table.sequence)
    read |= {item.name for one in table.derived for item in s.attributes(one.expression)}
    return [item.name for item in run.contract.columns if item.name in read]


def union_schema(run: Run, reading: Reading) -> pa.Schema:
    """The types of the columns of the union as the workers send them, by the contracts of its tables."""
    tables = reading.schema.tables
    assert tables is not None
    rows = union({part.key: no_rows(part, reading) for part in run.parts}, tables, reading.columns)
    return pa.schema([(field.name, _plain(field.type)) for field in rows.schema])


def no_rows(run: Run, reading: Reading) -> pa.Table:
    """None of the run's one table, with the columns that are read."""
    types = {item.name: item.type for item in run.contract.columns}
    kinds = [(name, arrow_type(types[name])) for name in own_columns(run, reading)]
    own_ids = [(run.contract.roles["event_id"], pa.string())] if _made_id(run, reading) else []
    return pa.schema([*kinds, *own_ids]).empty_table()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
