"""The open rows of a source's quarantine: rows that a run has set apart, that the source still has, and that break the
contract as it is.

Of a table on this machine's disk they are judged in this process, which takes a fraction of a second; of any other, and
where only Spark can say which they are, by Spark. Both give the same rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cep_core.events.array_types import AnyArray, Int64s
from cep_core.events.arrays import arrow, numbers, valid
from cep_core.events.names import same_name
from cep_core.events.normalise import canonical
from pipelines.contracts.column_names import ID, RUNS, SINCE
from pipelines.contracts.contract import Contract
from pipelines.delta.local_log import local_errors
from pipelines.delta.local_reader import table_here
from pipelines.delta.tables import Warehouse, exists, read_at
from pipelines.errors import LocalUnsupportedError
from pipelines.quality import quarantine as q
from pipelines.quality.arrow_split import JUDGED, split, whole
from pipelines.quality.quarantine import check_columns
from pipelines.quality.uniqueness import BROKEN
from pipelines.spark.columns import column
from pipelines.spark.frames import frame_of

FEW = 50_000
"""Rows of a quarantine that are read in this process."""


OLD = "__trendlake_old_"


def open_rows(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int, run_id: str | None = None
) -> pa.Table:
    """The source's rows at `version` that a run (`run_id`, else any) has set apart and that break the contract as it
    is, in some order: the contract's columns, `ID`, `rule` (the first broken), `reason` (all), `RUNS` (how many have
    set it apart), `SINCE` (when the first did). Raises SourceSchemaError, ContractRuleError."""
    try:
        return open_rows_here(spark, warehouse, contract, version, run_id)
    except LocalUnsupportedError:
        return open_rows_by_spark(spark, warehouse, contract, version, run_id).toArrow()


def open_rows_by_spark(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int, run_id: str | None = None
) -> DataFrame:
    """As `open_rows`. Raises SourceSchemaError, ContractRuleError."""
    source = read_at(spark, warehouse.source(contract.name), version)
    check_columns(source.schema, contract)
    names = [item.name for item in contract.columns]
    source = source.select(*map(column, names))
    if not exists(spark, warehouse.quarantine(contract.name)):
        seen = source.limit(0).withColumns({"run_id": sf.lit(""), "quarantined_at": sf.current_timestamp()})
    else:
        seen = spark.read.format("delta").load(warehouse.quarantine(contract.name))
    if run_id is not None:
        seen = seen.where(sf.col("run_id") == run_id)
    log = seen.groupBy(*map(column, names)).agg(
        sf.count_distinct("run_id").alias(RUNS), sf.min("quarantined_at").alias(SINCE)
    )
    keys = sf.broadcast(log.select(*_renamed(names)))
    same = _all([column(name).eqNullSafe(sf.col(f"{OLD}{i}")) for i, name in enumerate(names)])
    annotated = q.annotate(
        source.join(keys, same, "left_semi"), contract.rules, rest=source.join(keys, same, "left_anti")
    )
    bad = annotated.where(sf.size(BROKEN) > 0).select(
        *map(column, names),
        identity_by_spark(annotated, names).alias(ID),
        sf.get(BROKEN, sf.lit(0)).getField("rule").alias("rule"),
        sf.array_join(sf.col(BROKEN).getField("reason"), "; ").alias("reason"),
    )
    return bad.join(sf.broadcast(log.select(identity_by_spark(log, names).alias(ID), RUNS, SINCE)), ID)


def open_rows_here(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int, run_id: str | None = None
) -> pa.Table:
    """As `open_rows`. Raises LocalUnsupportedError where it is not certain of them, and SourceSchemaError."""
    source = table_here(spark, warehouse.source(contract.name), version)
    check_columns(source.schema, contract)
    if contract.documents is not None:
        source.refuse_large()
    names = [item.name for item in contract.columns]
    with local_errors():
        quarantined = _quarantined(spark, warehouse.quarantine(contract.name), names, run_id)
        rows = source.every(names, JUDGED).combine_chunks()
        parted = whole(split(rows, contract))
        bad = np.flatnonzero(parted.broken >= 0)
        broken = parted.with_reasons(contract, bad, rows.take(arrow(bad)))
        broken = broken.append_column(ID, pa.array(identities(broken, names), pa.string()))
        rows = broken.filter(pc.is_in(broken[ID], pa.array(list(quarantined), pa.string())))
        about = [quarantined[identity] for identity in rows[ID].to_pylist()]
        columns = {
            **{name: rows[name] for name in (ID, *names, "rule", "reason")},
            RUNS: pa.array([len(runs) for runs, _ in about], pa.int64()),
            SINCE: pa.array([since for _, since in about], pa.timestamp("us", "UTC")),
        }
        return pa.table(columns)


def _quarantined(
    spark: SparkSession, path: str, names: Sequence[str], run_id: str | None
) -> dict[str, tuple[set[str], datetime]]:
    """Of each row that was set apart, by its identity: the runs that did it, and when the first of them did."""
    if not exists(spark, path):
        return {}
    rows = table_here(spark, path).every([*names, "run_id", "quarantined_at"], FEW)
    if run_id is not None:
        rows = rows.filter(pc.equal(rows["run_id"], run_id))
    if rows["run_id"].null_count or rows["quarantined_at"].null_count:
        raise LocalUnsupportedError("rows that no run wrote")
    quarantined: dict[str, tuple[set[str], datetime]] = {}
    about = zip(rows["run_id"].to_pylist(), rows["quarantined_at"].to_pylist(), strict=True)
    for identity, (run, moment) in zip(identities(rows, names), about, strict=True):
        runs, since = quarantined.get(identity, (set[str](), moment))
        quarantined[identity] = (runs | {run}, min(since, moment))
    return quarantined


def with_identity(spark: SparkSession, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """`rows` with `ID`, of their columns `names`."""
    try:
        return rows.append_column(ID, pa.array(identities(rows, names), pa.string()))
    except LocalUnsupportedError:
        frame = frame_of(spark, rows)
        return frame.withColumn(ID, identity_by_spark(frame, names)).toArrow()


def identities(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """`ID` of each row, as `identity_by_spark`. Raises LocalUnsupportedError for columns of other types than these."""
    columns = [_texts(rows[name]) for name in names]
    hashes = []
    for values in zip(*columns, strict=True):
        marked = "".join("-" if text is None else f"{len(text)}:{text}" for text in values)
        hashes.append(hashlib.sha256(marked.encode()).hexdigest()[:16])
    return hashes


def identity_by_spark(frame: DataFrame, names: Sequence[str]) -> Column:
    """`ID`: 16 hex digits that rows of `frame` share only if they agree on all columns `names`: a hash of the values as
    texts, each with its length, NULL told apart. Of a number that may have a fraction the text is a hash: Java's texts
    of such numbers depend on its version."""
    kinds = {same_name(name): kind for name, kind in frame.dtypes}
    fractions = {name for name in names if kinds[same_name(name)] in ("float", "double")}
    hashes = {name: sf.xxhash64(column(name).cast("double")) for name in fractions}
    unless_null = {name: sf.when(column(name).isNotNull(), hashes[name]) for name in fractions}
    texts = [unless_null.get(name, column(name)).cast("string") for name in names]
    marked = [sf.coalesce(sf.concat(sf.length(text), sf.lit(":"), text), sf.lit("-")) for text in texts]
    return sf.left(sf.sha2(sf.concat(*marked), 256), sf.lit(16))


def _renamed(names: Sequence[str]) -> Iterator[Column]:
    return (column(name).alias(f"{OLD}{i}") for i, name in enumerate(names))


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values as `identity_by_spark` has them as texts. Raises LocalUnsupportedError."""
    if pa.types.is_floating(column.type):
        array = canonical(column)
        there = valid(array)
        hashes = hashes_of_doubles(numbers(array.cast(pa.float64()), 0.0))
        return [str(value) if is_there else None for value, is_there in zip(hashes.tolist(), there, strict=True)]
    text_of = next((text for is_one, text in _TEXTS if is_one(column.type)), None)
    if text_of is None:
        raise LocalUnsupportedError(f"values of type {column.type} as texts")
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


def _is_plain_decimal(kind: pa.DataType) -> bool:
    """Of more decimal places Java writes some numbers with an exponent."""
    return bool(pa.types.is_decimal(kind) and kind.scale <= 6)


def _is_list_of_texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_string(kind.value_type))


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pa.types.is_string, str),
    (pa.types.is_integer, str),
    (pa.types.is_boolean, lambda value: str(value).lower()),
    (pa.types.is_date32, date.isoformat),
    (_is_timestamp, _text_of_moment),
    (_is_plain_decimal, str),
    (_is_list_of_texts, lambda texts: f"[{', '.join('null' if text is None else text for text in texts)}]"),
)
