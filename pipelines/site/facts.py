"""The facts of the site's pages: plain values. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.facts import GroupKey, Measure, PatternFacts, Point, RowResult, RunFacts
from trendlake.pipelines.report.verdict import Verdict


@dataclass(frozen=True)
class RunsFacts:
    """The newest runs, the newest first, of `total` there are; those from `judged` on are read without their checks."""

    runs: tuple[RunFacts, ...]
    total: int
    judged: int


@dataclass(frozen=True)
class GroupFacts:
    """A group by its largest window (`peak`), with its largest in each stretch of the heat map."""

    key: GroupKey
    peak: Amount
    points: tuple[Point, ...]


@dataclass(frozen=True)
class MeasureFacts:
    """Another measure over time: `points` as `OverviewFacts.totals`, of windows in which it is known."""

    measure: Measure
    points: tuple[Point, ...]


@dataclass(frozen=True)
class OverviewFacts:
    """All that is published. `unit`: what is counted in, a window or a stretch of that name. `totals`: over all groups
    (of a measure that does not add up: the largest), of each window; of the largest window of each `bucket_seconds`,
    where that is given. `groups`: the largest of `group_count`, by stretches of `heat_seconds` likewise."""

    group_columns: tuple[str, ...]
    measure: Measure
    unit: str
    rows: int
    earlier_rows: int
    """Rows of an earlier form of the pattern; they are in the rest too."""
    windows: int
    first: datetime
    last: datetime
    extent: tuple[datetime, datetime] | None
    """Of rows that are counted by stretches of time: the first and the last moment of one."""
    totals: tuple[Point, ...]
    bucket_seconds: int | None
    step_seconds: float
    group_count: int
    groups: tuple[GroupFacts, ...]
    heat_seconds: int | None
    others: tuple[MeasureFacts, ...] = ()


@dataclass(frozen=True)
class ShownFacts:
    """The first rows of what is published, as `trendlake show` gives them, `which` of `total`; `stale`: how many of
    all are of another form of the pattern."""

    which: str
    total: int
    stale: int
    group_columns: tuple[str, ...]
    measures: tuple[str, ...]
    rows: tuple[RowResult, ...]
    ids: tuple[str, ...]
    """The last of `measures`: those that name events."""
    ranked: str
    """The column by which rows are ranked."""


@dataclass(frozen=True)
class NewestFacts:
    """The newest rows: those that the page shows, and those of the files next to it, columns of the plan's results."""

    shown: ShownFacts
    table: pa.Table


@dataclass(frozen=True)
class RowChange:
    """A result row that a publication changed: `values` as (name, before, after), both as text, None where there was or
    is no row."""

    kind: str
    key: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True)
class ChangeFacts:
    """One publication: a commit to the results. `changed`: rows inserted, updated, deleted. `samples`: some of them, of
    publications that changed existing rows; `unread` says why there are none of those."""

    version: int
    at: datetime | None
    stage: str
    run_id: str
    source_version: str
    changed: tuple[int, int, int]
    samples: tuple[RowChange, ...] = ()
    unread: str = ""

    @property
    def rewrites(self) -> bool:
        """Whether it changed existing rows, or is a revision."""
        return self.stage == "revise" or any(self.changed[1:])


@dataclass(frozen=True)
class ChangesFacts:
    """The newest publications of `total` in the results' log."""

    newest: tuple[ChangeFacts, ...]
    total: int


@dataclass(frozen=True)
class SourceFacts:
    """A source's table now: its newest version and event, None where there is no table or no event; its id."""

    name: str
    version: int | None = None
    newest_event: datetime | None = None
    table_id: str | None = None


@dataclass(frozen=True)
class FreshFacts:
    """How far what is published has come. `oldest`, `newest`: the versions of the source that published windows show;
    `until`: the end of the last of them, `due`: that of the next; `held_back`: whether windows wait for late events;
    `other_form`: whether some were computed by another form of the pattern; `source_tables`: the ids of the tables that
    they were computed from, None where other programs may have changed them."""

    source: SourceFacts
    oldest: int | None = None
    newest: int | None = None
    until: datetime | None = None
    due: datetime | None = None
    held_back: bool = False
    other_form: bool = False
    source_tables: tuple[str | None, ...] = ()
    several: tuple[str, ...] = ()
    """Of a pattern with `sources` the versions of its tables that published windows show, as `orders@12 payments@7`."""
    present: str = ""
    """The newest ones of those tables; empty for a pattern with `source`."""
    typed: str = ""
    """The word for the pattern on the command line."""
    table: str = ""
    """The name of its results table."""
    backfills: tuple[str, ...] = ()
    """The commands, without `trendlake`, that compute the windows of another form."""
    gaps: tuple[str, ...] = ()
    """The commands that compute the windows which are not published, before the last one that is."""
    revised: bool = True
    """Whether a revision corrects what is published: not of a `weak` pattern."""
    lateness_seconds: float = 0.0
    """How long windows wait for late events before they are published."""

    @property
    def other_table(self) -> bool:
        """Whether some windows show another table than the source's present one."""
        return any(table is None or table != self.source.table_id for table in self.source_tables)


@dataclass(frozen=True)
class Upstream:
    """Before a pattern: the tables that it `reads` (name, how, page below the site's root, empty where there is none);
    and the patterns of its `chain`, whose results it reads or those read in turn, the nearest first (name, page)."""

    reads: tuple[tuple[str, str, str], ...]
    chain: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DocsFacts:
    """The run whose Great Expectations' pages exist, or why there are none."""

    run_id: str = ""
    there: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class PatternPageFacts:
    """All that a pattern's page says. `before`: what it reads; `readers`: patterns with a page that read its results;
    `mistake`: why the file does not compile; `contracts`:
    of the tables of its events, None of one that cannot be read; `pages`: the run ids that have one."""

    pattern: PatternFacts
    file: str
    before: Upstream
    mistake: str
    automaton: str
    plan_hash: str
    contracts: Mapping[str, Contract | None]
    runs: RunsFacts
    verdicts: Mapping[str, Verdict]
    overview: OverviewFacts | None
    shown: ShownFacts | None
    newest: NewestFacts | None
    readers: tuple[str, ...]
    changes: ChangesFacts
    fresh: FreshFacts
    docs: DocsFacts
    pages: frozenset[str]
    made_at: datetime


@dataclass(frozen=True)
class Card:
    """A pattern on the page of all: the part of its own page that fits a row. Kept as JSON next to that page."""

    name: str
    file: str
    title: str
    kind: str
    owner: str
    schedule: str
    source: str
    state: str
    word: str
    reason: str
    run_id: str
    run_at: str
    run_page: bool
    fresh_state: str
    fresh: str
    fresh_note: str
    rows: int | None
    groups: str
    span: str
    checks: bool
    made_at: str
    apart: str
    """How many rows of the source the last run has quarantined, and why."""
    batch: str = ""
