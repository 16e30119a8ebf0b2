"""Quarantined rows that are still broken, and repaired rows put back in their place.

The quarantine table is the record of what runs have set apart, and stays as they wrote it. Whether a row of it is still
*open* is a function of the source's newest version and of the contract as it is: an equal row is in the source and
breaks a rule. So nothing need be marked, and nothing can be marked wrongly: a row that was replayed, corrected by a
delivery, deleted, or that a changed contract lets pass, is open no longer.

Replaying is one commit to the source that turns an old row into its repaired one (compare and swap: where the old row
is gone, nothing is written). Done again, or by two at once, it finds the repaired row there and passes it over; killed,
it has committed or not. `revise` then follows the source's change feed as for any correction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import unique_rules
from pipelines.delta.commits import commit_token, find_commit
from pipelines.delta.table_versions import table_id
from pipelines.delta.tables import OvertakenError, Warehouse, exists, latest_version, read_at, with_retries
from pipelines.error_text import plural
from pipelines.errors import LocalUnsupportedError, RepairError
from pipelines.ingest.commits import writing_session
from pipelines.ingest.readers.files import read_file
from pipelines.ingest.stored_ids import refuse_other_ids
from pipelines.ingest.typed_rows import typed
from pipelines.ingest.write_here import Target, merge_here
from pipelines.quality import quarantine as q
from pipelines.quality.quarantine import ID, RUNS, SINCE
from pipelines.quality.uniqueness import BROKEN, annotate_duplicates, related
from pipelines.runs.basis import Basis
from pipelines.runs.record import recorded
from pipelines.runs.stage import Record
from pipelines.spark.columns import column
from pipelines.spark.frames import frame_of
from pipelines.spark.identifiers import quoted

TOLD = 10
"""So many rows are named in an error."""


@dataclass(frozen=True)
class Replayed:
    """File rows: put in place of broken ones; there already; left as they were, which changes nothing."""

    repaired: int
    there: int
    unchanged: int
    version: int


def open_rows(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int, run_id: str | None = None
) -> DataFrame:
    """The source's rows at `version` that a run (`run_id`, else any) has set apart and that break the contract as it
    is: the contract's columns, `ID`, `rule` (the first broken), `reason` (all), `RUNS` (how many have set it apart),
    `SINCE` (when the first did). Raises SourceSchemaError, ContractRuleError."""
    source = read_at(spark, warehouse.source(contract.name), version)
    q.check_columns(source.schema, contract)
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
    same = _all([column(name).eqNullSafe(sf.col(f"old_{i}")) for i, name in enumerate(names)])
    annotated = q.annotate(
        source.join(keys, same, "left_semi"), contract.rules, rest=source.join(keys, same, "left_anti")
    )
    bad = annotated.where(sf.size(BROKEN) > 0).select(
        *map(column, names),
        _identity(names).alias(ID),
        sf.get(BROKEN, sf.lit(0)).getField("rule").alias("rule"),
        sf.array_join(sf.col(BROKEN).getField("reason"), "; ").alias("reason"),
    )
    return bad.join(sf.broadcast(log.select(_identity(names).alias(ID), RUNS, SINCE)), ID)


def read_repaired(path: Path, contract: Contract) -> pa.Table:
    """The rows of a file for `replay`, with `ID` where it has that column. Raises SourceFileError."""
    return read_file(path, contract, also=(ID,), repaired=True)


def newest(spark: SparkSession, warehouse: Warehouse, contract: Contract) -> int:
    """The source's newest version. Raises SourceMissingError."""
    path = warehouse.source(contract.name)
    if not exists(spark, path):
        raise warehouse.missing(contract.name)
    return latest_version(spark, path)


