"""Quarantined rows that are still broken, and repaired rows put back in their place.

The quarantine table is the record of the rows that runs have quarantined, and stays as they wrote it. Whether a row of
it is still *open* is a function of the source's newest version and of the contract as it is: an equal row is in the
source and breaks a rule. So nothing has to be marked, and nothing can be marked wrongly: a row that was replayed,
corrected by a delivery, deleted, or that a changed contract lets pass, is open no longer.

Replaying is one commit to the source that turns an old row into its repaired one (compare and swap: where the old row
is gone, nothing is written). Done again, or by two at once, it finds the repaired row there and skips it; killed, it
has committed or not. `revise` then follows the source's change feed as for any correction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import RepairError
from trendlake.pipelines.ingest.commits import writing_lake
from trendlake.pipelines.ingest.existing_rows import rows_sharing
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.row_ids import former_row_ids, with_row_ids
from trendlake.pipelines.ingest.stored_ids import refuse_other_ids
from trendlake.pipelines.ingest.typed_rows import typed_table
from trendlake.pipelines.ingest.write.here import Target, merge_here
from trendlake.pipelines.lake.commits import commit_token, find_commit
from trendlake.pipelines.lake.lake import Lake, exists, latest_version
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.lake.warehouse import OvertakenError, with_retries
from trendlake.pipelines.rules.split import split, split_alone
from trendlake.pipelines.rules.unique import exact_codes
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.frames import frame_of
from trendlake.pipelines.spark.identifiers import quoted

REPLACES = "__trendlake_replaces"
TOLD = 10
"""So many rows are named in an error."""


@dataclass(frozen=True)
class Replayed:
    """File rows: put in place of broken ones; there already; left as they were, which changes nothing."""

    repaired: int
    there: int
    unchanged: int
    version: int


def read_repaired(path: Path, contract: Contract) -> pa.Table:
    """The rows of a file for `replay`, with `ID` where it has that column. Raises SourceFileError."""
    return read_file(path, contract, also=(ID,), repaired=True)


def newest(lake: Lake, contract: Contract) -> int:
    """The source's newest version. Raises SourceMissingError."""
    path = lake.warehouse.source(contract.name)
    if not exists(lake, path):
        raise lake.warehouse.missing(contract.name)
    return latest_version(lake, path)


def replay(lake: Lake, contract: Contract, file: pa.Table, run_id: str) -> Replayed:
    """Put the rows of a file in the place of open rows: of the row that their `ID` names, where the file has that
    column, else of the one with the event's id. All of the file or nothing of it.

    Raises RepairError, with the rows, where one replaces no open row, or breaks the contract still; NotOursError for a
    table that other programs write.
    """
    lake.warehouse.refuse_foreign(contract.name)
    record = Record(run_id, None, "ingest", source=contract.name, rows_in=file.num_rows, rows_updated=0)
    with recorded(lake, record):
        done = with_retries(lambda: _replay(lake, contract, file, record), "replaying repaired rows")
        record.source_version = done.version
        record.basis = Basis(
            contract.fingerprint,
            contract.lateness_us or 0,
            sources=Versions.one(done.version, table_id(lake, lake.warehouse.source(contract.name), done.version)),
        )
    return done


def _replay(lake: Lake, contract: Contract, file: pa.Table, record: Record) -> Replayed:
    version = newest(lake, contract)
    path, names = lake.warehouse.source(contract.name), [item.name for item in contract.columns]
    refuse_other_ids(lake, path, version, contract)
    broken = open_rows(lake, contract, version).select([ID, *names])
    given = _given(lake, contract, file, broken)
    there = _there(lake, path, version, given, contract)
    repairs, known, unchanged = _matched(contract, broken, given, there)
    written = int(record.rows_updated or 0)
    if not repairs:
        return Replayed(written, known - written, unchanged, version)
    fresh = _table(given, names, [after for _, after in repairs])
    gone = _table(broken, names, [before for before, _ in repairs])
    _refuse_broken(lake, path, version, contract, fresh, {before for before, _ in repairs})
    token = commit_token(lake, path, record.run_id, "replay")
    key = contract.named_by  # first: by it the files are chosen
    keys = gone.select([key, *(name for name in names if name != key)])
    target = Target(lake, token, path, version, contract)
    if isinstance(tried(lambda: merge_here(target, keys, fresh, fresh.slice(0, 0))), NotHere):
        _swap(writing_lake(lake, token, version, contract), path, gone, fresh)
    commit = find_commit(lake, path, token)
    record.rows_updated = written + (commit.metric("numTargetRowsUpdated") if commit.in_history else 0)
    if not commit.in_history or commit.metric("numTargetRowsUpdated") != len(repairs):
        raise OvertakenError  # another process has changed such a row in between: look again
    return Replayed(int(record.rows_updated), known - written, unchanged, commit.version)


