"""The split: rows that keep the contract's rules, rows that break one. Good and bad together are the input,
exactly.

Rules of single rows are asked of `pipelines.rules.keep` in the workers: a row's verdict depends on the row alone. Rules
of uniqueness are judged in the whole table (`pipelines.quality.uniqueness`). Both are functions of the pinned version
and the contract, so every step that splits again gets the same split, and so does a run of any other range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType, StructType

from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.contracts.column_names import ADDED, OPEN
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Limit, Rule, unique_rules
from trendlake.pipelines.errors import SourceSchemaError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import has_transaction
from trendlake.pipelines.lake.create import created_here
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.here.write import Line, append, shaped
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.road import either, refuse
from trendlake.pipelines.lake.warehouse import KEPT, OvertakenError
from trendlake.pipelines.quality.scan import scan
from trendlake.pipelines.quality.uniqueness import BROKEN, INSIDE, annotate_duplicates, entry
from trendlake.pipelines.rules.keep import columns_of, keep
from trendlake.pipelines.spark.arrow_functions import of_rows
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of


def check_columns(schema: StructType, contract: Contract) -> None:
    """Raises SourceSchemaError when the table lacks a column of the contract or has it in another type."""
    have = {same_name(field.name): field for field in schema.fields}
    faults = []
    for wanted in contract.columns:
        field = have.get(same_name(wanted.name))
        if field is None:
            faults.append(f"{wanted.name} is missing")
        elif field.dataType.simpleString() != wanted.type:
            faults.append(f"{wanted.name} is {field.dataType.simpleString()}, not {wanted.type}")
    if any(rule.quarantines for rule in contract.rules):
        faults += [f"{name} is a name the quarantine table needs" for name in (*ADDED, *OPEN) if name in have]
    if faults:
        raise SourceSchemaError(f"table '{contract.name}' is not as {contract.file} says: {'; '.join(faults)}")


def in_range(contract: Contract, start_us: int, end_us: int) -> Column:
    """Rows of `[start_us, end_us)`, microseconds; a row without a time may belong anywhere, so it counts as
    inside, and so does each of a reference table."""
    if contract.is_reference:
        return sf.lit(True)
    return lies_in(column(contract.event_time), start_us, end_us)


def lies_in(time: Column, start_us: int, end_us: int) -> Column:
    """As `in_range`, by the rows' `time`."""
    inside = (time >= sf.timestamp_micros(sf.lit(start_us))) & (time < sf.timestamp_micros(sf.lit(end_us)))
    return inside | time.isNull()


def is_good(rule: Rule) -> Column:
    """Whether a row keeps a rule of single rows: never NULL (`pipelines.rules.keep`, asked in the workers)."""
    return kept_by([replace(rule, limit=Limit(), warning=False)])


def annotate(
    frame: DataFrame, rules: Sequence[Rule], *, unique: bool = True, rest: DataFrame | None = None
) -> DataFrame:
    """`frame` with the column `BROKEN`. `rest`: the rows of the table that `frame` does not hold, among whom a key must
    not be repeated either. Without `unique`, rules of uniqueness are taken as kept: where they are known to be."""
    return marked(frame, rules, rest) if unique and repeated(frame, rules, rest) else _flagged(frame, rules)


def marked(frame: DataFrame, rules: Sequence[Rule], rest: DataFrame | None) -> DataFrame:
    """As `annotate`, without asking first whether a key is repeated."""
    others = None if rest is None else _flagged(rest, rules)
    return annotate_duplicates(_flagged(frame, rules), unique_rules(rules), others)


def repeated(frame: DataFrame, rules: Sequence[Rule], rest: DataFrame | None) -> bool:
    """Whether a row of `frame` that keeps the rules of single rows repeats a key, or the hash of one. To ask takes a
    fraction of the time that it takes to order many rows, as `annotate_duplicates` does."""
    keyed = unique_rules(rules)
    if not keyed:
        return False
    every = frame.withColumn(INSIDE, sf.lit(0))
    if rest is not None:
        every = every.unionByName(rest.withColumn(INSIDE, sf.lit(1)))
    return bool(scan(every, _single(rules), keyed, sf.col(INSIDE), [(0, 1)]).repeated)


