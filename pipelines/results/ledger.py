"""The published windows of a pattern, from its results table and the run record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import known_commits, next_number
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import changes_rows, creation_time, table_id
from trendlake.pipelines.results.coverage import Alteration, Claim, Segment, claim_of, covered
from trendlake.pipelines.results.earlier_forms import with_faults
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owners import publishers, refuse_other_owner
from trendlake.pipelines.results.publication import columns_of
from trendlake.pipelines.results.row_versions import RowVersions, row_versions
from trendlake.pipelines.runs.record import NOTED
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stored_record import name_of, note_in

COUNTS = ("rows_inserted", "rows_updated", "rows_out")
LAYOUT = ("OPTIMIZE", "VACUUM START", "VACUUM END")
"""Operations that change no row."""


@dataclass(frozen=True)
class Ledger:
    """The windows that a results table covers at its `version` (None: there is no table); `number` is that of the
    publication that may follow; `table_id`: as of `versions.table_id`."""

    version: int | None
    number: int
    segments: tuple[Segment, ...]
    row_versions: tuple[RowVersions, ...] = ()
    """Which versions of the code made the rows of each window."""
    unrecorded: tuple[Commit, ...] = ()
    """Publications after the last one that is recorded: of runs that were killed before they could, or are about to."""
    empty: bool = False
    """Whether the table has been made, and nothing else."""
    table_id: str | None = None
    damaged: tuple[str, ...] = ()
    """The faults of run records of the pattern whose notes cannot be read: windows that only they claim are not
    known."""
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By plan hash the digests of the keys of the pattern's file, as the newest note of that form has them; the last
    form is the newest. Notes of early versions have none."""

    def checks(self) -> list[Check]:
        """A check for each unrecorded publication and damaged record, for the record of the run that sees it."""
        damaged = [Check("run_record", False, reason, "the note of a publication, as JSON") for reason in self.damaged]
        return [_unrecorded(commit) for commit in reversed(self.unrecorded)] + damaged


@dataclass(frozen=True)
class Recorded:
    """A record of a publication: the version of the results, the note, None where there is none, when it was written,
    and whether more rows came than were computed; `damaged`: why the note could not be read, empty where it could."""

    version: int
    note: Note | None
    at: datetime
    repeats: bool = False
    damaged: str = ""


def _unrecorded(commit: Commit) -> Check:
    inserted, updated, deleted = commit.changed
    note = Note.of_commit(commit.note)
    stage, run_id = (None, None) if note is None or note.by is None else (note.by.stage, note.by.run_id)
    data = {
        "results_version": commit.version,
        "stage": stage,
        "run_id": run_id,
        "inserted": inserted,
        "updated": updated,
        "deleted": deleted,
    }
    observed = f"version {commit.version}: {inserted} inserted, {updated} updated, {deleted} deleted"
    return Check("unrecorded_publication", True, observed, f"recorded by {stage} of run {run_id}", data=data)


class Publications:
    """The records of publications of several patterns, read together when they are first asked for."""

    def __init__(self, lake: Lake, names: Sequence[str]) -> None:
        self._warehouse = lake.warehouse
        every = [*dict.fromkeys((*names, *map(lake.warehouse.table_of, names)))]
        self._read = cache(lambda: _all_recorded(lake, every))

    def of(self, name: str) -> list[Recorded]:
        """Those of the pattern `name`, also from before it was renamed."""
        names = dict.fromkeys((name, self._warehouse.table_of(name)))
        return [item for one in names for item in self._read().get(one, [])]


