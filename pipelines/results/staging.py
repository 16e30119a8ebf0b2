"""Where results wait to be checked and published: the rows of one attempt, as Parquet files in a folder of their own.

The folder's name is random and stored in the run record. So a folder that a record names was written completely, by one
attempt, and does not change. A check and a publication need no other pinning, and a table with a log of its own would
take three times as long to make. Folders of attempts that were killed are named by no record.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from trendlake.cep_core import AnyPlan, TrendlakeError
from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import StagedLostError
from trendlake.pipelines.execute.worker import Answers, Batches, cause_of
from trendlake.pipelines.lake.here.parquet_scan import plain_batches
from trendlake.pipelines.lake.here.row_groups import all_groups, at_most, bounded_columns
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.results.reuse import hash_column, hashes, hashes_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.worker_errors import coded, told_by_workers

Staged = tuple[int, int]
"""The number of an attempt, by which its rows are read, and how many they are."""

ORIGIN = (
    StructField("plan_hash", StringType()),
    StructField("source_version", LongType()),
    StructField("run_id", StringType()),
    StructField("computed_at", TimestampType()),
)
"""Columns that say where a row comes from."""
OF_SEVERAL = StructField("source_versions", StringType())
"""One more, of patterns with `sources` or `lookup`: `orders@12 payments@7`. Their `source_version` is NULL where they
have several tables of events."""
LEFT = pa.schema(
    {"number": pa.int64(), "file": pa.string(), "rows": pa.int64()}
    | {name: pa.string() for name in ("code", "message", "hint", "trace")}
)
"""A worker's answer for a member: a file with rows of it, or its error; the `trace` of one that no user can fix."""
HELD = 1 << 27
"""Bytes of result rows that a worker holds before it writes them."""
GROUP_ROWS = 1 << 18
"""Of a row group: who reads published rows near a time reads whole ones."""
ORIGIN_NAMES = frozenset((*(field.name for field in ORIGIN), OF_SEVERAL.name))
HIDDEN = "_"
"""How the name of a file begins that Spark is not to read."""


def write_staged(run: Run, results: DataFrame, sources: Versions) -> Staged:
    """Write the rows with their origin. Raises what a kernel raised for the user."""
    number = secrets.randbits(62)
    origin = {
        "plan_hash": hash_column(run),
        "source_version": sf.lit(sources.version).cast("bigint"),
        "run_id": sf.lit(run.run_id),
        "computed_at": sf.current_timestamp(),
    }
    rows = results.withColumns(origin | ({OF_SEVERAL.name: sf.lit(str(sources))} if sources.named else {}))
    with told_by_workers():
        rows.write.format("parquet").save(staged_folder(run, number))
    return number, read_staged(run, number).count()


def leave_staged(
    runs: Mapping[int, Run], packed: DataFrame, answers: Callable[[Batches], Answers], sources: Versions
) -> dict[int, Staged | Exception] | None:
    """As `write_staged` of the rows that `answers` makes of `packed` for each of the `runs`, by their numbers, where
    the workers are processes of this machine: each writes files of its own, as columns. Spark would make rows of them,
    and columns again, for a third of the step's time. None where the warehouse is not on this machine's disk.

    A run whose rows have an error has it in their place. Files of a worker that fails, or whose work Spark does again,
    stay hidden from readers; so do those that were written for a run that has an error."""
    attempts = _Attempts.of(runs, sources)
    if attempts is None:
        return None
    with told_by_workers():
        left = packed.mapInArrow(_leaver(attempts.writers, answers), from_arrow_schema(LEFT)).collect()
    return attempts.staged([row.asDict() for row in left])


def stage_answers(runs: Mapping[int, Run], answers: Answers, sources: Versions) -> dict[int, Staged | Exception]:
    """As `leave_staged`, of what this process computes, in a warehouse on this machine's disk."""
    attempts = _Attempts.of(runs, sources)
    if attempts is None:
        raise RuntimeError("a warehouse elsewhere")
    lines = _leaver(attempts.writers, lambda _: answers)(iter(()))
    return attempts.staged([line for batch in lines for line in batch.to_pylist()])


def stage_nothing(run: Run, sources: Versions) -> Staged:
    """As `write_staged` of no rows."""
    attempts = _Attempts.of({0: run}, sources)
    if attempts is None:
        none = run.lake.spark.createDataFrame([], from_arrow_schema(run.plan.result_schema))
        return write_staged(run, none, sources)
    return attempts.numbers[0], 0


