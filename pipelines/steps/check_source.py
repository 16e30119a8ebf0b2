"""Step 1: pin the versions of the tables, quarantine the rows that break their contracts, judge the rest of the run by
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import ToleranceError
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.results.owners import refuse_other_owner
from trendlake.pipelines.results.reference_tables import unused_checks
from trendlake.pipelines.results.types import refuse_other_types
from trendlake.pipelines.runs.consistency import future_events, of_table, watermark_check, watermarks
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import TableAt, Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.judge_source import Judgement, judge_source


@dataclass
class SharedSources:
    """The facts about tables that the runs of a batch share: of each the version that the first of them has pinned, and
    one judgement for each time range that they need. Each run's record is the one that it would have alone."""

    pinned: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    """The version and table id by the name of the table."""
    judgements: dict[tuple[str, tuple[int, int]], Judgement] = field(default_factory=dict)

    def pin(self, run: Run) -> Versions:
        """The versions of the run's tables. Raises SourceMissingError."""
        return run.knowing_events(Versions.of(self.pin_one(part) for part in run.every_part))

    def pin_one(self, part: Run) -> TableAt:
        """That of one table. Raises SourceMissingError."""
        name = part.contract.name
        if name not in self.pinned:
            path = part.warehouse.source(name)
            if not exists(part.lake, path):
                raise part.warehouse.missing(name)
            version = latest_version(part.lake, path)
            self.pinned[name] = version, table_id(part.lake, path, version)
        return TableAt(part.key, *self.pinned[name])

    def judge(self, run: Run, others: Sequence[Run]) -> Judgement:
        """Of `run`, a part, and in one go of each of `others` that has its contract and is not judged yet. Raises
        SourceSchemaError, ContractRuleError."""
        fingerprint = run.contract.fingerprint
        if (fingerprint, run.span) not in self.judgements:
            waiting: dict[tuple[int, int], Run] = {}
            for other in (run, *others):
                if other.contract.fingerprint == fingerprint and (fingerprint, other.span) not in self.judgements:
                    waiting.setdefault(other.span, other)
            try:
                for judged, judgement in judge_source(list(waiting.values()), self.pin_one(run)):
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
    Raises SourceMissingError, SourceSchemaError, ResultsTypeError, ContractRuleError, ToleranceError,
    LookupRepeatedError.
    """
    (attempt,) = check_source_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def check_source_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `check_source` of runs that may read the same tables: then the same version of each. An error of one stops no
    other. Raises whatever ends Spark."""
    source, lake = SharedSources(), runs[0].lake
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


def _pin(run: Run, record: Record, source: SharedSources) -> None:
    pinned = source.pin(run)
    record.source_version, record.basis = pinned.version, run.basis(pinned)
    refuse_other_owner(run.lake, run.name)
    refuse_other_types(run)


def _check(run: Run, record: Record, source: SharedSources, ready: Sequence[Run]) -> None:
    """All tables are judged, and their bad rows are in quarantine, before the run fails."""
    parts = [part for other in ready for part in other.every_part]
    judged: list[tuple[Run, Judgement]] = []
    errors: list[Exception] = []
    for part in run.every_part:
        try:
            judged.append((part, source.judge(part, parts)))
        except Exception as error:
            if run.lake.ended:
                raise
            errors.append(error)
    if errors:
        raise errors[0]
    of_events = [judgement for part, judgement in judged if not part.whole]
    record.rows_in = sum(judgement.rows for judgement in of_events)
    record.rows_quarantined = sum(judgement.quarantined for judgement in of_events)
    record.rows_out = record.rows_in - record.rows_quarantined
    for part, judgement in judged:
        record.took(judgement.road)
        checks = list(judgement.checks)
        if run.needs_watermark and not part.whole:
            checks.append(future_events(part, source.pin_one(part).version, judgement.times))
        record.checks += [of_table(part, check) for check in checks]
    if run.sources.named:
        _of_each_table(run, record, judged, source.pin(run))
    record.checks += unused_checks(run, source.pin(run))
    _within_tolerance(record, judged)


def _of_each_table(run: Run, record: Record, judged: Sequence[tuple[Run, Judgement]], pinned: Versions) -> None:
    reached: Mapping[str, int] = {}
    if run.needs_watermark:
        reached = watermarks(run, pinned)
        record.checks.append(watermark_check(run, reached))
    record.sources = run.recorded(pinned)
    for part, judgement in judged:
        counts = {"rows_in": judgement.rows, "quarantined": judgement.quarantined, "watermark": reached.get(part.key)}
        record.sources[part.key] |= counts


def _within_tolerance(record: Record, judged: Sequence[tuple[Run, Judgement]]) -> None:
    lost, names = [], []
    for part, judgement in judged:
        rows, most, broken = judgement.rows, part.contract.tolerance, judgement.broken
        within = broken.lost <= most * rows
        observed = f"{broken.lost} of {rows} rows"
        data = {"rows": rows, "broken": broken.lost, "tolerance": most}
        expected = f"at most {most:.2%} of the rows"
        check = Check("quarantine_tolerance", within, observed, expected, data=data)
        record.checks.append(of_table(part, check))
        if not within:
            names.append(part.contract.name)
            lost.append(f"{observed} of '{names[-1]}' break its contract; it tolerates {most:.2%}: {broken}")
    if lost:
        commands = " and ".join(f"`trendlake quarantine show {name}`" for name in names)
        raise ToleranceError("; ".join(lost), hint=f"see them with {commands}")
