"""Step 1: pin the source's version, set apart the rows that break its contract, judge the rest of the run by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pipelines.check import Check
from pipelines.contracts.rules import Rule
from pipelines.delta.local_reader import table_here
from pipelines.delta.table_versions import table_id
from pipelines.delta.tables import exists, latest_version, read_at, with_retries
from pipelines.error_text import plural
from pipelines.errors import LocalUnsupportedError, ToleranceError
from pipelines.quality import quarantine as q
from pipelines.quality.great_expectations import flags_of, judge_flags, verdicts
from pipelines.quality.local_check import judge_small
from pipelines.quality.quarantine_counts import Broken, broken_of, broken_rows
from pipelines.quality.uniqueness import BROKEN
from pipelines.results.source_events import REPEATED
from pipelines.results.types import refuse_other_types
from pipelines.runs.consistency import future_events
from pipelines.runs.record import Attempt, recorded_together
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.frames import frame_of

KEYS = "key_indexes"
"""The folder of the state folder that holds what is known of the keys of large tables; it may be removed."""


@dataclass(frozen=True)
class Judgement:
    """What the contract says of the rows of one version in one time range. `quarantined`: how many of `rows`; `times`:
    of all good rows of the table, int64, microseconds, where they are at hand."""

    rows: int
    quarantined: int
    checks: tuple[Check, ...]
    broken: Broken
    times: pa.Array | None = None


@dataclass
class SharedSource:
    """What the runs of a batch have of one source together: the version that the first of them has pinned, and one
    judgement for each time range that they need. Each run's record is the one that it would have alone."""

    pinned: tuple[int, str | None] | None = None
    judgements: dict[tuple[str, tuple[int, int]], Judgement] = field(default_factory=dict)

    def pin(self, run: Run) -> tuple[int, str | None]:
        """The version and the id of the source's table. Raises SourceMissingError."""
        if self.pinned is None:
            path = run.warehouse.source(run.contract.name)
            if not exists(run.spark, path):
                raise run.warehouse.missing(run.contract.name)
            version = latest_version(run.spark, path)
            self.pinned = version, table_id(run.spark, path, version)
        return self.pinned

    def judge(self, run: Run) -> Judgement:
        """Raises SourceSchemaError, ContractRuleError."""
        key = (run.contract.fingerprint, run.span)
        if key not in self.judgements:
            self.judgements[key] = _judge(run, *self.pin(run))
        return self.judgements[key]


def check_source(run: Run, source: SharedSource | None = None) -> Record:
    """Rows of the pinned version in the time range of the run's windows are split; the bad ones go to quarantine.

    Every run of this step pins anew, so a run cleared and started again sees what has arrived since; runs that are
    given the same `source` read the same version. The record holds the version, the rows in (good and bad together) and
    quarantined, and the verdict on each rule.
    Raises SourceMissingError, SourceSchemaError, ResultsTypeError, ContractRuleError, ToleranceError.
    """
    (attempt,) = check_source_together([run], source)
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def check_source_together(runs: Sequence[Run], source: SharedSource | None = None) -> list[Attempt]:
    """As `check_source` of runs of one source. An error of one stops no other. Raises whatever ends Spark."""
    source, spark, warehouse = source or SharedSource(), runs[0].spark, runs[0].warehouse
    with recorded_together(spark, warehouse, [run.record("check_source") for run in runs]) as attempts:
        for run, attempt in zip(runs, attempts, strict=True):
            with attempt.going_on() as record:
                _check(run, record, source)
            attempt.raise_if_ended(spark)
    return attempts


def _check(run: Run, record: Record, source: SharedSource) -> None:
    record.source_version, table = source.pin(run)
    record.basis = run.basis(record.source_version, table)
    refuse_other_types(run)
    judgement = source.judge(run)
    record.rows_in, record.rows_quarantined = judgement.rows, judgement.quarantined
    record.rows_out = judgement.rows - judgement.quarantined
    record.checks = list(judgement.checks)
    if run.needs_watermark:
        record.checks.append(future_events(run, record.source_version, judgement.times))
    _within_tolerance(run, record, judgement.broken)


