"""What a pattern's results table and the run record tell of what is published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from pipelines.commits import Commit, known_commits, next_number
from pipelines.delta_here import NotHereError, table_here
from pipelines.revision.coverage import Claim, Segment, claim_of, covered
from pipelines.revision.row_versions import RowVersions, row_versions
from pipelines.runs import NOTED
from pipelines.warehouse import Warehouse, exists

RECORDS = 100_000
"""Run records of one pattern that are read in this process."""


@dataclass(frozen=True)
class Ledger:
    """What a results table covers at its `version` (None: there is no table); `number` is that of the publication that
    may follow."""

    version: int | None
    number: int
    segments: tuple[Segment, ...]
    made: tuple[RowVersions, ...] = ()
    """Which versions of the code made the rows of each window."""
    unrecorded: tuple[Commit, ...] = ()
    """Publications after the last one that is recorded: of runs that were killed before they could, or are about to."""
    empty: bool = False
    """Whether the table has been made, and nothing else."""


def read_ledger(spark: SparkSession, warehouse: Warehouse, name: str, plan: AnyPlan) -> Ledger:
    """As of now."""
    path = warehouse.results(name)
    if not exists(spark, path):
        return Ledger(None, 1, ())
    commits = known_commits(spark, path)
    newest = commits[0].version
    if newest == 0 and commits[0].operation == "CREATE TABLE":
        return Ledger(0, next_number(commits), (), empty=True)
    claims = {commit.version: claim_of(commit.note, commit.version, quiet=False) for commit in commits}
    told: list[Claim] = [claim for claim in claims.values() if claim is not None]
    recorded = _recorded(spark, warehouse, name)
    for version, note in recorded:
        # A commit's own record repeats its note: it is wanted where the table's log no longer reaches back to it.
        quiet = bool(note.get("quiet"))
        claim = claim_of(note, version, quiet=quiet) if quiet or version not in claims else None
        if claim is not None and version <= newest:
            told.append(claim)
    last = max((version for version, _ in recorded), default=-1)
    unrecorded = tuple(commit for commit in commits if commit.version > last and "number" in commit.note)
    return Ledger(newest, next_number(commits), covered(plan, told), row_versions(plan, told), unrecorded)


def notes(
    spark: SparkSession, warehouse: Warehouse, name: str, commits: Sequence[Commit]
) -> list[Mapping[str, object]]:
    """The notes of `commits` (the newest first), each after those of the revisions that found nothing to change in what
    it had made."""
    quiet: dict[int, list[Mapping[str, object]]] = {}
    for version, note in _recorded(spark, warehouse, name):
        if note.get("quiet"):
            quiet.setdefault(version, []).append(note)
    return [note for commit in commits for note in (*quiet.get(commit.version, ()), commit.note)]


def _recorded(spark: SparkSession, warehouse: Warehouse, name: str) -> list[tuple[int, dict[str, object]]]:
    """The version of the results and the note, empty where there is none, of each record of a publication."""
    columns = ("pattern", "status", "results_version", NOTED)
    try:
        table = table_here(spark, warehouse.runs)
        if NOTED not in table.schema.names:
            return []
        found = table.rows_with(columns, pa.array([name]), RECORDS).to_pylist()
        mine = (row for row in found if row["status"] == "succeeded" and row["results_version"] is not None)
        return [(row["results_version"], json.loads(row[NOTED] or "{}")) for row in mine]
    except NotHereError:
        return _recorded_by_spark(spark, warehouse, name)


def _recorded_by_spark(
    spark: SparkSession, warehouse: Warehouse, name: str
) -> list[tuple[int, dict[str, object]]]:  # fmt: skip
    if not exists(spark, warehouse.runs):
        return []
    table = spark.read.format("delta").load(warehouse.runs)
    if NOTED not in table.columns:
        return []
    mine = (sf.col("pattern") == name) & (sf.col("status") == "succeeded")
    rows = table.where(mine & sf.col("results_version").isNotNull()).select("results_version", NOTED).collect()
    return [(row[0], json.loads(row[1] or "{}")) for row in rows]
