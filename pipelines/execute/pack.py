"""How events travel to the workers. Spark shuffles rows, and 10 million are dear; so a worker right after the scan
takes blocks of many rows, and for each partition that some of them go to makes one row: the partition's number and its
events as an Arrow stream. A few hundred such rows are shuffled, and read where they arrive without being copied. Where
all workers are on one machine the streams stay in files that both sides map, and the rows say where: Spark would copy
each byte six times on its way.

The events of a time shard are stored together there, and the stream's metadata, not each row, gives their places. Texts
of the group travel as dictionaries. An event's type is one of the few the plan names, so its number travels, and
nothing where there is only one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.array_types import AnyArray, Int32s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.execute.kernels.rows import renumber, rows_by_key
from trendlake.pipelines.execute.shard_assignment import Placed, place
from trendlake.pipelines.execute.shard_plan import Part, copies
from trendlake.pipelines.lake.here.parquet_scan import Files
from trendlake.pipelines.spark.columns import column

Batches = Iterator[pa.RecordBatch]
Streams = Iterator[tuple[int, pa.RecordBatch]]
"""A partition's number, and events that go there."""

PARTITION = "partition"
SCHEMA = pa.schema({PARTITION: pa.int32(), "events": pa.binary(), "file": pa.string(), "at": pa.int64()})
"""`events` as an Arrow stream, or where it is NULL, the `file` that has the stream from byte `at`."""
BLOCK_ROWS = 1 << 19
BLOCK_BYTES = 1 << 26
"""A block is at most one batch more than this: what a worker holds while it packs, some three times over."""
SHARDS = b"trendlake_shards"
"""Metadata of a stream of events: int32 pairs of a time shard and how many of the events, in their order, are its own.
Without it all are of shard 0."""


def typed(reading: Reading, events: DataFrame | Files) -> DataFrame | Files:
    """Of `events`, which other readings may share, those of the types that are read, with the type's number in
    `reading.event_types` in place of its name, or without the column where there is one type only. The names stay where
    the group shows them; and all is as it is where every type matters."""
    if isinstance(events, Files):
        return events.of(reading)
    name = reading.schema.event_type
    if reading.event_types is None:
        return events
    events = events.where(column(name).isin(list(reading.event_types)))
    if name in reading.unit_key:
        return events
    if len(reading.event_types) == 1:
        return events.drop(name)
    number = sf.lit(0)
    for code, kind in enumerate(reading.event_types):
        number = sf.when(column(name) == sf.lit(kind), sf.lit(code)).otherwise(number)
    return events.withColumn(name, number)


