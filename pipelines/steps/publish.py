"""Step 4: the staged rows become the results of the run's windows, in one Delta commit.

From the staged files, which do not change and are not computed again however often Spark reads them. Few rows of a
table on this machine's disk are compared in this process, and their files written here; of others Spark makes an append
where the table holds no row of those windows, else a MERGE matched on the key (null-safe: a group may be NULL, a
register NaN). Rows that are the same are left alone, so the change feed tells of changes only; rows of the run's
windows that are no longer results are deleted. Doing it again changes nothing.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from functools import partial, reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from pipelines.delta.commits import Commit, commit_token, find_commit, in_line, recent_commits
from pipelines.delta.local_commit import shaped
from pipelines.delta.local_reader import ROWS, here, inside, table_here
from pipelines.delta.tables import FED, OvertakenError, create, exists, with_retries
from pipelines.errors import LocalUnsupportedError, StaleRunError, StepOrderError
from pipelines.quality.great_expectations import FEW
from pipelines.results.ledger import Ledger, notes, read_ledger
from pipelines.results.provenance import PROVENANCE
from pipelines.results.reuse import changed, narrowed, noted
from pipelines.results.row_versions import note_of_run
from pipelines.results.staging import read_staged, staged_here
from pipelines.results.types import refuse_other_types
from pipelines.revision.local_rewrite import Published, Rewrite, committed
from pipelines.revision.row_diff import differing
from pipelines.runs.basis import Basis
from pipelines.runs.consistency import last_ready, ready
from pipelines.runs.record import recorded
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.identifiers import quoted
from pipelines.spark.session import uncompiled
from pipelines.steps.check_source import REPEATED

FILES = 200
"""Files of a results table that are opened one after the other, to see which rows they have: of more MERGE knows it by
the log's statistics."""


def publish(run: Run) -> Record:
    """Bring the staged rows into `results/<pattern>` and record what changed.

    Raises StepOrderError, ResultsTypeError, StaleRunError (these windows hold results of a newer version of the source
    already).
    """
    record = run.record("publish")
    with recorded(run.spark, run.warehouse, record):
        checked = run.need("check_results")
        asked = run
        run, _ = narrowed(run, checked)
        basis: Basis = checked["basis"]
        record.source_version, record.basis = checked["source_version"], basis
        record.staged_version = checked["staged_version"]
        # A session of its own: MERGE takes the commit's note from the session, which threads would share.
        spark = run.spark.newSession()
        staged = read_staged(run, int(checked["staged_version"]), spark)
        path = run.warehouse.results(run.name)
        refuse_other_types(run)
        with uncompiled(spark) if (checked["rows_out"] or 0) <= FEW else nullcontext():
            create_results(spark, path, staged.schema, run.owned[0])
            action = partial(_commit, run, asked, basis, spark, path, staged, record)
            commit = with_retries(action, f"publishing {run.name}")
        record.results_version = commit.version
        record.rows_in = checked["rows_out"]
        record.rows_inserted, record.rows_updated, record.rows_deleted = commit.changed
        record.rows_out = checked["rows_out"]
    return record


def create_results(spark: SparkSession, path: str, schema: StructType, owner: str) -> None:
    """The results table, where it is not there: change feed on, clustered by the column that says which window a row is
    of. Columns that a changed pattern brings are added; those it no longer has stay, NULL in new rows."""
    if not exists(spark, path):
        builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema)
        for key, value in FED.items():
            builder = builder.property(key, value)
        create(spark, path, builder.clusterBy(owner), "creating the results table")
    have = {name.lower() for name in spark.read.format("delta").load(path).columns}
    if any(name.lower() not in have for name in schema.fieldNames()):
        none = spark.createDataFrame([], schema)
        writer = none.write.format("delta").mode("append").option("mergeSchema", "true")
        with_retries(lambda: writer.save(path), "adding columns to the results table")


def _commit(
    run: Run, asked: Run, basis: Basis, spark: SparkSession, path: str, staged: DataFrame, record: Record
) -> Commit:  # fmt: skip
    """`asked`: the run with all its windows, those too that are left alone as they are right already; `basis`: of the
    staged rows."""
    ledger = read_ledger(spark, run.warehouse, run.name, run.plan, run.contract.name)
    record.checks = ledger.checks()
    _refuse_stale(run, ledger, basis)
    _refuse_changed(run, asked, ledger, basis)
    last_window = last_ready(run, int(record.source_version or 0))
    windows = ready(run.windows, last_window)
    shown = ready(asked.windows, last_window)
    withheld = asked.windows[len(shown) :]
    owner, low, high = run.plan.owned(windows) if windows else (run.plan.owned(range(1))[0], 0, 0)
    record.note = {
        "source_version": record.source_version,
        "plan_hash": run.plan.hash,
        "owned": [list(run.plan.owned(shown)[1:])] if shown else [],
        "withheld": [list(run.plan.owned(withheld)[1:])] if withheld else [],
        "unique": _unique(run, record),
        "results_table": ledger.table_id,
        **noted(run, basis, [windows]),
        **note_of_run(run.plan, windows),
    }
    token = commit_token(run.run_id, "publish", number=ledger.number, **record.note)
    with suppress(LocalUnsupportedError):
        commit = _commit_here(run, path, int(record.staged_version or 0), (owner, low, high), token)
        if commit is None:
            raise OvertakenError
        return commit
    in_line(spark, run.name, token)
    in_windows = _in(sf.col(quoted(owner)), low, high)
    rows = staged.where(in_windows) if withheld else staged
    if ledger.empty or spark.read.format("delta").load(path).where(in_windows).isEmpty():
        _append(spark, path, rows)
    else:
        _merge(run, spark, path, rows, (owner, low, high))
    commit = find_commit(spark, path, token)
    if not commit.found:
        raise OvertakenError
    return commit


