"""One run of one pattern: what its steps are given."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trendlake.cep_core import AnyPlan, Pattern, compile_plan, load_pattern
from trendlake.cep_core.events.windows import AGES, BEGINNING, END, both
from trendlake.cep_core.plan import in_calendar, times_read
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.errors import BadTimeError, StepOrderError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import On, Roads
from trendlake.pipelines.lake.versions import TableVersion, newest, table_id
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.renames import refuse_bad_rename
from trendlake.pipelines.runs.basis import Basis, Terms, differences
from trendlake.pipelines.runs.code_versions import versions_of
from trendlake.pipelines.runs.intervals import LocalTimes, refuse_empty
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.source_versions import TableAt, Versions
from trendlake.pipelines.runs.stage import Record, Stage


@dataclass(frozen=True)
class Run:
    """A run computes the windows that end in `(start_us, end_us]`, microseconds since the epoch; and those before whose
    rows may still have been waited for (`plan.waits`), or are changed by events of the interval (`windows.ahead`)."""

    lake: Lake
    project: Project
    profile: Profile
    pattern: Pattern
    sources: Sources
    plan: AnyPlan
    run_id: str
    start_us: int
    end_us: int
    only: range | None = None
    """The windows of the interval that a step goes on with, where those are not all."""
    on: On | None = None
    """Where its steps are to be done, where the user has said it."""
    unlimited: bool = False
    """Whether it computes whatever `most_windows` of its lookups say."""
    whole: bool = False
    """Whether it is as of a reference table, of whose rows none is too old or too new."""
    records: dict[Stage, Record] = field(init=False, default_factory=dict, compare=False)
    """The records of the stages that this object has run."""

    @property
    def name(self) -> str:
        return self.pattern.name

    @property
    def contract(self) -> Contract:
        """That of the one table of events. Raises NotSupportedError for a pattern with `sources`."""
        return self.sources.contract

    @property
    def parts(self) -> tuple[Run, ...]:
        """The same run as of each of its tables of events: of one `source` that is itself."""
        if not self.sources.named:
            return (self,)
        return tuple(replace(self, sources=sources) for sources in self.sources.parts)

    @property
    def references(self) -> tuple[Run, ...]:
        """The same run as of each of its reference tables."""
        return tuple(replace(self, sources=Sources((table,)), whole=True) for table in self.sources.references)

    @property
    def every_part(self) -> tuple[Run, ...]:
        """`parts`, and those of `references` that are no table of events."""
        names = {table.key for table in self.sources.tables}
        return (*self.parts, *(part for part in self.references if part.key not in names))

    @property
    def key(self) -> str:
        """The name of the one table in `Versions`."""
        (table,) = self.sources.tables
        return table.key

    @property
    def begins(self) -> tuple[str, ...]:
        """The columns of the one table with the times at which its events begin, where events last."""
        start, tables = self.plan.interval_start, self.plan.schema.tables
        if start is None or tables is None:
            return () if start is None else (start,)
        types = {one.name for one in tables.types if one.table == self.key}
        origins = (origin for column in tables.columns if column.name == start for origin in column.origins)
        return tuple(sorted({origin.own for origin in origins if origin.type in types}))

    @property
    def warehouse(self) -> Warehouse:
        return self.lake.warehouse

    @property
    def typed(self) -> str:
        """The word for the pattern on the command line."""
        return self.project.typed(self.name, self.pattern.document.name)

    @property
    def roads(self) -> Roads:
        """Where its steps may be done."""
        return Roads(self.profile.limits, self.on)

    @property
    def options(self) -> str:
        """The interval on the command line: `--from 2026-01-05 --to 2026-01-06`."""
        return self.times.options(self.start_us, self.end_us)

    @property
    def times(self) -> LocalTimes:
        """How times of the pattern are written."""
        return LocalTimes.of(self.pattern)

    @property
    def windows(self) -> range:
        return self.asked if self.only is None else self.only

    @property
    def asked(self) -> range:
        """All windows of the interval that are `in_calendar`, `only` some or not."""
        return both(self._ending, in_calendar(self.plan))

    @property
    def outside(self) -> int:
        """How many windows of the interval are not `in_calendar`."""
        return len(self._ending) - len(self.asked)

    @property
    def _ending(self) -> range:
        back = self.lateness + self.plan.windows.longest if self.plan.waits else self.ahead
        return self.plan.windows.ending_in(self.start_us - back, self.end_us)

    @property
    def ahead(self) -> int:
        """How far before the interval windows end that new events may change, microseconds; 0 where any may be, or
        where none is corrected."""
        ahead = self.plan.windows.ahead
        return 0 if ahead >= AGES or self.pattern.consistency == "weak" else ahead

    @property
    def lateness(self) -> int:
        """How long a run waits for late events before it says that nothing came, microseconds: consistency `strong`
        for as long as a contract allows them, the others not at all (they publish at once)."""
        return self.sources.lateness_us or 0 if self.pattern.consistency == "strong" else 0

    @property
    def needs_watermark(self) -> bool:
        """Whether the rows of the run, or which of them are published, depend on the source's watermark."""
        return self.plan.waits or self.pattern.consistency == "strong"

    @property
    def span(self) -> tuple[int, int]:
        """The half-open range of event times that the windows need; empty when there are none."""
        if self.whole:
            return BEGINNING, END + 1
        if not self.windows:
            return (self.start_us, self.start_us)
        start, end = times_read(self.plan, self.windows)
        return max(start, BEGINNING), end

    @property
    def reopens(self) -> bool:
        """Whether its events may change rows of any window that is published."""
        return self.plan.windows.ahead >= AGES and self.pattern.consistency != "weak"

    @property
    def owned(self) -> tuple[str, int, int]:
        """(column, low, high): the result rows of the run's windows are those with low <= column < high, microseconds;
        none where there are no windows."""
        if self.windows:
            return self.plan.owned(self.windows)
        return self.plan.owned(range(1))[0], self.start_us, self.start_us

    def narrowed(self, windows: range) -> Run:
        """The same run, its records too, of `windows` only."""
        run = replace(self, only=windows)
        run.records.update(self.records)
        return run

    def basis(self, sources: Versions | None = None) -> Basis:
        """The basis of the work of a step of this run that reads these versions."""
        asked, windows = self.asked, self.windows
        tables = {
            part.key: Terms(part.contract.fingerprint, part.lateness, part.sources.tables[0].idle_us)
            for part in (self.every_part if self.sources.named else ())
        }
        return Basis(
            self.sources.fingerprint,
            self.lateness,
            self.pattern.consistency,
            (asked.start, asked.stop),
            (windows.start, windows.stop),
            sources,
            versions_of(self.plan),
            tables or None,
        )

    def newest(self) -> dict[str, TableVersion | None]:
        """The newest version of each table, by its key; None where there is no table."""
        return {part.key: newest(self.lake, self.warehouse.source(part.contract.name)) for part in self.every_part}

    def known(self, tables: Mapping[str, TableVersion | None]) -> Versions:
        """Versions of all tables, as `newest` gives them. Raises SourceMissingError."""
        there: list[TableAt] = []
        for part in self.every_part:
            table = tables[part.key]
            if table is None:
                raise self.warehouse.missing(part.contract.name)
            there.append(TableAt(part.key, table.version, table.table_id))
        return self.knowing_events(Versions.of(there))

    def knowing_events(self, versions: Versions) -> Versions:
        """Versions of all tables, with the name of the one table of events, where that is one."""
        return versions.with_events(self.sources.tables[0].key) if len(self.sources.tables) == 1 else versions

    def recorded(self, sources: Versions) -> dict[str, dict[str, Any]]:
        """The facts about each table in the record of a stage that reads these versions, without counts."""
        return {
            part.key: {
                "version": sources.at(part.key).version,
                "table_id": sources.at(part.key).table_id,
                "contract": part.contract.fingerprint,
            }
            for part in self.every_part
        }

    def record(self, stage: Stage) -> Record:
        """A record of this run, to be filled in by the stage."""
        numbers = [record.record_number or 0 for record in self.records.values()]
        record = Record(
            self.run_id,
            self.name,
            stage,
            interval_from=self.start_us,
            interval_to=self.end_us,
            plan_hash=self.plan.hash,
            source=self.sources.name,
            windows=len(self.windows),
            basis=self.basis(),
            record_number=max(numbers) + 1 if numbers and all(numbers) else None,
        )
        self.records[stage] = record
        return record

    def need(self, stage: Stage) -> Record:
        """The record of an earlier stage of this run.

        Raises StepOrderError when the stage has not succeeded, or its record was made for something else: another
        interval or form of the pattern, or another basis than this run has now, at the version of the source that the
        last check_source has pinned.
        """
        stored = self._last(stage)
        pinned = stored if stage == "check_source" else self._last("check_source")
        recorded, pin = stored.basis, pinned.basis
        if recorded is None or pin is None or pin.sources is None:
            raise self._refused(stage, "its record was written by an earlier version of Trendlake")
        if (stored.interval_from, stored.interval_to) != (self.start_us, self.end_us):
            raise self._refused(stage, "it was for another interval")
        if stored.plan_hash != self.plan.hash:
            raise self._refused(stage, "the pattern has changed since")
        for read in pin.sources.tables:
            path = self.warehouse.source(self.sources.table(read.name).contract.name)
            table = table_id(self.lake, path, read.version)
            if table != read.table_id:
                now = "gone" if table is None else f"of table {table}"
                source = f"'{read.name}'" if read.name else "the source"
                was = f"version {read.version} of {source} was of table {read.table_id}"
                raise self._refused(stage, f"{was}, and is {now}")
        different = differences(recorded, self.basis(pin.sources))
        if different:
            raise self._refused(stage, "; ".join(different))
        return stored

    def _last(self, stage: Stage) -> Record:
        mine = self.records.get(stage)
        if mine is not None and mine.succeeded:
            return mine
        stored = find(self.lake, self.name, self.run_id, stage)
        if stored is None:
            step = stage.replace("_", "-")
            raise StepOrderError(
                f"{step} has not succeeded for {self.name}, run {self.run_id}",
                hint=f"run `trendlake {step} {self.typed} {self.options} --run-id {shlex.quote(self.run_id)}` first",
            )
        return stored

    def _refused(self, stage: Stage, reason: str) -> StepOrderError:
        return StepOrderError(
            f"cannot go on from {stage} of {self.name}, run {self.run_id}: {reason}",
            hint=f"run `trendlake check-source {self.typed} {self.options} --run-id {shlex.quote(self.run_id)}` again, "
            "and the steps after it",
        )


def prepare(
    lake: Lake,
    project: Project,
    profile: Profile,
    pattern: str,
    run_id: str,
    start_us: int,
    end_us: int,
    on: On | None = None,
) -> Run:
    """Load and check what the run is about. `lake`: with the project's warehouse. Raises PatternErrors, ContractErrors,
    ProjectError, BadTimeError."""
    refuse_empty(start_us, end_us)
    if not run_id:
        raise BadTimeError("the run id is empty")
    path = project.pattern_path(pattern)
    loaded = load_pattern(path)
    refuse_bad_rename(project, loaded, path)
    sources = sources_of(project, loaded)
    plan = compile_plan(loaded, sources.schema, sources.reference_columns)
    sources = sources.of_plan(plan)
    if not in_calendar(plan):
        raise BadTimeError(
            f"no window of {loaded.name} lies in the years 1 to 9999",
            hint="give it a shorter `within`, or another `origin`",
        )
    return Run(lake, project, profile, loaded, sources, plan, run_id, start_us, end_us, on=on)
