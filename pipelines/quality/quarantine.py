"""The split: rows that keep the contract's rules, rows that break one. Good and bad together are the input,
exactly.

Rules of single rows are Spark conditions, so a row's verdict depends on nothing but the row. Rules of uniqueness are
judged in the whole table (`pipelines.quality.uniqueness`). Both are functions of the pinned version and the contract,
so every step that splits again gets the same split, and so does a run of any other range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from cep_core.events.names import same_name
from pipelines.contracts.column_names import ADDED, OPEN
from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import Rule, unique_rules
from pipelines.delta import local_commit
from pipelines.delta.commits import has_transaction
from pipelines.delta.local_log import local_errors
from pipelines.delta.local_reader import table_here
from pipelines.delta.tables import OvertakenError
from pipelines.errors import ContractRuleError, LocalUnsupportedError, SourceSchemaError
from pipelines.quality.documents import broken_document_rule
from pipelines.quality.uniqueness import BROKEN, annotate_duplicates, entry, repeats
from pipelines.spark.columns import column
from pipelines.spark.frames import frame_of
from pipelines.spark.row_columns import as_column, constant

REFUSED = (AnalysisException, ParseException)
"""What Spark raises for a condition that it cannot take."""
FEW = 10_000
"""Rows that this process writes to the quarantine."""


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
    inside."""
    return lies_in(column(contract.event_time), start_us, end_us)


def lies_in(time: Column, start_us: int, end_us: int) -> Column:
    """As `in_range`, by the rows' `time`."""
    inside = (time >= sf.timestamp_micros(sf.lit(start_us))) & (time < sf.timestamp_micros(sf.lit(end_us)))
    return inside | time.isNull()


def is_good(rule: Rule) -> Column:
    """Whether a row keeps a rule of single rows: never NULL. A NULL keeps every rule but not_null,
    not_missing and row; a `row` condition that is not true is broken."""
    if rule.condition is not None:
        return sf.coalesce(as_column(rule.condition).cast("boolean"), sf.lit(False))
    value = column(rule.columns[0])
    if rule.kind == "not_null":
        return value.isNotNull()
    if rule.kind == "not_missing":
        listed = value.isin([constant(item) for item in rule.values if item is not None])
        absent = sf.lit(None in rule.values) & value.isNull()
        return ~(sf.coalesce(listed, sf.lit(False)) | absent)
    if rule.kind == "xml":
        condition = ~broken_document_rule(value).eqNullSafe(sf.lit(rule.text))
    elif rule.kind == "in_set":
        condition = value.isin([constant(item) for item in rule.values])
    elif rule.kind == "pattern":
        condition = value.rlike(rule.text)
    elif rule.kind == "items":
        condition = _within(sf.size(value), rule)
    elif rule.kind == "distinct_items":
        condition = sf.size(sf.array_distinct(sf.array_compact(value))) == sf.size(value)
    elif rule.kind == "multiple":
        condition = value % constant(rule.high) == 0
    else:
        condition = _within(sf.length(value) if rule.kind == "length" else value, rule)
    return sf.coalesce(condition, sf.lit(True))


def _within(value: Column, rule: Rule) -> Column:
    bounds = []
    if rule.low is not None:
        bounds.append(value > constant(rule.low) if rule.low_strict else value >= constant(rule.low))
    if rule.high is not None:
        bounds.append(value < constant(rule.high) if rule.high_strict else value <= constant(rule.high))
    return reduce(lambda a, b: a & b, bounds, sf.lit(True))


def annotate(
    frame: DataFrame, rules: Sequence[Rule], *, unique: bool = True, rest: DataFrame | None = None
) -> DataFrame:
    """`frame` with the column `BROKEN`. `rest`: the rows of the table that `frame` does not hold, among whom a key must
    not be repeated either. Without `unique`, rules of uniqueness are taken as kept: where they are known to be.
    Raises ContractRuleError for a condition that Spark refuses."""
    return marked(frame, rules, rest) if unique and repeated(frame, rules, rest) else _flagged(frame, rules)


def marked(frame: DataFrame, rules: Sequence[Rule], rest: DataFrame | None) -> DataFrame:
    """As `annotate`, without asking first whether a key is repeated."""
    others = None if rest is None else _flagged(rest, rules)
    return annotate_duplicates(_flagged(frame, rules), unique_rules(rules), others)