def replay(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, file: pa.Table, run_id: str
) -> Replayed:  # fmt: skip
    """Put the rows of a file in the place of open rows: of the row that their `ID` names, where the file has that
    column, else of the one with the event's id. All of the file or nothing of it.

    Raises RepairError, with the rows, where one replaces no open row, or breaks the contract still; NotOursError for a
    table that other programs write.
    """
    warehouse.refuse_foreign(contract.name)
    record = Record(run_id, None, "ingest", source=contract.name, rows_in=file.num_rows, rows_updated=0)
    with recorded(spark, warehouse, record):
        done = with_retries(
            lambda: _replay(spark, warehouse, contract, file, record), "replaying repaired rows"
        )  # fmt: skip
        record.source_version = done.version
        record.basis = Basis(
            contract.fingerprint, contract.lateness_us or 0, source_version=done.version,
            source_table=table_id(spark, warehouse.source(contract.name), done.version),
        )  # fmt: skip
    return done


def _replay(spark: SparkSession, warehouse: Warehouse, contract: Contract, file: pa.Table, record: Record) -> Replayed:
    version = newest(spark, warehouse, contract)
    path, names = warehouse.source(contract.name), [item.name for item in contract.columns]
    refuse_other_ids(spark, path, version, contract)
    source = read_at(spark, path, version).select(*map(column, names))
    broken = open_rows(spark, warehouse, contract, version).select(ID, *map(column, names)).toArrow()
    given = _given(spark, contract, file)
    there = _there(source, given, names)
    repairs, known, unchanged = _matched(contract, broken, given, there)
    written = int(record.rows_updated or 0)
    if not repairs:
        return Replayed(written, known - written, unchanged, version)
    fresh = _table(given, names, [after for _, after in repairs])
    gone = _table(broken, names, [before for before, _ in repairs])
    _refuse_broken(contract, frame_of(spark, fresh), _without(source, frame_of(spark, gone), names))
    token = commit_token(record.run_id, "replay")
    session = writing_session(spark, token, version, contract)
    try:
        key = contract.roles["event_id"]  # first: by it the files are chosen
        keys = gone.select([key, *(name for name in names if name != key)])
        merge_here(Target(spark, session, path, version, contract), keys, fresh, fresh.slice(0, 0))
    except LocalUnsupportedError:
        _swap(session, path, gone, fresh)
    commit = find_commit(spark, path, token)
    record.rows_updated = written + (commit.metric("numTargetRowsUpdated") if commit.in_history else 0)
    if not commit.in_history or commit.metric("numTargetRowsUpdated") != len(repairs):
        raise OvertakenError  # somebody has changed such a row in between: look again
    return Replayed(int(record.rows_updated), known - written, unchanged, commit.version)


def _given(spark: SparkSession, contract: Contract, file: pa.Table) -> pa.Table:
    """The file's rows in the source's types: the contract's columns, `ID` as they are now, `replaces` as the file says
    (NULL where it does not)."""
    names = [item.name for item in contract.columns]
    frame = typed(frame_of(spark, file), contract)
    replaces = sf.col(ID) if ID in file.column_names else sf.lit(None)
    rows = frame.select(*map(column, names), replaces.cast("string").alias("replaces"))
    return rows.withColumn(ID, _identity(names)).toArrow()


def _there(source: DataFrame, given: pa.Table, names: Sequence[str]) -> set[str]:
    """Which of the rows of a file are in the source as they are."""
    rows = frame_of(source.sparkSession, given.select([*names, ID]))
    same = _all([column(name).eqNullSafe(sf.col(f"old_{i}")) for i, name in enumerate(names)])
    matching = source.join(sf.broadcast(rows.select(*_renamed(names), ID)), same).select(ID).distinct()
    return {row[0] for row in matching.collect()}


