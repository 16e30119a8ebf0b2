"""Step 4: the staged rows become the results of the run's windows, in one Delta commit.

From the staged files, which do not change and are not computed again however often Spark reads them. Few rows of a
table on this machine's disk are compared in this process, and changed by delta-rs; the files of many become files of
the table where it has no row near those windows. Of others Spark makes an append where the table holds no row of those
windows, else a MERGE matched on the key (null-safe: a group may be NULL, a
register NaN). Rows that are the same are left alone, so the change feed has changes only; rows of the run's windows
that are no longer results are deleted. Doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from pyarrow.parquet import read_metadata
from pyspark.sql import functions as sf

from trendlake.pipelines.errors import StaleRunError, StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.here.write import shaped
from trendlake.pipelines.lake.road import NotHere, refuse
from trendlake.pipelines.lake.warehouse import OvertakenError, with_retries
from trendlake.pipelines.results.columns import time_of
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.ledger import Ledger, Publications, notes, read_ledger
from trendlake.pipelines.results.owned_rows import OwnedRows
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.publication import Publication, create_results
from trendlake.pipelines.results.reuse import MEMBERS, changed, narrowed, noted
from trendlake.pipelines.results.row_versions import work_of_run
from trendlake.pipelines.results.source_events import REPEATED
from trendlake.pipelines.results.staging import (
    read_staged,
    refuse_lost,
    staged_columns,
    staged_files,
    staged_here,
    staged_schema,
)
from trendlake.pipelines.results.types import refuse_other_types
from trendlake.pipelines.revision.earlier_contracts import remember_contracts
from trendlake.pipelines.revision.rewrite import Published
from trendlake.pipelines.revision.row_diff import differing
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.consistency import last_ready, ready
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.session import WHOLE_STAGE, uncompiled


def publish(run: Run) -> Record:
    """Bring the staged rows into `results/<pattern>` and record what changed.

    Raises StepOrderError, ResultsTypeError, StaleRunError (these windows hold results of a newer version of the source
    already).
    """
    (attempt,) = publish_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def publish_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `publish` of several runs. Each has a commit of its own, and an error of one stops no other. Raises whatever
    ends Spark."""
    lake = runs[0].lake
    publications = Publications(lake, [run.name for run in runs])
    with recorded_together(lake, [run.record("publish") for run in runs]) as attempts:
        for run, attempt in zip(runs, attempts, strict=True):
            with attempt.going_on() as record:
                _publish(run, record, publications)
            attempt.raise_if_ended(lake)
    return attempts


def _publish(run: Run, record: Record, publications: Publications) -> None:
    """`publications`: of this pattern and others, when they were read."""
    checked = run.need("check_results")
    asked = run
    run, reused = narrowed(run, checked)
    basis = checked.basis
    assert basis is not None  # `need` has seen it
    record.source_version, record.sources, record.basis = checked.source_version, checked.sources, basis
    record.staged_version, record.rows_in = checked.staged_version, checked.rows_out
    refuse_other_types(run)
    few = (checked.rows_out or 0) <= limits.VALIDATED
    with uncompiled(run.lake.started) if few else nullcontext():
        create_results(run.lake, run.warehouse.results(run.name), staged_schema(run.plan))
        partly = any(check.name == MEMBERS for check in reused)
        action = partial(_commit, run, asked, basis, publications, record, partly=partly)
        commit = with_retries(action, f"publishing {run.name}")
    record.results_version = commit.version
    record.rows_inserted, record.rows_updated, record.rows_deleted = commit.changed
    record.rows_out = checked.rows_out


def _commit(run: Run, asked: Run, basis: Basis, publications: Publications, record: Record, *, partly: bool) -> Commit:
    """`asked`: the run with all its windows, those too that are left alone as they are right already; `basis`: of the
    staged rows; `partly`: whether some of these were published already."""
    about = run.lake, run.name, run.plan, run.sources.name
    ledger = read_ledger(*about, publications)
    if ledger.unrecorded:  # as far as `publications` tell
        ledger = read_ledger(*about)
    record.checks = ledger.checks()
    _refuse_stale(run, ledger, basis)
    _refuse_changed(run, asked, ledger, basis)
    last_window = last_ready(run, basis.read)
    windows = ready(run.windows, last_window)
    every = range(min(run.windows.start, asked.windows.start), asked.windows.stop) if run.windows else asked.windows
    shown = ready(every, last_window)
    withheld = every[len(shown) :]
    owned, held_back = ((slice_of(run.plan, some[0], some[-1]),) if some else () for some in (shown, withheld))
    note = replace(
        noted(run, basis, [windows], ledger.table_id, work_of_run(run.plan, windows, partly=partly)),
        sources=basis.sources,
        owned=owned,
        withheld=held_back,
        unique=_unique(run, record),
    )
    record.note = note.as_json()
    remember_contracts(run)
    staged = int(record.staged_version or 0), record.rows_in
    signed = note.signed(run.run_id, "publish", ledger.number)
    given = Publication(run, signed), staged, windows, withheld
    commit, road = run.roads.take("publish", lambda: _replace_here(*given), lambda: _replace_by_spark(*given))
    record.took(road)
    if commit is None:
        raise OvertakenError
    return commit