@dataclass(frozen=True)
class _Attempts:
    """An attempt of each of the runs, by their numbers: its own number, and its folder."""

    numbers: Mapping[int, int]
    places: Mapping[int, Path]
    writers: Mapping[int, _Writer]

    @classmethod
    def of(cls, runs: Mapping[int, Run], sources: Versions) -> _Attempts | None:
        """With their folders; None where the warehouse is not on this machine's disk."""
        numbers = {number: secrets.randbits(62) for number in runs}
        folders = {number: run.lake.on_disk(staged_folder(run, numbers[number])) for number, run in runs.items()}
        places = {number: folder for number, folder in folders.items() if folder is not None}
        if len(places) < len(runs):
            return None
        for folder in places.values():
            folder.mkdir(parents=True)
        writers = {number: _Writer(str(places[number]), Origin.of(run, sources)) for number, run in runs.items()}
        return cls(numbers, places, writers)

    def staged(self, left: Sequence[Mapping[str, Any]]) -> dict[int, Staged | Exception]:
        """`left`: rows of `LEFT`. Files of runs without an error get the names by which they are read."""
        errors = {row["number"]: _error(row) for row in sorted(left, key=str) if row["file"] is None}
        counts = dict.fromkeys(self.numbers, 0)
        for row in left:
            number = row["number"]
            if number not in errors:
                folder, name = self.places[number], row["file"]
                (folder / name).rename(folder / name.removeprefix(HIDDEN))
                counts[number] += row["rows"]
        return {number: errors.get(number) or (mine, counts[number]) for number, mine in self.numbers.items()}


@dataclass(frozen=True)
class _Writer:
    """Writes files with rows of a run into its folder."""

    folder: str
    origin: Origin

    def write(self, tables: Sequence[pa.Table]) -> tuple[str, int]:
        """The name of the file, and its rows."""
        from pyarrow.parquet import ParquetWriter  # 50 ms of a worker's start, for those that write only

        name = f"{HIDDEN}{uuid4().hex}.parquet"
        origin = self.origin.as_dictionaries()
        schema = origin.schema
        # to look for values that occur again takes longer than to write them: few numbers do
        often = [field.name for field in schema if pa.types.is_string(field.type) or field.name in ORIGIN_NAMES]
        how = {"store_schema": False, "write_statistics": bounded_columns(schema), "use_dictionary": often}
        with ParquetWriter(f"{self.folder}/{name}", schema, **how) as file:
            for whole in _of_some_size([batch for table in tables for batch in table.to_batches()]):
                file.write_batch(origin.beside(whole), row_group_size=GROUP_ROWS)
        return name, sum(table.num_rows for table in tables)