def _flagged(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """`frame` with `BROKEN` by the rules of single rows."""
    single = _single(rules)
    if not single:
        return frame.withColumn(BROKEN, _nothing())
    entries = sf.array(*map(entry, single))
    numbered = frame.withColumn(BROKEN, _asked(single, partial(_broken_numbers, single), ArrayType(IntegerType())))
    return numbered.withColumn(BROKEN, sf.transform(BROKEN, lambda number: sf.get(entries, number)))


def _single(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of single rows that quarantine rows."""
    return [rule for rule in rules if rule.quarantines and rule.kind != "unique"]


def _nothing() -> Column:
    return sf.array().cast("array<struct<rule:string,reason:string,tolerated:boolean>>")


def _asked(rules: Sequence[Rule], function: Callable[[pa.RecordBatch], pa.Array], kind: DataType) -> Column:
    """The result of `function` in the workers for the columns that rules speak of: a value of type `kind` a row."""
    return of_rows(function, kind, {name: column(name) for name in columns_of(rules)})


def _broken_numbers(rules: Sequence[Rule], rows: pa.RecordBatch) -> pa.Array:
    """The numbers of the rules that each row breaks."""
    breaks = np.stack([~keep(rule, rows) for rule in rules], axis=1)
    ends = np.concatenate([[0], np.cumsum(breaks.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(arrow(ends), arrow(np.nonzero(breaks)[1].astype(np.int32)))


def _all_kept(rules: Sequence[Rule], rows: pa.RecordBatch) -> pa.Array:
    """Whether each row keeps all rules."""
    return arrow(np.logical_and.reduce([keep(rule, rows) for rule in rules]))


def good_rows(annotated: DataFrame) -> DataFrame:
    return annotated.where(sf.size(BROKEN) == 0).drop(BROKEN)


def keeping(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that keep every rule of single rows, by a plain filter: what `annotate` without `unique` leaves, but no
    row is given its list of reasons, which costs more than to read it."""
    return frame.where(kept_by(rules))


def kept_by(rules: Sequence[Rule]) -> Column:
    """Whether a row keeps every rule of single rows that quarantines rows."""
    single, one_row = _single(rules), pa.table({"": [None]})
    if not all(keep(rule, one_row)[0] for rule in single if not columns_of([rule])):
        return sf.lit(False)
    asked = [rule for rule in single if columns_of([rule])]  # Spark asks no function without columns
    return _asked(asked, partial(_all_kept, asked), BooleanType()) if asked else sf.lit(True)


def bad_rows(annotated: DataFrame, run_id: str, source_version: int) -> DataFrame:
    """The rows that break a rule, as they came, with the columns `ADDED`: `rule` is the first rule broken,
    `reason` says all."""
    return (
        annotated.where(sf.size(BROKEN) > 0)
        .withColumn("reason", sf.array_join(sf.col(BROKEN).getField("reason"), "; "))
        .withColumn("rule", sf.get(BROKEN, sf.lit(0)).getField("rule"))
        .withColumn("run_id", sf.lit(run_id))
        .withColumn("source_version", sf.lit(source_version).cast("bigint"))
        .withColumn("quarantined_at", sf.current_timestamp())
        .drop(BROKEN)
    )


def write_quarantine(
    lake: Lake, bad: DataFrame, path: str, *, run_id: str, source_version: int, key: str, rows: int
) -> None:
    """Append the bad rows once: a second write under the same `key` (which names everything that decides the
    rows) is skipped by Delta itself, whichever attempt or process makes it. `rows`: how many there are; a few are
    written as a file by this process. Raises OvertakenError where the log does not have the commit afterwards."""
    transaction = _transaction(run_id, source_version, key)
    if rows > limits.QUARANTINED or not _written_here(lake, bad.toArrow, path, transaction):
        _write_by_spark(lake, bad, path, transaction)


def append_quarantine(lake: Lake, bad: pa.Table, path: str, *, run_id: str, source_version: int, key: str) -> None:
    """As `write_quarantine`, of rows in this process: as they came, with `REASONS`, and with the `source_version` of
    each where that is not the same for all."""
    origin: tuple[tuple[str, Any, pa.DataType], ...] = (
        ("run_id", run_id, pa.string()),
        ("source_version", source_version, pa.int64()),
        ("quarantined_at", datetime.now(UTC), pa.timestamp("us", "UTC")),
    )
    for name, value, kind in origin:
        if name not in bad.column_names:
            bad = bad.append_column(name, pa.repeat(pa.scalar(value, kind), bad.num_rows))
    bad = bad.select([*(name for name in bad.column_names if name not in ADDED), *ADDED])
    transaction = _transaction(run_id, source_version, key)
    if bad.num_rows > limits.QUARANTINED or not _written_here(lake, lambda: bad, path, transaction):
        _write_by_spark(lake, frame_of(lake.spark, bad), path, transaction)


def _transaction(run_id: str, source_version: int, key: str) -> str:
    return f"quarantine {run_id} v{source_version} {key}"


def _write_by_spark(lake: Lake, bad: DataFrame, path: str, transaction: str) -> None:
    writer = bad.write.format("delta").mode("append").option("mergeSchema", "true")
    writer.option("txnAppId", transaction).option("txnVersion", 1).save(path)
    if not has_transaction(lake, path, transaction, 1):
        raise OvertakenError


def _written_here(lake: Lake, bad: Callable[[], pa.Table], path: str, transaction: str) -> bool:
    """Whether the quarantine has the rows, by an earlier attempt or by a file that this process has written. Raises
    OvertakenError."""

    def here() -> bool:
        rows = None
        if lake.on_disk(path) is not None and not exists(lake, path):
            rows = bad()
            created_here(lake, path, from_arrow_schema(rows.schema), KEPT)
        table = table_here(lake, path)
        if table.last_transaction(transaction) < 1:
            schema, rows = table.none().schema, bad() if rows is None else rows
            refuse({"other columns than the table has": not set(rows.column_names) <= set(schema.names)})
            append(table, shaped(rows, schema), None, Line(transaction, 1))
        return True

    return either(here, lambda: False)