def read_ledger(lake: Lake, name: str, plan: AnyPlan, source: str, publications: Publications | None = None) -> Ledger:
    """As of now. `source`: the name of the pattern's source; `publications`: that have been read, in which those that
    were recorded since are not. Raises ProjectError, as `refuse_other_owner`."""
    refuse_other_owner(lake, name)
    path = lake.warehouse.results(name)
    if not exists(lake, path):
        return Ledger(None, 1, ())
    commits, table = known_commits(lake, path), table_id(lake, path)
    newest = commits[0].version
    if newest == 0 and commits[0].operation == "CREATE TABLE":
        return Ledger(0, next_number(commits), (), empty=True, table_id=table)
    unnamed = _table_unnamed(lake, lake.warehouse.source(source))
    stored = {commit.version: Note.of_commit(commit.note) for commit in commits}
    claims = {
        commit.version: _claimed(stored[commit.version], commit.version, commit.at, unnamed) for commit in commits
    }
    noted = [item for item in claims.values() if item is not None]
    recorded = _recorded(lake, name, table, commits, publications)
    for item in recorded:
        # A commit's own record repeats its note: it is wanted where the table's log no longer reaches back to it.
        if item.version <= newest and item.note is not None and (item.note.quiet or item.version not in claims):
            claimed = _claimed(item.note, item.version, item.at, unnamed)
            noted += [] if claimed is None else [claimed]
    doubled = {commit.version for commit in commits if _came_twice(commit)}
    doubled |= {item.version for item in recorded if item.repeats}
    all_claims = with_faults(plan, noted, doubled, lambda: columns_of(lake, path))
    last = max((item.version for item in recorded), default=-1)
    unrecorded = tuple(
        commit for commit in commits if commit.version > last and (note := stored[commit.version]) and note.number
    )
    alterations = _alterations(lake, path, commits)
    quiet = sorted(
        (item for item in recorded if item.note is not None and item.note.quiet), key=lambda one: one.version
    )
    return Ledger(
        newest,
        next_number(commits),
        covered(plan, all_claims, alterations),
        row_versions(plan, all_claims, alterations),
        unrecorded,
        table_id=table,
        damaged=tuple(item.damaged for item in recorded if item.damaged),
        keys=_keys(
            [*((version, stored[version]) for version in reversed(stored)), *((one.version, one.note) for one in quiet)]
        ),
    )


def _keys(notes: Iterable[tuple[int, Note | None]]) -> dict[str, Mapping[str, str]]:
    """As `Ledger.keys`. `notes`: by the version of the results, those of commits before quiet ones."""
    keys: dict[str, Mapping[str, str]] = {}
    for _, note in sorted(notes, key=lambda item: item[0]):
        if note is not None and note.keys is not None:
            keys.pop(note.plan_hash, None)
            keys[note.plan_hash] = note.keys
    return keys


def notes(lake: Lake, name: str, commits: Sequence[Commit]) -> list[Note]:
    """The notes of `commits` (the newest first), each after those of the revisions that found nothing to change in what
    it had made, as far as no other program has changed rows since."""
    path, quiet = lake.warehouse.results(name), dict[int, list[Note]]()
    for item in reversed(_recorded(lake, name, table_id(lake, path), commits)):
        if item.note is not None and item.note.quiet:
            quiet.setdefault(item.version, []).append(item.note)
    altered = {alteration.results_version for alteration in _alterations(lake, path, commits)}
    spoken: list[Note] = []
    for commit in commits:
        spoken += quiet.get(commit.version, ())
        if commit.version in altered:
            break
        note = Note.of_commit(commit.note)
        spoken += [] if note is None else [note]
    return spoken


def _claimed(
    note: Note | None, version: int, at: datetime | None, unnamed: Callable[[datetime | None], str | None]
) -> tuple[Claim, Note] | None:
    """A note with what it claims; None where it claims nothing."""
    claim = None if note is None else claim_of(note, version)
    if note is None or claim is None:
        return None
    return claim if note.names_source else replace(claim, sources=_told(claim.sources, unnamed(at))), note


def _told(sources: Versions, table_id: str | None) -> Versions:
    """The version of one table, with its id."""
    return Versions((sources.only._replace(table_id=table_id),))


def _came_twice(commit: Commit) -> bool:
    """Whether Delta's MERGE changed more rows than it was given: one took the place of several."""
    inserted, updated, _ = commit.changed
    return "numSourceRows" in commit.metrics and inserted + updated > commit.metric("numSourceRows")


