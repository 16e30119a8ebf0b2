"""The run's record, from Delta."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import road_of
from trendlake.pipelines.quality.quarantine_counts import SET_APART
from trendlake.pipelines.report.errors import RunNotFoundError
from trendlake.pipelines.report.facts import STAGES, CheckFacts, RunFacts, StageFacts
from trendlake.pipelines.runs.record import NUMBER, SCHEMA, SOURCES, pattern_records
from trendlake.pipelines.runs.stored_record import checks_in

Facts = dict[str, Any]
"""A row of the run record, times in microseconds."""
DAMAGED = "run_record"
"""The check that a run record can be read."""
UNNAMED = "not recorded"
"""Stage or status of a damaged record that names none."""


def read_run(lake: Lake, pattern: str, run_id: str) -> RunFacts:
    """The facts of one run: of each stage the last attempt, of the versions and the interval the last one
    recorded.

    Raises RunNotFoundError when nothing was recorded under `run_id` for `pattern`.
    """
    rows = pattern_records(lake, [pattern], SCHEMA.fieldNames(), [run_id])
    if not rows:
        raise RunNotFoundError.of(run_id, pattern, lake.warehouse.runs)
    return run_facts(rows)


def run_facts(rows: Iterable[Facts]) -> RunFacts:
    """Fold the rows of one run (times in microseconds) into its facts; later attempts win, stage by stage. Which one is
    later the numbers of the records say; records of earlier versions have none, and are in the order of their ends."""
    ordered = sorted((row | {name: row[name] or UNNAMED for name in ("stage", "status")} for row in rows), key=_place)
    attempts: dict[str, list[Facts]] = {}
    for row in ordered:
        attempts.setdefault(row["stage"], []).append(row)
    names = [stage for stage in STAGES if stage in attempts] + [s for s in attempts if s not in STAGES]
    last = [attempts[name][-1] for name in names]
    started = [row["started_at"] for row in ordered if row["started_at"] is not None]
    finished = [row["finished_at"] for row in ordered if row["finished_at"] is not None]
    checks = [check for row in last for check in check_facts(row)]
    return RunFacts(
        run_id=ordered[0]["run_id"],
        pattern=ordered[0]["pattern"],
        interval_from=_time(_latest(ordered, "interval_from")),
        interval_to=_time(_latest(ordered, "interval_to")),
        plan_hash=_latest(ordered, "plan_hash"),
        source=_latest(ordered, "source"),
        source_version=_latest(ordered, "source_version"),
        staged_version=_latest(ordered, "staged_version"),
        results_version=_latest(ordered, "results_version"),
        started_at=_time(min(started, default=None)),
        finished_at=_time(max(finished, default=None)),
        stages=tuple(_stage(row, len(attempts[row["stage"]])) for row in last),
        checks=tuple(check for check in checks if check.check != SET_APART),
        apart=next((check.observed for check in checks if check.check == SET_APART and check.success is False), ""),
        versions=_versions(next((text for row in reversed(ordered) if (text := row.get(SOURCES))), None)),
    )


def _versions(sources: str | None) -> str:
    """The column `sources` of a run record: each table with its version."""
    try:
        tables = {} if sources is None else json.loads(sources)
        return " ".join(f"{name}@{table['version']}" for name, table in sorted(tables.items()))
    except (ValueError, TypeError, KeyError, AttributeError):  # a damaged record still has a page
        return ""


def _place(row: Facts) -> tuple[int, int]:
    return row.get(NUMBER) or 0, row["finished_at"] or row["started_at"] or 0


def check_facts(row: Facts) -> tuple[CheckFacts, ...]:
    """The checks in the column `checks` of a run record; of a damaged one, that they cannot be read."""
    stage = row["stage"]
    try:
        return tuple(
            CheckFacts(stage, check.name, check.column, check.success, check.observed, check.expected)
            for check in checks_in(row)
        )
    except RecordDamagedError as error:
        return (CheckFacts(stage, DAMAGED, "checks", False, error.message, "the checks of the stage, as JSON"),)


def _stage(row: Facts, attempts: int) -> StageFacts:
    fields = ("rows_in", "rows_quarantined", "rows_out", "windows", "rows_inserted", "rows_updated", "rows_deleted")
    return StageFacts(
        stage=row["stage"],
        status=row["status"],
        seconds=row["seconds"],
        finished_at=_time(row["finished_at"]),
        error=row["error"],
        attempts=attempts,
        where=road_of(row),
        **{name: row[name] for name in fields},
    )


def _latest(rows: Sequence[Facts], name: str) -> Any:
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)
