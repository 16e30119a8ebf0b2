"""The work of a revision, by the published windows and the source's newest version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import Windows
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.lake.versions import TableVersion
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.results.coverage import Segment, spans
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.row_versions import StaleRows, stale_rows
from trendlake.pipelines.results.windows import Stretch, united
from trendlake.pipelines.revision.earlier_contracts import Shown, shown_by
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.consistency import last_ready, ready
from trendlake.pipelines.runs.intervals import LocalTimes, options_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions, oldest

BACKFILLS = 3
"""Stretches of windows for which a command each is printed."""


@dataclass(frozen=True)
class Task:
    """The work of a revision: `published` windows, stretches, that show versions from `after` on (of each
    table its oldest), all of them `after` where it is `settled`; those `due`, which were held back and may be published
    now. `sources`: the newest versions of the tables. `unique`: none of the rows in the published windows repeats a
    key. `reason` says why the feed cannot show the change, where it cannot. `earlier`: where rules of contracts have
    changed since, the versions and contracts that the published windows show, by the key of each table of events:
    these rows are judged by both."""

    sources: Versions
    after: Versions
    settled: bool
    unique: bool
    published: tuple[Stretch, ...]
    due: tuple[Stretch, ...]
    reason: str | None
    earlier: Mapping[str, tuple[Shown, ...]] = field(default_factory=dict)

    def changed(self, key: str) -> bool:
        """Whether other rows of a table may be good than published windows show."""
        return key in self.earlier or self.after.at(key) != self.sources.at(key)

    def judged_by(self, key: str) -> tuple[tuple[int, str], ...]:
        """The versions and the fingerprints in `earlier`, of one table."""
        return tuple((one.version, one.contract.fingerprint) for one in self.earlier.get(key, ()))

    @property
    def windows(self) -> tuple[Stretch, ...]:
        """Those that show `sources` in the end."""
        return tuple(united([(first, last + 1) for first, last in (*self.published, *self.due)], last=True))

    def of_references(self) -> Task:
        """The same for a reference table: whether other rows than those of the windows repeat a key is not known."""
        return replace(self, unique=False)

    def basis(self, run: Run, computed: range | None = None) -> Basis:
        """The basis of the revision; `computed`: from the first to the last of the windows that it computes."""
        stretches = self.windows
        return replace(
            run.basis(self.sources),
            windows=(stretches[0][0], stretches[-1][1] + 1) if stretches else None,
            computed=None if computed is None else (computed.start, computed.stop),
        )


def task_of(run: Run, ledger: Ledger, newest: Mapping[str, TableVersion | None]) -> Task:
    """`newest`: the newest version of each of the run's tables by its key, None where there is no table. Raises
    SourceMissingError, SourceSchemaError, StepOrderError (nothing is published)."""
    sources = run.known(newest)
    mine = [segment for segment in ledger.segments if segment.plan_hash == run.plan.hash]
    if not mine:
        form = "in this form " if ledger.segments else ""
        raise StepOrderError(
            f"{run.name} has published nothing {form}that could be revised", hint=to_publish(run, ledger)
        )
    for part in run.every_part:
        if (table := newest[part.key]) is not None:
            q.check_columns(table.schema, part.contract)
    published = [segment for segment in mine if segment.sources is not None]
    shown = {segment.sources for segment in published if segment.sources is not None}
    after = oldest([*shown]) if shown else sources
    reason, earlier = _incomparable(run, [*shown], sources), dict[str, tuple[Shown, ...]]()
    if any(segment.contract != run.sources.fingerprint for segment in published):
        before = shown_by(run, published)
        reason = (
            f"{_changed_contract(run, published)}: {reason or before}" if reason or isinstance(before, str) else None
        )
        earlier = {} if isinstance(before, str) else before
    last = last_ready(run, sources) if len(published) < len(mine) else None
    held = [ready(range(item.first, item.last + 1), last) for item in mine if item.sources is None]
    due = tuple((windows[0], windows[-1]) for windows in held if windows)
    unique = all(segment.unique for segment in published)
    return Task(sources, after, len(shown) < 2, unique, tuple(spans(published)), due, reason, earlier)


def older_versions(run: Run, ledger: Ledger) -> StaleRows | None:
    """The published windows in the pattern's present form whose rows older versions of the code made, and got wrong or
    may have; None where there are none."""
    mine = [item for item in ledger.segments if item.plan_hash == run.plan.hash and item.sources is not None]
    return stale_rows(run.plan, spans(mine), ledger.row_versions)


def _changed_contract(run: Run, published: Sequence[Segment]) -> str:
    """Names the tables whose contracts some windows do not show."""
    present = run.sources.fingerprints
    names = sorted(
        {run.sources.table(key).contract.name for item in published for key in present if _other(item, key, present)}
    )
    return " and ".join(f"the contract of '{name}' has changed" for name in names)


def _other(segment: Segment, key: str, present: Mapping[str, str]) -> bool:
    """Whether a window shows another contract of a table; where its note names no tables, it may be any."""
    return segment.contracts is None or dict(segment.contracts).get(key) != present[key]


def _incomparable(run: Run, shown: Sequence[Versions], sources: Versions) -> str | None:
    """Why the versions that published windows show cannot be compared with the newest; None where they can be."""
    for newest in sources.tables:
        name = run.sources.table(newest.name).contract.name
        tables = [one.at(newest.name) for one in shown]
        if any(table.table_id is None for table in tables):
            return (
                f"it is not known which version of '{name}' the results show: other programs have changed the results, "
                f"or the table of '{name}' is younger than notes that do not name it"
            )
        if any(table.table_id != newest.table_id for table in tables):
            return f"the table of '{name}' was made anew since the results were computed"
        if any(table.version > newest.version for table in tables):
            return (
                f"'{name}' is at version {newest.version}, the results show a later one: "
                "an older copy was put in its place"
            )
    return None


def other_forms(plan: AnyPlan, segments: Sequence[Segment]) -> list[Stretch]:
    """The windows that show, or were held back in, another form of the pattern than `plan`. Keys that do not change
    results (description, owner, schedule, tags) are no part of a form."""
    return spans([segment for segment in segments if segment.plan_hash != plan.hash])


def gaps_of(segments: Sequence[Segment]) -> list[Stretch]:
    """The windows between the first and the last published that no run has been asked for."""
    return [(before[1] + 1, after[0] - 1) for before, after in pairwise(spans(segments))]


def backfills(
    windows: Windows,
    typed: str,
    stretches: Sequence[Stretch],
    times: LocalTimes = LocalTimes(),  # noqa: B008 - frozen
) -> list[tuple[Stretch, str]]:
    """Each of the `stretches` with the command, without `trendlake`, that computes its windows. Of many stretches all
    are computed by one command, with the windows between them."""
    if len(stretches) > BACKFILLS:
        stretches = [(stretches[0][0], stretches[-1][1])]
    return [(stretch, f"backfill {typed} {options_of(windows, *stretch, times)}") for stretch in stretches]


def stale_windows(run: Run, ledger: Ledger) -> str | None:
    """Which published windows show an earlier form of the pattern, and how they are replaced; None where none do."""
    commands = [f"`trendlake {command}`" for _, command in _backfills_of_forms(run, ledger)]
    return f"windows of an earlier form of the pattern; replaced by {', '.join(commands)}" if commands else None


def to_publish(run: Run, ledger: Ledger) -> str:
    """The command that publishes windows in the pattern's present form, where none are."""
    commands = [command for _, command in _backfills_of_forms(run, ledger)] or [f"run {run.typed}"]
    return f"run {', then '.join(f'`trendlake {command}`' for command in commands)}"


def _backfills_of_forms(run: Run, ledger: Ledger) -> list[tuple[Stretch, str]]:
    return backfills(run.plan.windows, run.typed, other_forms(run.plan, ledger.segments), run.times)
