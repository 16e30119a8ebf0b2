"""Step 1: pin the source's version, quarantine the rows that break its contract, judge the rest of the run by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import ToleranceError
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.results.owners import refuse_other_owner
from trendlake.pipelines.results.types import refuse_other_types
from trendlake.pipelines.runs.consistency import future_events
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.judge_source import Judgement, judge_source


@dataclass
class SharedSource:
    """The facts about one source that the runs of a batch share: the version that the first of them has pinned, and one
    judgement for each time range that they need. Each run's record is the one that it would have alone."""

    pinned: Versions | None = None
    judgements: dict[tuple[str, tuple[int, int]], Judgement] = field(default_factory=dict)

    def pin(self, run: Run) -> Versions:
        """The version of the source's table. Raises SourceMissingError."""
        if self.pinned is None:
            path = run.warehouse.source(run.contract.name)
            if not exists(run.lake, path):
                raise run.warehouse.missing(run.contract.name)
            version = latest_version(run.lake, path)
            self.pinned = Versions.one(version, table_id(run.lake, path, version))
        return self.pinned

    def judge(self, run: Run, others: Sequence[Run]) -> Judgement:
        """Of `run`, and in one go of each of `others` that has its contract and is not judged yet. Raises
        SourceSchemaError, ContractRuleError."""
        fingerprint = run.contract.fingerprint
        if (fingerprint, run.span) not in self.judgements:
            waiting: dict[tuple[int, int], Run] = {}
            for other in (run, *others):
                if other.contract.fingerprint == fingerprint and (fingerprint, other.span) not in self.judgements:
                    waiting.setdefault(other.span, other)
            try:
                for judged, judgement in judge_source(list(waiting.values()), self.pin(run).only):
                    self.judgements[fingerprint, judged.span] = judgement
            except Exception:
                if (fingerprint, run.span) not in self.judgements:
                    raise
                # It is raised again when the run asks whose range it is of.
        return self.judgements[fingerprint, run.span]


def check_source(run: Run) -> Record:
    """Rows of the pinned version in the time range of the run's windows are split; the bad ones go to quarantine.

    Every run of this step pins the newest version, so a run cleared and started again sees what has arrived since. The
    record holds the version, the rows in (good and bad together) and quarantined, and the verdict on each rule.
    Raises SourceMissingError, SourceSchemaError, ResultsTypeError, ContractRuleError, ToleranceError.
    """
    (attempt,) = check_source_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def check_source_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `check_source` of runs of one source, which read the same version. An error of one stops no other. Raises
    whatever ends Spark."""
    source, lake = SharedSource(), runs[0].lake
    with recorded_together(lake, [run.record("check_source") for run in runs]) as attempts:
        for run, attempt in zip(runs, attempts, strict=True):
            with attempt.going_on() as record:
                _pin(run, record, source)
            attempt.raise_if_ended(lake)
        ready = [(run, attempt) for run, attempt in zip(runs, attempts, strict=True) if attempt.error is None]
        for run, attempt in ready:
            with attempt.going_on() as record:
                _check(run, record, source, [other for other, _ in ready])
            attempt.raise_if_ended(lake)
    return attempts


def _pin(run: Run, record: Record, source: SharedSource) -> None:
    pinned = source.pin(run)
    record.source_version, record.basis = pinned.version, run.basis(pinned)
    refuse_other_owner(run.lake, run.name)
    refuse_other_types(run)


def _check(run: Run, record: Record, source: SharedSource, ready: Sequence[Run]) -> None:
    judgement = source.judge(run, ready)
    record.took(judgement.road)
    record.rows_in, record.rows_quarantined = judgement.rows, judgement.quarantined
    record.rows_out = judgement.rows - judgement.quarantined
    record.checks = list(judgement.checks)
    if run.needs_watermark:
        record.checks.append(future_events(run, source.pin(run).only.version, judgement.times))
    _within_tolerance(run, record, judgement.broken)


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