def _judge(run: Run, version: int, table: str | None) -> Judgement:
    path = run.warehouse.source(run.contract.name)
    source = read_at(run.spark, path, version)
    q.check_columns(source.schema, run.contract)
    try:
        judged = judge_small(table_here(run.spark, path, version), run.contract, run.span, run.project.state / KEYS)
        broken = Broken(judged.rules)
        if broken.rows:  # few: Spark gives the reasons, and writes
            bad = q.annotate(frame_of(run.spark, judged.bad), run.contract.rules, unique=False)
            _quarantine(run, bad, version, table, broken.rows)
        checks = _checks(run, 0, broken, judged.checks)
        return Judgement(judged.rows, broken.rows, checks, broken, judged.times)
    except LocalUnsupportedError:
        inside = q.in_range(run.contract, *run.span)
        return _split_and_judge(run, source.where(inside), source.where(~inside), version, table)


def _split_and_judge(run: Run, rows: DataFrame, rest: DataFrame, version: int, table: str | None) -> Judgement:
    """`rest`: the rows of the table that are not `rows`."""
    rules, name = run.contract.rules, run.contract.name
    annotated = q.annotate(rows, rules, unique=False)
    repeated = q.repeated(rows, rules, rest)
    alone = None if repeated else _judged_alone(rows, rules, name)
    if alone is not None:
        count, checks = alone
        return Judgement(count, 0, _checks(run, 0, Broken(), checks), Broken())
    with _held(q.marked(rows, rules, rest) if repeated else annotated) as annotated:
        count, quarantined, repeats = annotated.agg(sf.count(sf.lit(1)), *broken_rows(run.contract)).collect()[0]
        broken = broken_of(annotated) if quarantined else Broken()
        if quarantined:
            _quarantine(run, annotated, version, table, quarantined)
        checks = verdicts(annotated.drop(BROKEN), rules, name, count)
    return Judgement(count, quarantined, _checks(run, repeats, broken, checks), broken)


def _checks(run: Run, repeated: int, broken: Broken, rule_checks: Sequence[Check]) -> tuple[Check, ...]:
    """`repeated`: the number of rows that repeat a key."""
    contract = run.contract
    about = {"contract": contract.name, "version": contract.version, "fingerprint": contract.fingerprint}
    return (
        Check("contract", True, f"{contract.name} {contract.version}", contract.fingerprint, data=about),
        Check(REPEATED, repeated == 0, plural(repeated, "row"), "0 rows", data={"rows": repeated}),
        broken.check(),
        *rule_checks,
    )


def _judged_alone(rows: DataFrame, rules: Sequence[Rule], name: str) -> tuple[int, list[Check]] | None:
    """The number and the checks of rows that repeat no key, where none is bad, as in a table of many rows it should be:
    then a few bits of each row are all that is held. For whole rows there may be no room, and to write them down takes
    longer than all else."""
    if not all(rule.quarantines for rule in rules if rule.kind == "unique"):
        return None
    flags, names = flags_of(rows, rules, [(~q.kept_by(rules)).alias("row_bad")])
    with _held(flags):
        count, bad = flags.agg(sf.count(sf.lit(1)), sf.count_if("row_bad")).collect()[0]
        return None if bad else (count, judge_flags(flags, names, rules, name, count))


@contextmanager
def _held(frame: DataFrame) -> Iterator[DataFrame]:
    """`frame` in memory, from when it is first asked for."""
    try:
        yield frame.persist(StorageLevel.MEMORY_AND_DISK)
    finally:
        frame.unpersist()


def _quarantine(run: Run, annotated: DataFrame, version: int, table: str | None, rows: int) -> None:
    key = f"{run.span[0]} {run.span[1]} {run.contract.fingerprint} {table}"
    with_retries(
        lambda: q.write_quarantine(
            q.bad_rows(annotated, run.run_id, version), run.warehouse.quarantine(run.contract.name),
            run_id=run.run_id, source_version=version, key=key, rows=rows,
        ),
        "writing the quarantine",
    )  # fmt: skip


def _within_tolerance(run: Run, record: Record, broken: Broken) -> None:
    rows, most = record.rows_in or 0, run.contract.tolerance
    within = broken.lost <= most * rows
    observed = f"{broken.lost} of {rows} rows"
    data = {"rows": rows, "broken": broken.lost, "tolerance": most}
    expected = f"at most {most:.2%} of the rows"
    record.checks.append(Check("quarantine_tolerance", within, observed, expected, data=data))
    if not within:
        raise ToleranceError(
            f"{observed} of '{run.contract.name}' break its contract; it tolerates {most:.2%}: {broken}",
            hint=f"see them with `trendlake quarantine show {run.contract.name}`",
        )