def _commit_here(run: Run, path: str, staged: int, owned: tuple[str, int, int], token: str) -> Commit | None:
    """What MERGE does, of few rows: its files are written in this process, the commit is Delta's. None where another
    publication came first. Raises LocalUnsupportedError."""
    time, slices = owned[0], [owned[1:]]
    rows = staged_here(run, staged, ROWS)
    with here():
        table = table_here(run.spark, path)
        if len(table.files) > FILES:
            raise LocalUnsupportedError("many files: Delta's statistics pass over most")
        there = Published.of(table, time, slices, ROWS)
        old = there.rows
        mine = shaped(rows.filter(inside(rows, time, slices)), old.schema)
        rewrite = Rewrite(run, run.plan, there, differing(old, mine, run.plan.key))
        actions = rewrite.written()
    return committed(rewrite, actions, token)


def _append(spark: SparkSession, path: str, rows: DataFrame) -> None:
    """What `_merge` does where there is no row of the windows yet, for a third of the time. That none has come since is
    seen by the number in line."""
    fields = spark.read.format("delta").load(path).schema.fields
    given = {name.lower() for name in rows.columns}
    values = [
        (sf.col(quoted(field.name)) if field.name.lower() in given else sf.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in fields
    ]
    rows.select(*values).write.format("delta").mode("append").save(path)


def _merge(run: Run, spark: SparkSession, path: str, rows: DataFrame, owned: tuple[str, int, int]) -> None:
    target = DeltaTable.forPath(spark, path)
    columns = target.toDF().columns
    given = {name.lower() for name in rows.columns}
    values: dict[str, str | Column] = {
        quoted(name): _side("s", name) if name.lower() in given else sf.lit(None) for name in columns
    }
    owner, low, high = owned
    in_windows = _in(_side("t", owner), low, high)
    key = [_side("t", name).eqNullSafe(_side("s", name)) for name in run.plan.key]
    content = [name for name in columns if name not in PROVENANCE]
    same = [_side("t", name).eqNullSafe(values[quoted(name)]) for name in content]
    (
        target.alias("t")
        .merge(rows.alias("s"), _all(key) & in_windows)
        .whenMatchedUpdate(condition=~_all(same), set=values)
        .whenNotMatchedInsert(values=values)
        .whenNotMatchedBySourceDelete(condition=in_windows)
        .execute()
    )


def _unique(run: Run, record: Record) -> bool:
    """Whether check_source has seen that no row of the windows repeats a key of another in the version published."""
    checked = run.need("check_source")
    verdicts = [check.success for check in checked["checks"] if check.name == REPEATED]
    return checked["source_version"] == record.source_version and verdicts == [True]


def _refuse_stale(run: Run, ledger: Ledger, basis: Basis) -> None:
    """Results of a newer source version are not replaced by older ones of the same pattern and contract. Results of
    another table are: of the one that was dropped, as the run has looked at the present one."""
    version = int(basis.source_version or 0)
    for segment in ledger.segments if run.windows else ():
        if (segment.plan_hash, segment.contract) != (run.plan.hash, run.contract.fingerprint):
            continue
        if segment.source_table is None or segment.source_table != basis.source_table:
            continue
        newer = segment.version is not None and segment.version > version
        if newer and segment.first <= run.windows[-1] and segment.last >= run.windows[0]:
            raise StaleRunError(
                f"windows of this run have been published from version {segment.version} of '{run.contract.name}'; "
                f"this run read version {version}",
                hint=f"run `trendlake run {run.name}` again: it reads the newest version. If an older copy of the "
                f"source's table was put in its place, run `trendlake revise {run.name}`",
            )


def _refuse_changed(run: Run, asked: Run, ledger: Ledger, basis: Basis) -> None:
    """The windows that are left alone are as they were found: nobody has published others since."""
    if run.windows == asked.windows:
        return
    commits = recent_commits(run.spark, run.warehouse.results(run.name))
    known = notes(run.spark, run.warehouse, run.name, commits)
    to_compute = changed(asked, ledger, known, int(basis.source_version or 0), basis.source_table)
    if to_compute and (to_compute.start < run.windows.start or to_compute.stop > run.windows.stop or not run.windows):
        raise StepOrderError(
            f"results of {run.name} that this run left alone have changed since they were looked at",
            hint=f"run `trendlake run {run.name}` again",
        )


def _in(time: Column, low: int, high: int) -> Column:
    return (time >= sf.timestamp_micros(sf.lit(low))) & (time < sf.timestamp_micros(sf.lit(high)))


def _side(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
