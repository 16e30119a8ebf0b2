"""Whether any of many numbers is there twice, without Spark's hash table of all of them: as with events, blocks of
numbers travel and not rows, so that ten million take two seconds and not twelve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from cep_core.events.arrays import arrow, numbers

Batches = Iterator[pa.RecordBatch]

SCHEMA = pa.schema({"partition": pa.int32(), "numbers": pa.binary()})
FOUND = pa.schema({"twice": pa.bool_()})
PARTS_PER_CORE = 3
BLOCK = 1 << 20
SMALL = 8 << 20
"""Bytes, as Spark reckons them from the files' size before it looks, below which all numbers come to this process, 8
bytes each. Files are compressed, so they may be several times as many bytes here."""


def any_twice(frame: DataFrame) -> bool:
    """`frame` has one column, of whole numbers without NULLs that lie as evenly as hashes. A worker holds a part of
    them, 16 bytes each."""
    if _size(frame) < SMALL:  # the same frame: Spark has planned it already, which takes longer than to read few rows
        return _any_equal([numbers(chunk) for chunk in frame.toArrow().column(0).chunks])
    parts = frame.sparkSession.sparkContext.defaultParallelism * PARTS_PER_CORE

    def spread(batches: Batches) -> Batches:
        held: list[np.ndarray] = []
        for batch in batches:
            held.append(numbers(batch.column(0)))
            if sum(map(len, held)) >= BLOCK:
                yield from _parted(np.concatenate(held), parts)
                held = []
        if held:
            yield from _parted(np.concatenate(held), parts)

    blocks = frame.mapInArrow(spread, from_arrow_schema(SCHEMA)).repartitionById(parts, "partition")
    return not blocks.mapInArrow(_twice, from_arrow_schema(FOUND)).isEmpty()


def _size(frame: DataFrame) -> int:
    java: Any = frame._jdf
    return int(java.queryExecution().optimizedPlan().stats().sizeInBytes())


def _parted(values: np.ndarray, parts: int) -> Batches:
    """A row for each part: its number, and the values in it."""
    part = (values.view(np.uint64) % np.uint64(parts)).astype(np.int32)
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=parts))
    for number, chosen in enumerate(np.split(values[order], ends[:-1])):
        if len(chosen):
            data = pa.array([chosen.tobytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([arrow(np.array([number], np.int32)), data], schema=SCHEMA)


def _twice(batches: Batches) -> Batches:
    held = [np.frombuffer(value.as_buffer(), np.int64) for batch in batches for value in batch.column("numbers")]
    if _any_equal(held):
        yield pa.RecordBatch.from_arrays([pa.array([True])], schema=FOUND)


def _any_equal(parts: Sequence[np.ndarray]) -> bool:
    """Whether a number is in the parts twice."""
    if not parts:
        return False
    values = np.sort(np.concatenate(parts))
    return bool((values[1:] == values[:-1]).any())
