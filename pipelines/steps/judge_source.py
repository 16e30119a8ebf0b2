"""The check of a source's rows, in the time ranges of runs, by its contract. A row that several of them hold is checked
once: its verdict depends on the version and the contract, and on no range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake, read_at
from trendlake.pipelines.lake.road import HERE, NotHere, Road, tried
from trendlake.pipelines.lake.versions import schema_of
from trendlake.pipelines.lake.warehouse import folder_name, with_retries
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.judge import FewRows, ManyRows, judge_of
from trendlake.pipelines.quality.quarantine_counts import Broken, broken_of, broken_rows
from trendlake.pipelines.quality.scan import Scan, scan, sharing
from trendlake.pipelines.results.source_events import REPEATED
from trendlake.pipelines.results.windows import united
from trendlake.pipelines.runs.code_versions import CONTRACT_VERSION
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import TableAt
from trendlake.pipelines.spark.columns import column


@dataclass(frozen=True)
class Judgement:
    """The verdict of the contract on the rows of one version in one time range. `quarantined`: how many of `rows`;
    `times`: of all good rows of the table, int64, microseconds, where they are at hand. `road`: where they were
    judged."""

    rows: int
    quarantined: int
    checks: tuple[Check, ...]
    broken: Broken
    times: pa.Array | None = None
    road: Road = HERE


def judge_source(runs: Sequence[Run], pinned: TableAt) -> Iterator[tuple[Run, Judgement]]:
    """A judgement of the span of each of `runs`, in any order, at the version `pinned`. They are of one source and
    contract, and no two spans are the same. The rows that break the contract go to the quarantine, each span's in the
    name of its run. Raises SourceSchemaError, ContractRuleError."""
    lake, contract, version, table = runs[0].lake, runs[0].contract, pinned.version, pinned.table_id
    path = runs[0].warehouse.source(contract.name)
    q.check_columns(schema_of(lake, path, version), contract)
    sparks: list[Run] = []
    roads: dict[str, Road] = {}
    judge = _OneJudge(lake, contract, path, version)
    for run in runs:
        judgement, roads[run.name] = run.roads.take(
            "check-source", partial(_judged_here, run, judge, version, table), lambda: None
        )
        if judgement is None:
            sparks.append(run)
        else:
            yield run, judgement
    if sparks:
        for run, judgement in _judged_by_spark(sparks, read_at(lake, path, version), version, table):
            yield run, replace(judgement, road=roads[run.name])


@dataclass(frozen=True)
class _OneJudge:
    """The judge of a version in this process, or why there is none: asked once for all runs."""

    lake: Lake
    contract: Contract
    path: str
    version: int

    @cached_property
    def answer(self) -> FewRows | ManyRows | NotHere:
        def judge() -> FewRows | ManyRows:
            table = table_here(self.lake, self.path, self.version)
            place = self.lake.on_disk(self.lake.warehouse.verdicts)
            name = f"{self.contract.fingerprint}-{CONTRACT_VERSION}"
            return judge_of(table, self.contract, place and place / folder_name(table.table_id) / name)

        return tried(judge)


def _judged_here(run: Run, judge: _OneJudge, version: int, table: str | None) -> Judgement | NotHere:
    """Where this process is certain of it."""
    judging = judge.answer
    judged = judging if isinstance(judging, NotHere) else judging.judged(run.span)
    if isinstance(judged, NotHere):
        return judged
    broken = judged.broken
    if broken.rows:
        _quarantine(run, partial(q.append_quarantine, run.lake, judged.bad), version, table)
    checks = _checks(run, judged.repeated, broken, judged.checks)
    return Judgement(judged.rows, broken.rows, checks, broken, judged.times)


def _judged_by_spark(
    runs: Sequence[Run], source: DataFrame, version: int, table: str | None
) -> Iterator[tuple[Run, Judgement]]:
    """The workers count the rows by the rules that they keep. Of runs that hold no bad row nothing else is asked: this
    is how a table of many rows should be, and for whole rows there may be no room."""
    contract = runs[0].contract
    rules, keyed = contract.rules, [rule for rule in contract.rules if rule.kind == "unique"]
    time = sf.lit(None) if contract.is_reference else sf.unix_micros(column(contract.event_time))
    spans = [run.span for run in runs]
    scanned = scan(source, rules, keyed, time, spans)
    bad = []
    for run in runs:
        if scanned.repeated or scanned.bad(run.span):
            bad.append(run)
            continue
        masks = scanned.within(run.span)
        checks = scanned.checks(masks, dict.fromkeys((rule.name for rule in keyed), 0), rules, contract.name)
        rows = sum(count for _, count in masks)
        yield run, Judgement(rows, 0, _checks(run, 0, Broken(), checks), Broken())
    if not bad:
        return
    inside = _in_a_range(bad)
    rest = source.where(~inside) if scanned.repeated else None
    annotated = q.annotate(source.where(inside), rules, unique=bool(scanned.repeated), rest=rest)
    with _held(annotated):
        for run in bad:
            own = annotated if len(bad) == 1 else annotated.where(q.in_range(run.contract, *run.span))
            yield run, _judged_with_reasons(run, own, scanned, version, table)


def _in_a_range(runs: Sequence[Run]) -> Column:
    """Rows that a run holds."""
    contract = runs[0].contract
    inside = sf.lit(False)
    for stretch in united(run.span for run in runs):
        inside = inside | q.in_range(contract, *stretch)
    return inside


def _judged_with_reasons(run: Run, annotated: DataFrame, scanned: Scan, version: int, table: str | None) -> Judgement:
    """`annotated`: the rows of the run."""
    count, quarantined, repeats = annotated.agg(sf.count(sf.lit(1)), *broken_rows(run.contract)).collect()[0]
    broken = broken_of(annotated) if quarantined else Broken()
    if quarantined:
        bad = q.bad_rows(annotated, run.run_id, version)
        _quarantine(run, partial(q.write_quarantine, run.lake, bad, rows=quarantined), version, table)
    checks = _verdicts(run, annotated, scanned)
    return Judgement(count, quarantined, _checks(run, repeats, broken, checks), broken)


def _verdicts(run: Run, rows: DataFrame, scanned: Scan) -> list[Check]:
    """Great Expectations' verdicts on the rows of a run. A rule of uniqueness is judged whatever else they break."""
    contract = run.contract
    return scanned.checks(scanned.within(run.span), sharing(rows, contract.rules), contract.rules, contract.name)


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


@contextmanager
def _held(frame: DataFrame) -> Iterator[DataFrame]:
    """`frame` in memory, from when it is first asked for."""
    try:
        yield frame.persist(StorageLevel.MEMORY_AND_DISK)
    finally:
        frame.unpersist()


def _quarantine(run: Run, write: Callable[..., None], version: int, table: str | None) -> None:
    """`write`: of the rows of the run, `q.append_quarantine` or `q.write_quarantine`."""
    path = run.warehouse.quarantine(run.contract.name)
    key = f"{run.span[0]} {run.span[1]} {run.contract.fingerprint} {table}"
    with_retries(lambda: write(path, run_id=run.run_id, source_version=version, key=key), "writing the quarantine")