def _table_unnamed(lake: Lake, path: str) -> Callable[[datetime | None], str | None]:
    """Which source table a note speaks of that names none, as those of Trendlake 1 do, by when it was written: the
    present one where that had been made by then, else one that is not known."""

    @cache
    def present() -> tuple[datetime | None, str | None]:
        return creation_time(lake, path), table_id(lake, path)

    def unnamed(at: datetime | None) -> str | None:
        created, table = present()
        return table if at is not None and created is not None and created <= at else None

    return unnamed


def _alterations(lake: Lake, path: str, commits: Sequence[Commit]) -> list[Alteration]:
    """The changes by other programs: commits without a note of ours that change rows, as far as the log tells."""
    alterations, there = [], {commit.version for commit in commits}
    for commit in commits:
        ours = Note.of_commit(commit.note) is not None
        if ours or commit.operation in LAYOUT or not changes_rows(lake, path, commit.version):
            continue
        restored = commit.parameters.get("version") if commit.operation == "RESTORE" else None
        known = restored is not None and int(restored) in there
        alterations.append(Alteration(commit.version, int(restored) if restored is not None and known else None))
    return alterations


def _recorded(
    lake: Lake, name: str, table: str | None, commits: Sequence[Commit], publications: Publications | None = None
) -> list[Recorded]:
    """The records of publications to the results table whose id is `table`, which has `commits`, in the order in which
    they were written: of two revisions that changed nothing the later one says what the rows show. Records of a table
    that was dropped, and created again under the same name, say nothing of this one; where they do not say which it
    was, it was not this one if that has been made later."""
    records, created = (publications or Publications(lake, [name])).of(name), None
    before = {*publishers(commits, lake.warehouse.table_of(name))} - {name, lake.warehouse.table_of(name)}
    if before:  # it was renamed more than once
        records += [item for items in _all_recorded(lake, [*before]).values() for item in items]
    if any(item.note is None or not item.note.names_results for item in records):
        created = creation_time(lake, lake.warehouse.results(name))

    def is_of_table(item: Recorded) -> bool:
        if item.note is not None and item.note.names_results:
            return item.note.results_table == table
        return created is None or created <= item.at

    return sorted(filter(is_of_table, records), key=lambda item: item.at)


def _all_recorded(lake: Lake, names: Sequence[str]) -> dict[str, list[Recorded]]:
    """By pattern."""
    if not exists(lake, lake.warehouse.runs):
        return {}
    table = Table.at(lake, lake.warehouse.runs)
    if not {NOTED, "finished_at", "results_version"} <= set(table.names):
        return {}
    columns = ("pattern", "run_id", "stage", "status", "results_version", *COUNTS, NOTED, "finished_at")
    records = table.having({"pattern": names, "status": ["succeeded"]}, columns, limits.RECORDS)
    times = records["finished_at"].cast(pa.int64()).to_pylist()
    rows = [row | {"at": at} for row, at in zip(records.drop("finished_at").to_pylist(), times, strict=True)]
    mine = [row for row in rows if row["results_version"] is not None]
    recorded: dict[str, list[Recorded]] = {}
    for row in mine:
        recorded.setdefault(row["pattern"], []).append(_recorded_in(row))
    return recorded


def _recorded_in(row: Mapping[str, Any]) -> Recorded:
    """`row`: columns of a record, `at`: its end in microseconds, None where it is not known."""
    version, at = row["results_version"], datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["at"] or 0)
    try:
        stored = note_in(row)
    except RecordDamagedError as error:
        return Recorded(version, None, at, damaged=error.message)
    try:
        note = Note.from_json(stored) if stored else None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"{name_of(row)}, is damaged: its note claims nothing that is known ({error!r})"
        return Recorded(version, None, at, damaged=reason)
    inserted, updated, computed = (row[name] or 0 for name in COUNTS)
    return Recorded(version, note, at, inserted + updated > computed)