def _given(lake: Lake, contract: Contract, file: pa.Table, broken: pa.Table) -> pa.Table:
    """The file's rows in the source's types: the contract's columns, `ID` as they are now, `REPLACES` as the file says
    (NULL where it does not): in place of an id of Trendlake 0.2 that of the row of `broken`."""
    names = [item.name for item in contract.columns]
    replaces = file[ID].cast(pa.string()) if ID in file.column_names else pa.nulls(file.num_rows, pa.string())
    if replaces.null_count < len(replaces) and not pc.all(pc.is_in(replaces.drop_null(), broken[ID])).as_py():
        former = dict(zip(former_row_ids(broken, names), broken[ID].to_pylist(), strict=True))
        replaces = pa.array([former.get(one, one) for one in replaces.to_pylist()], pa.string())
    rows = typed_table(lake, file.select(names).append_column(REPLACES, replaces), contract)
    return with_row_ids(rows, names)


def _there(lake: Lake, path: str, version: int, given: pa.Table, contract: Contract) -> set[str]:
    """The `ID`s of the rows of the source with the event ids of a file's rows."""
    names = [item.name for item in contract.columns]
    present = rows_sharing(lake, path, version, given, [contract.named_by], names)
    return set(with_row_ids(present, names)[ID].to_pylist())


def _matched(
    contract: Contract, broken: pa.Table, given: pa.Table, there: set[str]
) -> tuple[list[tuple[str, str]], int, int]:
    """Pairs (`ID` of an open row, `ID` of the row that replaces it), how many rows the source has already, how many are
    as they were."""
    key = contract.named_by
    copies = Counter(broken.column(ID).to_pylist())
    by_event: dict[Any, set[str]] = {}
    for name, event in zip(broken.column(ID).to_pylist(), broken.column(key).to_pylist(), strict=True):
        by_event.setdefault(event, set()).add(name)
    pairs: dict[str, str] = {}
    faults, known, unchanged = [], 0, 0
    for number, row in enumerate(given.select([ID, REPLACES, key]).to_pylist(), start=1):
        named = by_event.get(row[key], set())
        if row[REPLACES]:
            named = {row[REPLACES]} if row[REPLACES] in copies else set()
        if row[ID] in named or row[ID] == row[REPLACES]:
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


def _refuse_broken(lake: Lake, path: str, version: int, contract: Contract, fresh: pa.Table, gone: set[str]) -> None:
    """Raises RepairError where a row of `fresh` breaks a rule, or has the key of a row of the source that stays: whose
    `ID` is none of `gone`."""
    key, names = contract.named_by, fresh.column_names
    faults = [f"{fresh[key][place].as_py()}: {why}" for place, why in _broken(contract, fresh)]
    good = fresh.filter(arrow(split_alone(fresh.combine_chunks(), contract).broken < 0))
    for rule in unique_rules(contract.rules):
        keyed = good
        if len(rule.columns) == 1:  # a single column's NULL is no key
            keyed = good.filter(good[rule.columns[0]].is_valid())
        others = with_row_ids(rows_sharing(lake, path, version, keyed, rule.columns, names), names)
        others = others.filter(pc.invert(pc.is_in(others[ID], pa.array(list(gone), pa.string())))).select(names)
        others = others.filter(arrow(split_alone(others.combine_chunks(), contract).broken < 0)).select(rule.columns)
        codes = exact_codes(pa.concat_tables([keyed.select(rule.columns).cast(others.schema), others]), rule.columns)
        taken = keyed[key].filter(arrow(np.isin(codes[: keyed.num_rows], codes[keyed.num_rows :]))).to_pylist()
        faults += [f"{name}: {rule.name}: a row of the source has the same key" for name in taken]
    if faults:
        raise RepairError(
            f"{len(faults)} repaired rows break the contract: {_some(faults)}",
            hint="nothing was written; repair them, or leave them out of the file",
        )


def _broken(contract: Contract, rows: pa.Table) -> Iterator[tuple[int, str]]:
    """The places of those of `rows` that break a rule, alone or together with the others, and why."""
    parted = split(rows.combine_chunks(), contract)
    bad = np.flatnonzero(parted.broken >= 0)
    why = parted.with_reasons(contract, bad, rows.take(arrow(bad)))["reason"]
    yield from zip(bad.tolist(), why.to_pylist(), strict=True)


def _swap(lake: Lake, path: str, gone: pa.Table, fresh: pa.Table) -> None:
    """Old rows into new ones, where they are still there."""
    names = gone.column_names
    columns = {f"old_{i}": gone[name] for i, name in enumerate(names)}
    columns |= {f"new_{i}": fresh[name] for i, name in enumerate(names)}
    repairs = frame_of(lake.spark, pa.table(columns))
    target = DeltaTable.forPath(lake.spark, path)
    same = [sf.col(f"t.{quoted(name)}").eqNullSafe(sf.col(f"s.old_{i}")) for i, name in enumerate(names)]
    values: dict[str, str | Column] = {quoted(name): sf.col(f"s.new_{i}") for i, name in enumerate(names)}
    matching = reduce(lambda a, b: a & b, same)
    target.alias("t").merge(repairs.alias("s"), matching).whenMatchedUpdate(set=values).execute()


def _table(rows: pa.Table, names: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    """For each of the `ID`s in `wanted` its row: the columns `names`."""
    place = {name: number for number, name in enumerate(rows.column(ID).to_pylist())}
    return rows.select(list(names)).take([place[name] for name in wanted])


def _some(faults: Sequence[str]) -> str:
    more = f"; and {len(faults) - TOLD} more" if len(faults) > TOLD else ""
    return "; ".join(faults[:TOLD]) + more