def _of_some_size(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, small ones joined: each becomes a row group of a file that may be one of the results table."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(len(part) for part in held) >= GROUP_ROWS:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _leaver(writers: Mapping[int, _Writer], answers: Callable[[Batches], Answers]) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: rows of `LEFT` for what each partition has of each member."""

    def leave(batches: Batches) -> Batches:
        lines: list[dict[str, Any]] = []
        held: dict[int, list[pa.Table]] = {}

        def write() -> None:
            for number, tables in held.items():
                name, rows = writers[number].write(tables)
                lines.append({"number": number, "file": name, "rows": rows})
            held.clear()

        size = 0
        for number, answer in answers(batches):
            if isinstance(answer, TrendlakeError):
                lines.append({"number": number, **_told_of(answer)})
            elif answer.num_rows:
                held.setdefault(number, []).append(answer)
                size += answer.nbytes
                if size > HELD:
                    write()
                    size = 0
        write()
        yield from pa.Table.from_pylist(lines, LEFT).to_batches()

    return leave


def _told_of(error: TrendlakeError) -> dict[str, str | None]:
    cause = cause_of(error)
    trace = None if cause is error else "".join(traceback.format_exception(cause))
    return {"code": error.code, "message": error.message, "hint": error.hint, "trace": trace}


def _error(row: Mapping[str, Any]) -> Exception:
    """The error that a row of `LEFT` describes, as it would be raised here."""
    if row["trace"]:
        return RuntimeError(f"a worker failed: {row['trace']}")
    return coded(row["code"], row["message"], row["hint"])


def with_origin(run: Run, results: pa.Table, sources: Versions) -> pa.Table:
    """The rows with their origin, as `write_staged` leaves them."""
    origin = Origin.of(run, sources)
    return pa.Table.from_batches([origin.beside(batch) for batch in results.to_batches()], origin.schema)


@dataclass(frozen=True)
class Origin:
    """The origin of result rows of a run, for the columns that name it. It can be sent to workers. `schema`: of the
    rows with their origin; `owner`: the number of the column that says by which of the `hashes` a row is known: by its
    time, or by its value where `by_value` has a hash for each."""

    schema: pa.Schema
    owner: int
    hashes: tuple[tuple[int, str], ...]
    sources: Versions
    run_id: str
    moment: int
    by_value: Mapping[str, str] | None = None

    @classmethod
    def of(cls, run: Run, sources: Versions) -> Origin:
        results = run.plan.result_schema
        name, by_value = run.plan.result_shape.hashed_by or (run.plan.owned(range(1))[0], None)
        schema = pa.schema([*results, *_origin_schema(run.plan)])
        moment = time.time_ns() // 1000
        return cls(schema, results.get_field_index(name), hashes(run), sources, run.run_id, moment, by_value)

    def as_dictionaries(self) -> Origin:
        """The same with texts as dictionaries: a file's writer takes each of them once."""
        names = ORIGIN_NAMES.intersection(field.name for field in self.schema if pa.types.is_string(field.type))
        kind = pa.dictionary(pa.int32(), pa.string())
        fields = [field.with_type(kind) if field.name in names else field for field in self.schema]
        return replace(self, schema=pa.schema(fields))

    def beside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with their origin."""
        version = self.sources.version
        number = pa.nulls(batch.num_rows) if version is None else repeated(version, batch.num_rows)
        about: list[str | int] = [self.run_id, self.moment, *([str(self.sources)] if self.sources.named else [])]
        owner = batch.column(self.owner)
        known = _known(owner, self.hashes) if self.by_value is None else hashes_of(owner, self.by_value)
        fields = list(self.schema)[len(batch.columns) :]
        of_all = [_repeated(value, field.type, batch.num_rows) for value, field in zip(about, fields[2:], strict=True)]
        values = (known, number, *of_all)
        origin = (array.cast(field.type) for array, field in zip(values, fields, strict=True))
        return pa.RecordBatch.from_arrays([*batch.columns, *origin], schema=self.schema)


def _repeated(value: str | int, kind: pa.DataType, count: int) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return repeated(value, count)
    return pa.DictionaryArray.from_arrays(arrow(np.zeros(count, np.int32)), repeated(value, 1))


def _known(owner: Any, hashes: Sequence[tuple[int, str]]) -> Any:
    """By which of the `hashes` each row is known."""
    number = np.searchsorted([before for before, _ in hashes[:-1]], numbers(owner), side="right")
    names = pa.concat_arrays([repeated(known, 1) for _, known in hashes])
    return pa.DictionaryArray.from_arrays(arrow(number.astype(np.int32)), names)


def read_staged(run: Run, number: int, lake: Lake | None = None) -> DataFrame:
    """The rows of an attempt, in the session of the run's lake or of another."""
    return read_folder(lake or run.lake, staged_folder(run, number), run.plan)


def read_folder(lake: Lake, folder: str, plan: AnyPlan) -> DataFrame:
    """The rows staged in `folder` by a run of the plan."""
    return lake.spark.read.schema(staged_schema(plan)).parquet(folder)


def staged_schema(plan: AnyPlan) -> StructType:
    """The columns of staged rows."""
    return StructType([*from_arrow_schema(plan.result_schema).fields, *origin_of(plan)])


def staged_here(run: Run, number: int, most: int) -> pa.Table | NotHere:
    """The rows of an attempt in this process, if they are on this machine's disk. Raises NotHereError if they are more
    than `most`."""
    files, schema = staged_files(run, number), staged_columns(run.plan)
    if isinstance(files, NotHere):
        return files
    batches = (batch for file in files for batch in plain_batches(str(file), schema, all_groups, threads=True))
    return pa.Table.from_batches(at_most(batches, most), schema)


def staged_files(run: Run, number: int) -> list[Path] | NotHere:
    """The files with the rows of an attempt, if they are on this machine's disk."""
    folder = run.lake.on_disk(staged_folder(run, number))
    if folder is None:
        return NotHere("staged rows elsewhere")
    return [file for file in sorted(folder.glob("*.parquet")) if not file.name.startswith((HIDDEN, "."))]


def staged_columns(plan: AnyPlan) -> pa.Schema:
    """As `staged_schema`, in types of Arrow's."""
    return pa.schema([*plan.result_schema, *_origin_schema(plan)])


def refuse_lost(run: Run, number: int, recorded: int | None, there: int) -> None:
    """Raises StagedLostError unless `there` are as many staged rows as the step before has `recorded`: files that are
    gone would be windows without rows. Records of early versions may not say how many they were (None)."""
    if recorded is not None and there != recorded:
        raise StagedLostError(
            f"{plural(recorded, 'row')} of {run.name}, run {run.run_id}, were staged in {staged_folder(run, number)}, "
            f"and {there:,} are there: its files have been changed or removed; nothing was published",
            hint=f"run `trendlake run {run.name}` for the same interval: it computes the rows again",
        )


def origin_of(plan: AnyPlan) -> tuple[StructField, ...]:
    """The columns that say where a row of the plan comes from."""
    return (*ORIGIN, OF_SEVERAL) if plan.schema.reads_several else ORIGIN


def _origin_schema(plan: AnyPlan) -> pa.Schema:
    return to_arrow_schema(StructType(list(origin_of(plan))), timezone="UTC")


def staged_folder(run: Run, number: int) -> str:
    """The path of the rows of an attempt."""
    return f"{run.warehouse.staging(run.name, run.run_id)}/{number}"
