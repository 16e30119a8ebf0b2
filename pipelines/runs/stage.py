"""The facts of one stage of one run, as the run record holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from trendlake.pipelines.check import Check
from trendlake.pipelines.lake.road import On, Road
from trendlake.pipelines.runs.basis import Basis

Stage = Literal["ingest", "check_source", "compute", "check_results", "publish", "revise"]


STAGES: tuple[str, ...] = get_args(Stage)


@dataclass
class Record:
    """The facts of one stage of one run; a number stays None where the stage does not know it.

    `interval_from`, `interval_to`: microseconds since the epoch. `source_version`: the version a stage read, of
    `ingest` the last it wrote. `staged_version`: the number of the attempt whose rows are staged. `record_number`: 1
    for the first record of a run, and for each stage that begins one more than the records before have; the order of
    records, whatever the clocks say. `basis`: what the stage's work is based on. `sources`: of a
    pattern with `sources`, the version, table id, contract, rows and watermark of each table by name. `road`,
    `road_reason`: where the stage worked on its rows, and why on Spark; None where it had none to work on.
    """

    run_id: str
    pattern: str | None
    stage: Stage
    interval_from: int | None = None
    interval_to: int | None = None
    plan_hash: str | None = None
    source: str | None = None
    source_version: int | None = None
    staged_version: int | None = None
    results_version: int | None = None
    rows_in: int | None = None
    rows_quarantined: int | None = None
    rows_out: int | None = None
    windows: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    seconds: float | None = None
    checks: list[Check] = field(default_factory=list)
    note: dict[str, Any] | None = None
    record_number: int | None = None
    basis: Basis | None = None
    sources: dict[str, dict[str, Any]] | None = None
    road: On | None = None
    road_reason: str | None = None
    succeeded: bool = False
    """Written down as such: what the table says is what a later step may rely on."""

    def took(self, road: Road) -> None:
        """Notes where a part of the work was done; what is on Spark once is on Spark."""
        if self.road != "spark":
            self.road, self.road_reason = road.on, road.reason or None