def packer(reading: Reading, parts: Sequence[Part], folder: str | None = None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: batches of typed events of `reading` in, rows of `SCHEMA` out, for each part that
    some of the events go to. The streams are in the rows, or in files of `folder`, which those who read them reach as
    well."""
    rows = max(1, BLOCK_ROWS // sum(copies(part.reading, part.cut) for part in parts))

    def pack(batches: Batches) -> Batches:
        keep_imports("packing")
        for block in blocks(batches, rows):
            keyed = encoded(reading, block)
            if len(parts) == 1:
                streams = _streams(keyed, parts[0])
            else:
                streams = chain.from_iterable(_streams(_columns_of(keyed, part), part) for part in parts)
            yield from _sent(streams) if folder is None else _left(streams, folder)

    return pack


def _columns_of(block: pa.Table, part: Part) -> pa.Table:
    """The columns of a block that a part moves."""
    return block.select([name for name in part.reading.columns if name in block.column_names])


def _streams(block: pa.Table, part: Part) -> Streams:
    """The rows of a block that a part moves, by partition."""
    placed = place(part.reading, part.cut, block)
    for partition, events in parted(block, placed, part.cut.shards):
        yield part.first + partition, events


@cache
def keep_imports(work: str) -> None:
    """Once a process for each sort of `work`, at its start: what is there by now are modules, which stay. A worker
    collects garbage after each task, and to go through those takes 50 to 150 ms each time."""
    gc.freeze()


def blocks(batches: Batches, rows: int) -> Iterator[pa.Table]:
    """The batches, joined until they are `rows` or `BLOCK_BYTES`."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(b.num_rows for b in held) >= rows or sum(b.nbytes for b in held) >= BLOCK_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held.clear()
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def encoded(reading: Reading, block: pa.Table) -> pa.Table:
    """The block with the group's texts as dictionaries."""
    for name in reading.unit_key:
        index = block.schema.get_field_index(name)
        if pa.types.is_string(block.schema.field(index).type):
            block = block.set_column(index, name, block.column(index).dictionary_encode())
    return block


def parted(block: pa.Table, placed: Placed, shards: int) -> Streams:
    """The placed rows of each partition by time shard, else in the block's order; with `SHARDS` where there are
    several."""
    if not len(placed.rows):
        return
    order, starts = _ordered(placed, shards)
    rows = placed.rows[order]
    taken: dict[str, AnyArray] = {}
    dictionaries: dict[str, tuple[pa.Array, Int32s]] = {}
    for name in block.column_names:
        (array,) = block.column(name).chunks
        if pa.types.is_dictionary(array.type):
            dictionaries[name] = (array.dictionary, np.full(len(array.dictionary), -1, np.int32))
            taken[name] = numbers(array.indices, -1)[rows]
        else:
            taken[name] = array.take(arrow(rows))
    for partition, (start, end) in enumerate(pairwise(starts)):
        if start < end:
            arrays = [
                _compact(*dictionaries[name], values[start:end]) if name in dictionaries else values[start:end]
                for name, values in taken.items()
            ]
            events = pa.RecordBatch.from_arrays(arrays, list(taken))
            yield partition, events if shards == 1 else _telling(events, placed.shard[order[start:end]])


def _ordered(placed: Placed, shards: int) -> tuple[Int64s, Int64s]:
    """As `rows_by_key` of the partitions, each by shard."""
    partitions = int(placed.partition.max()) + 1
    if shards == 1:
        return rows_by_key(placed.partition, partitions)
    if shards > len(placed.shard):  # of all time: most have no events here
        by_shard = np.argsort(placed.shard, kind="stable")
    else:
        by_shard, _ = rows_by_key(placed.shard, shards)
    order, starts = rows_by_key(placed.partition[by_shard], partitions)
    return by_shard[order], starts


def _telling(events: pa.RecordBatch, shard: Int32s) -> pa.RecordBatch:
    """The events, which are sorted by `shard`, with `SHARDS`."""
    starts = np.flatnonzero(np.diff(shard, prepend=shard[0] - 1))
    runs = np.stack([shard[starts], np.diff(starts, append=len(shard))], axis=1).astype(np.int32)
    return events.replace_schema_metadata({SHARDS: runs.tobytes()})


def _compact(dictionary: pa.Array, numbers: Int32s, codes: Int32s) -> pa.Array:
    """A dictionary array of `codes` (-1: NULL) that holds the values in use only. `numbers`: -1 for each value of
    `dictionary`, and so again at the end."""
    fresh = np.empty(len(codes), np.int32)
    used = np.empty(min(len(codes), len(numbers)), np.int64)
    used = used[: renumber(codes, numbers, fresh, used)]
    return pa.DictionaryArray.from_arrays(arrow(fresh, codes < 0), dictionary.take(arrow(used)))


def _sent(streams: Streams) -> Batches:
    """A batch of `SCHEMA` for each stream, which is in the row."""
    for partition, events in streams:
        sink = pa.BufferOutputStream()
        _write(sink, events)
        written = sink.getvalue()
        ends = pa.py_buffer(np.array([0, written.size], np.int32))
        stream = pa.Array.from_buffers(pa.binary(), 1, [None, ends, written])  # not copied
        rest = (pa.nulls(1, kind) for kind in SCHEMA.types[2:])
        yield pa.RecordBatch.from_arrays([arrow(np.array([partition], np.int32)), stream, *rest], schema=SCHEMA)


def _left(streams: Streams, folder: str) -> Batches:
    """One batch of `SCHEMA` for all streams, one after the other in one new file."""
    path, partitions, at = f"{folder}/{uuid4().hex}", [], []
    with pa.OSFile(path, "wb") as file:
        for partition, events in streams:
            partitions.append(partition)
            at.append(file.tell())
            _write(file, events)
    columns = [partitions, [None] * len(at), [path] * len(at), at]
    yield pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def _write(sink: Any, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def unpacked(reading: Reading, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The events of a batch of `SCHEMA`, part by part, each with its time shard, with their types named again."""
    for stream, path, at in zip(*(batch.column(name) for name in SCHEMA.names[1:]), strict=True):
        for events in pa.ipc.open_stream(_mapped(path.as_py(), at.as_py()) if path.is_valid else stream.as_buffer()):
            noted = (events.schema.metadata or {}).get(SHARDS)
            runs = np.array([[0, events.num_rows]]) if noted is None else np.frombuffer(noted, np.int32).reshape(-1, 2)
            named, start = _named(reading, events), 0
            for shard, rows in runs.tolist():
                yield shard, named.slice(start, rows)
                start += rows


def _mapped(path: str, at: int) -> pa.MemoryMappedFile:
    """The file from byte `at`: what is read of it is not copied."""
    file = pa.memory_map(path)
    file.seek(at)
    return file


def _named(reading: Reading, events: pa.RecordBatch) -> pa.RecordBatch:
    name = reading.schema.event_type
    if reading.event_types is None or name in reading.unit_key:
        return events
    columns = {field: events.column(field) for field in events.schema.names}
    codes = numbers(columns[name]) if name in columns else np.zeros(events.num_rows, np.int8)
    names = pa.concat_arrays([repeated(kind, 1) for kind in reading.event_types])
    columns[name] = pa.DictionaryArray.from_arrays(arrow(codes.astype(np.int8)), names)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
