"""The facts of a report: plain values, read from YAML and Delta by `read_*`, turned into a page by `view`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.bins import apart

GroupKey = tuple[str | None, ...]
"""The values of the group columns, as text, in their order; () when a pattern has none."""

STAGES = ("ingest", "check_source", "compute", "check_results", "publish")
"""The stages of a run in their order; all but `ingest` are part of every run."""


@dataclass(frozen=True)
class PatternFacts:
    """A pattern file: its text and the fields the page speaks of."""

    name: str
    kind: str
    description: str
    owner: str | None
    source: str
    pattern: str | None
    where: tuple[str, ...]
    returns: Mapping[str, str]
    group_by: tuple[str, ...]
    within: str | None
    slide: str | None
    yaml: str
    schedule: str | None = None
    batch: str | None = None
    consistency: str = "middle"
    time_zone: str | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it reads; `source` has them with commas."""
        return tuple(self.source.split(", "))


@dataclass(frozen=True)
class CheckFacts:
    """One verdict of a contract's expectation, or of a pattern's; `success` is None where nothing could be judged."""

    stage: str
    check: str
    column: str | None
    success: bool | None
    observed: str
    expected: str


@dataclass(frozen=True)
class StageFacts:
    """The last attempt of one stage; `attempts` says how many there were."""

    stage: str
    status: str
    seconds: float | None
    finished_at: datetime | None
    error: str | None
    rows_in: int | None
    rows_quarantined: int | None
    rows_out: int | None
    windows: int | None
    rows_inserted: int | None
    rows_updated: int | None
    rows_deleted: int | None
    attempts: int
    where: str = ""
    """In this process, or on Spark and why; empty where the record does not say it."""


@dataclass(frozen=True)
class RunFacts:
    """One run of one pattern, from `trendlake_runs`."""

    run_id: str
    pattern: str
    interval_from: datetime | None
    interval_to: datetime | None
    plan_hash: str | None
    source: str | None
    source_version: int | None
    staged_version: int | None
    results_version: int | None
    started_at: datetime | None
    finished_at: datetime | None
    stages: tuple[StageFacts, ...]
    checks: tuple[CheckFacts, ...]
    apart: str = ""
    """How many rows of the source were quarantined, and why; empty where none was."""
    versions: str = ""
    """The versions of several tables, `orders@12 payments@7`; empty of one."""

    @property
    def windows(self) -> int | None:
        """How many windows the run's interval has, with results or without."""
        return next((stage.windows for stage in reversed(self.stages) if stage.windows is not None), None)

    @property
    def rows_read(self) -> int | None:
        """Events of the source that the run has read."""
        return next(
            (stage.rows_in for stage in self.stages if stage.stage != "ingest" and stage.rows_in is not None), None
        )

    @property
    def rows_out(self) -> int | None:
        """Result rows that the run has computed; None where it has not come that far."""
        later = [stage for stage in self.stages if stage.stage not in ("ingest", "check_source")]
        return next((stage.rows_out for stage in reversed(later) if stage.rows_out is not None), None)

    @property
    def roads(self) -> dict[str, list[str]]:
        """Where stages have worked, and which."""
        roads: dict[str, list[str]] = {}
        for stage in self.stages:
            if stage.where:
                roads.setdefault(stage.where, []).append(stage.stage)
        return roads

    def stage(self, name: str) -> StageFacts | None:
        """The facts of one stage, None when it has not run."""
        return next((stage for stage in self.stages if stage.stage == name), None)


@dataclass(frozen=True)
class ReasonFacts:
    """Rows quarantined by one rule for one reason."""

    rule: str
    reason: str
    rows: int


@dataclass(frozen=True)
class SampleFacts:
    """One quarantined row, as it came: column and text, empty columns left out."""

    rule: str
    reason: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class QuarantineFacts:
    """The rows this run set aside. `reasons` holds the most frequent; the rest is counted, not dropped.

    `stored`: rows in the quarantine table under the run's id and source version; more than `rows`, what the run's own
    record says, when runs of other patterns share both.
    """

    rows: int
    stored: int = 0
    reasons: tuple[ReasonFacts, ...] = ()
    other_reasons: int = 0
    other_rows: int = 0
    samples: tuple[SampleFacts, ...] = ()


@dataclass(frozen=True)
class Measure:
    """The column a report counts or measures by. `is_count`: adds up over groups, may have a `_log10`
    companion. `unit`: as of `Amount`. `own`: the pattern's author has named it.
    """

    name: str
    is_count: bool
    unit: int = 0
    own: bool = False


@dataclass(frozen=True)
class Window:
    """A window `[start, end)`."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class GroupResult:
    """A group in the ranking: its amount over the interval and in how many windows it has rows."""

    key: GroupKey
    amount: Amount
    windows: int


@dataclass(frozen=True)
class WindowResult:
    """A window over all groups."""

    window: Window
    amount: Amount
    groups: int
    leader: GroupKey


@dataclass(frozen=True)
class RowResult:
    """One result row, all its measures as (name, value); a value that is no number is text."""

    key: GroupKey
    window: Window
    values: tuple[tuple[str, Amount | str], ...]


@dataclass(frozen=True)
class Point:
    """A series' value in one window (or in the largest window of one bucket, see
    `ResultFacts.bucket_seconds`).
    """

    window: Window
    amount: Amount


@dataclass(frozen=True)
class ResultFacts:
    """The facts of the results table about a run's interval, and the span of time before it that puts it in
    context.

    `additive`: amounts over several windows are sums; when windows overlap (or the measure does not add up)
    they are the largest single window instead, because a trend counts in every window that holds it.

    `unit`: the unit into which time is cut, a window or a stretch of that name; of those, `units` in the run's
    interval, where they are not windows. `since`: where the run's own begin, if not with its interval.

    `older_rows`: rows of another state of the pattern in the same span, left out.
    `series` has a line for every ranked group; the first `drawn` of them get their own in the picture, and
    `others_series` is all the remaining `others_drawn` groups together.
    """

    group_columns: tuple[str, ...]
    measure: Measure
    measures: tuple[str, ...]
    additive: bool
    rows: int
    windows: int
    groups: int
    headline: Amount
    top_groups: tuple[GroupResult, ...]
    others: Amount
    series: Mapping[GroupKey, tuple[Point, ...]]
    drawn: int
    others_series: tuple[Point, ...]
    others_drawn: int
    busiest: tuple[WindowResult, ...]
    span_windows: int
    span_from: datetime | None
    largest: tuple[RowResult, ...]
    older_rows: int = 0
    step_seconds: float | None = None
    bucket_seconds: int | None = None
    version: int | None = None
    unit: str = "window"
    units: int | None = None
    since: datetime | None = None
    ids: tuple[str, ...] = ()
    """The last of `measures`: those that name events."""

    def apart(self, before: Window, after: Window) -> bool:
        """Whether a window (or a bucket of them) is missing between two neighbours of a series."""
        return apart(before.start, after.start, self.bucket_seconds, self.step_seconds or math.inf)


@dataclass(frozen=True)
class ReportFacts:
    """Everything on the page. `results` is None when the pattern has no results table (yet); `automaton` is the picture
    of the run's plan, SVG without a style of its own, empty where there is none."""

    pattern: PatternFacts
    run: RunFacts
    quarantine: QuarantineFacts
    results: ResultFacts | None
    made_at: datetime
    automaton: str = ""