def _matched(
    contract: Contract, broken: pa.Table, given: pa.Table, there: set[str]
) -> tuple[list[tuple[str, str]], int, int]:
    """Pairs (`ID` of an open row, `ID` of the row that replaces it), how many rows are there already, how many are as
    they were."""
    key = contract.roles["event_id"]
    copies = Counter(broken.column(ID).to_pylist())
    by_event: dict[Any, set[str]] = {}
    for name, event in zip(broken.column(ID).to_pylist(), broken.column(key).to_pylist(), strict=True):
        by_event.setdefault(event, set()).add(name)
    pairs: dict[str, str] = {}
    faults, known, unchanged = [], 0, 0
    for number, row in enumerate(given.select([ID, "replaces", key]).to_pylist(), start=1):
        named = by_event.get(row[key], set())
        if row["replaces"]:
            named = {row["replaces"]} if row["replaces"] in copies else set()
        if row[ID] in named or row[ID] == row["replaces"]:
            unchanged += 1
        elif not named and row[ID] in there:
            known += 1
        elif len(named) != 1:
            what = "there is no open row that it replaces" if not named else f"{len(named)} open rows have its id"
            faults.append(f"row {number} ({row[key]}): {what}")
        elif (before := next(iter(named))) in pairs:
            faults.append(f"row {number} ({row[key]}): another row of the file replaces the same")
        elif copies[before] > 1:
            faults.append(f"row {number} ({row[key]}): {copies[before]} open rows are all alike")
        else:
            pairs[before] = row[ID]
    if faults:
        raise RepairError(
            f"{plural(len(faults), 'row')} cannot be put back: {_some(faults)}",
            hint=f"write the open rows with `trendlake quarantine show {contract.name} --out FILE`, keep {ID}",
        )
    return list(pairs.items()), known, unchanged


def _refuse_broken(contract: Contract, fresh: DataFrame, rest: DataFrame) -> None:
    """Raises RepairError where a repaired row breaks a rule, or has the key of a row of the source that stays."""
    judged, others = (q.annotate(rows, contract.rules, unique=False) for rows in (fresh, rest))
    keyed = unique_rules(contract.rules)
    key = column(contract.roles["event_id"])
    why = sf.array_join(sf.col(BROKEN).getField("reason"), "; ")
    duplicates = annotate_duplicates(judged, keyed, None).where(sf.size(BROKEN) > 0).select(key, why)
    faults = [f"{row[0]}: {row[1]}" for row in duplicates.collect()]
    for rule in keyed:
        taken = related(judged, others, rule).select(key)
        faults += [f"{row[0]}: {rule.name}: a row of the source has the same key" for row in taken.collect()]
    if faults:
        raise RepairError(
            f"{len(faults)} repaired rows break the contract: {_some(faults)}",
            hint="nothing was written; repair them, or leave them out of the file",
        )


def _swap(spark: SparkSession, path: str, gone: pa.Table, fresh: pa.Table) -> None:
    """Old rows into new ones, where they are still there."""
    names = gone.column_names
    columns = {f"old_{i}": gone[name] for i, name in enumerate(names)}
    columns |= {f"new_{i}": fresh[name] for i, name in enumerate(names)}
    repairs = frame_of(spark, pa.table(columns))
    target = DeltaTable.forPath(spark, path)
    same = [sf.col(f"t.{quoted(name)}").eqNullSafe(sf.col(f"s.old_{i}")) for i, name in enumerate(names)]
    values: dict[str, str | Column] = {quoted(name): sf.col(f"s.new_{i}") for i, name in enumerate(names)}
    target.alias("t").merge(repairs.alias("s"), _all(same)).whenMatchedUpdate(set=values).execute()


def _without(source: DataFrame, gone: DataFrame, names: Sequence[str]) -> DataFrame:
    same = _all([column(name).eqNullSafe(sf.col(f"old_{i}")) for i, name in enumerate(names)])
    return source.join(sf.broadcast(gone.select(*_renamed(names))), same, "left_anti")


def _table(rows: pa.Table, names: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    """For each of the `ID`s in `wanted` its row: the columns `names`."""
    place = {name: number for number, name in enumerate(rows.column(ID).to_pylist())}
    return rows.select(list(names)).take([place[name] for name in wanted])


def _identity(names: Sequence[str]) -> Column:
    """A text that rows share only if they agree on all columns: each value with its length, NULL told apart."""
    texts = [column(name).cast("string") for name in names]
    marked = [sf.coalesce(sf.concat(sf.length(text), sf.lit(":"), text), sf.lit("-")) for text in texts]
    return sf.left(sf.sha2(sf.concat(*marked), 256), sf.lit(16))


def _renamed(names: Sequence[str]) -> Iterator[Column]:
    return (column(name).alias(f"old_{i}") for i, name in enumerate(names))


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def _some(faults: Sequence[str]) -> str:
    more = f"; and {len(faults) - TOLD} more" if len(faults) > TOLD else ""
    return "; ".join(faults[:TOLD]) + more