def repeated(frame: DataFrame, rules: Sequence[Rule], rest: DataFrame | None) -> bool:
    """Whether a row of `frame` that keeps the rules of single rows repeats a key."""
    keyed = unique_rules(rules)
    return bool(keyed) and repeats(keeping(frame, rules), None if rest is None else keeping(rest, rules), keyed)


def _flagged(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """`frame` with `BROKEN` by the rules of single rows."""
    flags = [sf.when(~is_good(rule), entry(rule)) for rule in _single(rules)]
    with _refusing(frame, rules):
        return frame.withColumn(BROKEN, sf.array_compact(sf.array(*flags)) if flags else _nothing())


def _single(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of single rows that set rows apart."""
    return [rule for rule in rules if rule.quarantines and rule.kind != "unique"]


def _nothing() -> Column:
    return sf.array().cast("array<struct<rule:string,reason:string,tolerated:boolean>>")


@contextmanager
def _refusing(frame: DataFrame, rules: Sequence[Rule]) -> Iterator[None]:
    """Raises ContractRuleError, with the rule's name, where Spark refuses a rule of single rows. All are analysed at
    once, and each alone only then."""
    try:
        yield
    except REFUSED:
        for rule in _single(rules):
            try:
                frame.select(is_good(rule))
            except REFUSED as error:
                problem = str(error).split("\n")[0].split("SQLSTATE")[0]
                raise ContractRuleError(f"rule '{rule.name}' is refused: {problem}", place=rule.place) from None
        raise


def good_rows(annotated: DataFrame) -> DataFrame:
    return annotated.where(sf.size(BROKEN) == 0).drop(BROKEN)


def keeping(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that keep every rule of single rows, by a plain filter: what `annotate` without `unique` leaves, but no
    row is given its list of reasons, which costs more than to read it."""
    with _refusing(frame, rules):
        return frame.where(kept_by(rules))


def kept_by(rules: Sequence[Rule]) -> Column:
    """Whether a row keeps every rule of single rows that sets rows apart."""
    conditions = [is_good(rule) for rule in _single(rules)]
    return reduce(lambda a, b: a & b, conditions, sf.lit(True))


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


def write_quarantine(bad: DataFrame, path: str, *, run_id: str, source_version: int, key: str, rows: int) -> None:
    """Append the bad rows once: a second write under the same `key` (which names everything that decides the
    rows) is skipped by Delta itself, whichever attempt or process makes it. `rows`: how many there are; a few are
    written as a file by this process. Raises OvertakenError where the log does not have the commit afterwards."""
    transaction = _transaction(run_id, source_version, key)
    if rows > FEW or not _written_here(bad.sparkSession, bad.toArrow, path, transaction):
        _write_by_spark(bad, path, transaction)


def append_quarantine(
    spark: SparkSession, bad: pa.Table, path: str, *, run_id: str, source_version: int, key: str
) -> None:  # fmt: skip
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
    if bad.num_rows > FEW or not _written_here(spark, lambda: bad, path, transaction):
        _write_by_spark(frame_of(spark, bad), path, transaction)


def _transaction(run_id: str, source_version: int, key: str) -> str:
    return f"quarantine {run_id} v{source_version} {key}"


def _write_by_spark(bad: DataFrame, path: str, transaction: str) -> None:
    writer = bad.write.format("delta").mode("append").option("mergeSchema", "true")
    writer.option("txnAppId", transaction).option("txnVersion", 1).save(path)
    if not has_transaction(bad.sparkSession, path, transaction, 1):
        raise OvertakenError


def _written_here(spark: SparkSession, bad: Callable[[], pa.Table], path: str, transaction: str) -> bool:
    """Whether the rows are there, by a file that this process has written, if not by an earlier attempt. Raises
    OvertakenError."""
    try:
        with local_errors():
            table = table_here(spark, path)
            if table.last_transaction(transaction) >= 1:
                return True
            schema = table.none().schema
            if not table.appendable:
                raise LocalUnsupportedError("a table that asks more of who writes it")
            rows = bad()
            if not set(rows.column_names) <= set(schema.names):
                raise LocalUnsupportedError("other columns than the table has")
            rows = local_commit.shaped(rows, schema)
            actions = [local_commit.add_file(table.folder, rows)]
        metrics, line = {"numFiles": 1, "numOutputRows": rows.num_rows}, (transaction, 1)
        with local_commit.active(spark, spark) as java:
            version = local_commit.commit_files(spark, java, table, path, actions, "Write", metrics, line)
    except LocalUnsupportedError:
        return False
    if version is None or not has_transaction(spark, path, transaction, 1):
        raise OvertakenError
    return True
