"""One run of one pattern: what its steps are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from cep_core import AnyPlan, Pattern, compile_plan, load_pattern
from pipelines.contract import Contract
from pipelines.errors import BadTimeError, StepOrderError
from pipelines.profile import Profile
from pipelines.project import Project
from pipelines.runs import Record, Stage, need
from pipelines.upstream import source_contract
from pipelines.warehouse import Warehouse
from pipelines.watermark import BEGINNING


@dataclass(frozen=True)
class Run:
    """A run computes the windows that end in `(start_us, end_us]`, microseconds since the epoch. Where rows wait for
    time to come (`plan.waits`), also those before whose rows may still have been waited for."""

    spark: SparkSession
    project: Project
    profile: Profile
    warehouse: Warehouse
    pattern: Pattern
    contract: Contract
    plan: AnyPlan
    run_id: str
    start_us: int
    end_us: int
    only: range | None = None
    """The windows of the interval that a step goes on with, where those are not all."""
    records: dict[Stage, Record] = field(init=False, default_factory=dict, compare=False)
    """What the stages that this object has run have found."""

    @property
    def name(self) -> str:
        return self.pattern.name

    @property
    def windows(self) -> range:
        if self.only is not None:
            return self.only
        back = self.lateness + self.plan.windows.within if self.plan.waits else 0
        return self.plan.windows.ending_in(self.start_us - back, self.end_us)

    @property
    def lateness(self) -> int:
        """How long a run waits for late events before it says that nothing came, microseconds: consistency `strong`
        for as long as the contract allows them, the others not at all (they publish at once)."""
        return self.contract.lateness_us or 0 if self.pattern.consistency == "strong" else 0

    @property
    def span(self) -> tuple[int, int]:
        """The half-open time range the windows need; empty when there are none."""
        if not self.windows:
            return (self.start_us, self.start_us)
        start, end = self.plan.windows.span(self.windows)
        return max(start, BEGINNING), end

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

    def record(self, stage: Stage) -> Record:
        """A record of this run, to be filled in by the stage."""
        record = Record(
            self.run_id, self.name, stage, interval_from=self.start_us, interval_to=self.end_us,
            plan_hash=self.plan.hash, source=self.contract.name, windows=len(self.windows),
        )  # fmt: skip
        self.records[stage] = record
        return record

    def need(self, stage: Stage) -> Mapping[str, Any]:
        """The record of an earlier stage of this run. Raises StepOrderError when it has not succeeded, or was made
        for another interval or another state of the pattern."""
        mine = self.records.get(stage)
        if mine is not None and mine.succeeded:
            return asdict(mine)
        found = need(self.spark, self.warehouse, self.name, self.run_id, stage)
        again = f"run `trendlake {stage.replace('_', '-')} {self.name}` again"
        if (found["interval_from"], found["interval_to"]) != (self.start_us, self.end_us):
            raise StepOrderError(f"{stage} of run {self.run_id} was for another interval", hint=again)
        if found["plan_hash"] != self.plan.hash:
            raise StepOrderError(f"the pattern has changed since {stage} of run {self.run_id}", hint=again)
        return found


def prepare(
    spark: SparkSession,
    project: Project,
    profile: Profile,
    pattern: str,
    run_id: str,
    start_us: int,
    end_us: int,
) -> Run:
    """Load and check what the run is about. Raises PatternErrors, ContractErrors, ProjectError, BadTimeError."""
    if start_us >= end_us:
        raise BadTimeError("the interval is empty: --from must be before --to")
    if not run_id:
        raise BadTimeError("the run id is empty")
    loaded = load_pattern(project.pattern_path(pattern))
    contract = source_contract(project, str(loaded.source), (loaded.name,))
    plan = compile_plan(loaded, contract.event_schema())
    warehouse = Warehouse.of(profile, project)
    return Run(spark, project, profile, warehouse, loaded, contract, plan, run_id, start_us, end_us)
