"""The `quarantine_id` of a row: 16 hex digits that rows share only if they agree on all columns of the contract."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import StringType

from trendlake.cep_core.events.array_types import AnyArray, Int64s
from trendlake.cep_core.events.arrays import numbers, valid
from trendlake.cep_core.events.normalise import canonical
from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.spark.arrow_functions import of_rows
from trendlake.pipelines.spark.columns import column


def with_row_ids(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """`rows` with `ID`, of their columns `names`."""
    return rows.append_column(ID, row_ids(rows, names))


def row_id_column(names: Sequence[str]) -> Column:
    """`row_ids` in Spark's workers."""
    return of_rows(partial(row_ids, names=names), StringType(), {name: column(name) for name in names})


def row_ids(rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> pa.Array:
    """The id of each row: a hash of its values' bytes, as Arrow has them, each with its length; NULL apart. Equal
    numbers have equal bytes (`canonical`)."""
    columns = [_bytes_of(canonical(rows.column(name))) for name in names]
    return pa.array([_hash(values) for values in zip(*columns, strict=True)], pa.string())


def _hash(values: Sequence[bytes | None]) -> str:
    marked = b"".join(b"-" if value is None else b"%d:%b" % (len(value), value) for value in values)
    return hashlib.sha256(marked).hexdigest()[:16]


def _bytes_of(array: pa.Array) -> list[bytes | None]:
    kind = array.type
    if pa.types.is_nested(kind):
        return [None if value is None else repr(value).encode() for value in array.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts: list[bytes | None] = array.cast(pa.large_binary()).to_pylist()
        return texts
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    raw = b"" if data is None else data[array.offset * width : (array.offset + len(array)) * width].to_pybytes()
    return [raw[at * width : (at + 1) * width] if present else None for at, present in enumerate(valid(array).tolist())]


def former_row_ids(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """The ids that Trendlake 0.2 gave the rows, for files that it exported: a hash of the values as Spark's texts; of a
    double the text is Spark's hash of it."""
    columns = [_texts(rows[name]) for name in names]
    hashes = []
    for values in zip(*columns, strict=True):
        marked = "".join("-" if text is None else f"{len(text)}:{text}" for text in values)
        hashes.append(hashlib.sha256(marked.encode()).hexdigest()[:16])
    return hashes


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values as Spark had them as texts."""
    if pa.types.is_floating(column.type):
        array = canonical(column)
        there = valid(array)
        hashes = hashes_of_doubles(numbers(array.cast(pa.float64()), 0.0))
        return [str(value) if is_there else None for value, is_there in zip(hashes.tolist(), there, strict=True)]
    text_of = next((text for is_one, text in _TEXTS if is_one(column.type)), str)
    return [None if value is None else text_of(value) for value in column.to_pylist()]


def hashes_of_doubles(values: AnyArray) -> Int64s:
    """int64: Spark's `xxhash64` of doubles (`canonical`): XXH64 of 8 bytes with the seed 42."""
    bits = values.view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = _turned(bits * _PRIMES[1], 31) * _PRIMES[0]
        mixed = _turned((np.uint64(42) + _PRIMES[4] + np.uint64(8)) ^ mixed, 27) * _PRIMES[0] + _PRIMES[3]
        mixed = (mixed ^ (mixed >> np.uint64(33))) * _PRIMES[1]
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _PRIMES[2]
    hashes: Int64s = (mixed ^ (mixed >> np.uint64(32))).view(np.int64)
    return hashes


_PRIMES = np.array(
    [0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5], np.uint64
)
"""Those of XXH64."""


def _turned(values: AnyArray, by: int) -> AnyArray:
    return (values << np.uint64(by)) | (values >> np.uint64(64 - by))


def _text_of_moment(value: datetime) -> str:
    return re.sub(r"(\.\d*?)0+$", r"\1", value.replace(tzinfo=None).isoformat(" "))


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(kind == pa.timestamp("us", "UTC"))


def _is_list_of_texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_string(kind.value_type))


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pa.types.is_boolean, lambda value: str(value).lower()),
    (pa.types.is_date32, date.isoformat),
    (_is_timestamp, _text_of_moment),
    (pa.types.is_decimal, lambda value: format(value, "f")),
    (_is_list_of_texts, lambda texts: f"[{', '.join('null' if text is None else text for text in texts)}]"),
)