def _replace_by_spark(
    publication: Publication, staged: tuple[int, int | None], windows: range, withheld: range
) -> Commit | None:
    """Makes the staged rows, of an attempt and as many as were checked, those of the `windows`; removes those of other
    kinds from windows that are `withheld`. None where another publication came first. Raises StagedLostError."""
    run, by = publication.run, identity(publication.run.plan)
    number, checked = staged
    if (checked or 0) <= limits.VALIDATED:
        publication.lake.spark.conf.set(WHOLE_STAGE, "false")  # as `uncompiled`, of a session for this commit alone
    rows = read_staged(run, number, publication.lake)
    refuse_lost(run, number, checked, rows.count())
    rows = rows.where(OwnedRows.of(run.plan, windows, rows.columns).spark())
    published = publication.lake.spark.read.format("delta").load(publication.path)
    owned = OwnedRows.of(run.plan, windows, published.columns, withheld)
    alike = published.where(owned.spark()).groupBy(*map(column, by)).count()
    most = alike.agg(sf.max("count")).collect()[0][0]
    if most is None:
        return publication.append(rows)
    return publication.replace(rows, by, owned, repeats=most > 1)


def _replace_here(
    publication: Publication, staged: tuple[int, int | None], windows: range, withheld: range
) -> Commit | NotHere | None:
    """As `_replace_by_spark`, of few rows, which this process compares. Raises StagedLostError, NotHereError."""
    run, (number, checked) = publication.run, staged
    if (checked or 0) > limits.PUBLISHED:
        return _add_files(publication, staged, windows, withheld)
    rows = staged_here(run, number, limits.PUBLISHED)
    if isinstance(rows, NotHere):
        return rows
    refuse_lost(run, number, checked, rows.num_rows)
    table = table_here(run.lake, publication.path)
    owned = OwnedRows.of(run.plan, windows, table.schema.names, withheld)
    there = Published.of_windows(table, time_of(run.plan), owned, limits.PUBLISHED)
    old = there.rows
    mine = shaped(rows.filter(OwnedRows.of(run.plan, windows, rows.column_names).arrow(rows)), old.schema)
    differences = differing(old, mine, identity(run.plan))
    if isinstance(differences, NotHere):
        return differences
    return publication.change(table, differences.changes(), there.time)


def _add_files(
    publication: Publication, staged: tuple[int, int | None], windows: range, withheld: range
) -> Commit | NotHere | None:
    """As `_replace_by_spark`, of many rows where the table has none of these windows: no row is read, as the staged
    files become the table's. Raises as `_replace_here`."""
    run, (number, checked) = publication.run, staged
    files = staged_files(run, number)
    if isinstance(files, NotHere):
        return files
    rows = sum(read_metadata(file).num_rows for file in files)
    refuse_lost(run, number, checked, rows)
    table = table_here(run.lake, publication.path)
    several = len(OwnedRows.of(run.plan, windows, staged_columns(run.plan).names).places) > 1
    refuse({"many rows, of which some are withheld": windows != run.windows or len(withheld) > 0})
    refuse({"many rows that say by several columns of which window they are": several})
    there = OwnedRows.of(run.plan, windows, table.schema.names).near(table)
    refuse({"many rows, and published ones near them": len(there.files) > 0})
    return publication.add(table, files, rows)


def _unique(run: Run, record: Record) -> bool:
    """Whether check_source has seen that no row of the windows repeats a key of another in the version published."""
    checked = run.need("check_source")
    verdicts = [check.success for check in checked.checks if check.name == REPEATED]
    same = checked.basis is not None and record.basis is not None and checked.basis.read == record.basis.read
    return same and verdicts == [True] * len(run.sources.every)


def _refuse_stale(run: Run, ledger: Ledger, basis: Basis) -> None:
    """Results of a newer version of a table are not replaced by older ones of the same pattern and contract. Results
    of another table are: of the one that was dropped, as the run has looked at the present one."""
    for segment in ledger.segments if run.windows else ():
        if (segment.plan_hash, segment.contract) != (run.plan.hash, run.sources.fingerprint):
            continue
        newer = () if segment.sources is None else segment.sources.newer(basis.read)
        if newer and segment.first <= run.windows[-1] and segment.last >= run.windows[0]:
            shown, read = newer[0]
            raise StaleRunError(
                f"windows of this run have been published from version {shown.version} of "
                f"'{run.sources.table(shown.name).contract.name}'; this run read version {read.version}",
                hint=f"run `trendlake run {run.typed} {run.options}` again: it reads the newest version. If an older "
                f"copy of the source's table was put in its place, run `trendlake revise {run.typed}`",
            )


def _refuse_changed(run: Run, asked: Run, ledger: Ledger, basis: Basis) -> None:
    """Raises an error if the windows that are left alone have been published again since they were found."""
    if run.windows == asked.windows:
        return
    commits = recent_commits(run.lake, run.warehouse.results(run.name))
    stored_notes = notes(run.lake, run.name, commits)
    to_compute = changed(asked, ledger, stored_notes, basis.read)
    if to_compute and (to_compute.start < run.windows.start or to_compute.stop > run.windows.stop or not run.windows):
        raise StepOrderError(
            f"results of {run.name} that this run left alone have changed since they were looked at",
            hint=f"run `trendlake run {run.typed} {run.options}` again",
        )
