"""The run's record and its quarantined rows, from Delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as sf

from pipelines.check import checks_of
from pipelines.delta.tables import Warehouse, exists
from pipelines.quality.quarantine import ADDED
from pipelines.quality.quarantine_counts import SET_APART
from pipelines.report.errors import RunNotFoundError
from pipelines.report.facts import (
    STAGES,
    CheckFacts,
    QuarantineFacts,
    ReasonFacts,
    RunFacts,
    SampleFacts,
    StageFacts,
)
from pipelines.runs.record import NUMBER, SCHEMA, pattern_records
from pipelines.spark.columns import column

REASONS_SHOWN = 12
SAMPLES_SHOWN = 8
TEXT_LIMIT = 200
"""Characters of a quarantined value that are shown; a longer one ends in an ellipsis."""

Facts = Mapping[str, Any]
"""A row of the run record, times in microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime, whatever the time zone of session and machine."""
    return _EPOCH + timedelta(microseconds=micros)


def read_run(spark: SparkSession, warehouse: Warehouse, pattern: str, run_id: str) -> RunFacts:
    """The facts of one run: of each stage the last attempt, of the versions and the interval the last one
    recorded.

    Raises RunNotFoundError when nothing was recorded under `run_id` for `pattern`.
    """
    rows = pattern_records(spark, warehouse, pattern, SCHEMA.fieldNames(), [run_id])
    if not rows:
        raise RunNotFoundError.of(run_id, pattern, warehouse.runs)
    return run_facts(rows)


def run_facts(rows: Iterable[Facts]) -> RunFacts:
    """Fold the rows of one run (times in microseconds) into its facts; later attempts win, stage by stage. Which one is
    later the numbers of the records say; records of earlier versions have none, and are in the order of their ends."""
    ordered = sorted(rows, key=_place)
    attempts: dict[str, list[Facts]] = {}
    for row in ordered:
        attempts.setdefault(row["stage"], []).append(row)
    names = [stage for stage in STAGES if stage in attempts] + [s for s in attempts if s not in STAGES]
    last = [attempts[name][-1] for name in names]
    started = [row["started_at"] for row in ordered if row["started_at"] is not None]
    finished = [row["finished_at"] for row in ordered if row["finished_at"] is not None]
    checks = [check for row in last for check in check_facts(row["stage"], row["checks"])]
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
    )


def _place(row: Facts) -> tuple[int, int]:
    return row.get(NUMBER) or 0, row["finished_at"] or row["started_at"] or 0


def check_facts(stage: str, checks: str | None) -> tuple[CheckFacts, ...]:
    """The checks in the column `checks` of the run record."""
    return tuple(
        CheckFacts(stage, check.name, check.column, check.success, check.observed, check.expected)
        for check in checks_of(checks)
    )


def read_quarantine(spark: SparkSession, warehouse: Warehouse, source: str, run: RunFacts) -> QuarantineFacts:
    """What this run set aside: how many rows, the most frequent rules and reasons, a sample row or more of each.

    The rows are those of the run's id and source version, whichever pattern's run of that id wrote them.
    """
    path = warehouse.quarantine(source)
    recorded = next((s.rows_quarantined for s in run.stages if s.rows_quarantined is not None), None)
    if recorded == 0 or not exists(spark, path):
        return QuarantineFacts(rows=recorded or 0)
    mine = spark.read.format("delta").load(path).where(sf.col("run_id") == run.run_id)
    if run.source_version is not None:
        mine = mine.where(sf.col("source_version") == run.source_version)
    everything = SqlWindow.partitionBy(sf.lit(1))
    by_reason = mine.groupBy("rule", "reason").agg(sf.count(sf.lit(1)).alias("n"))
    ranked = by_reason.withColumns(
        {"all_rows": sf.sum("n").over(everything), "all_reasons": sf.count(sf.lit(1)).over(everything)}
    )
    top = ranked.orderBy(sf.desc("n"), "rule", "reason").limit(REASONS_SHOWN).collect()
    if not top:
        return QuarantineFacts(rows=recorded or 0)
    stored = top[0]["all_rows"]
    reasons = tuple(ReasonFacts(_str(row["rule"]), _str(row["reason"]), row["n"]) for row in top)
    return QuarantineFacts(
        rows=stored if recorded is None else recorded,
        stored=stored,
        reasons=reasons,
        other_reasons=top[0]["all_reasons"] - len(reasons),
        other_rows=stored - sum(reason.rows for reason in reasons),
        samples=_samples(mine, [name for name in mine.columns if name not in ADDED]),
    )


def _samples(mine: DataFrame, names: list[str]) -> tuple[SampleFacts, ...]:
    """A few rows, the rules taking turns: the first of each rule before the second of any."""
    turn = sf.row_number().over(SqlWindow.partitionBy("rule").orderBy("reason", "quarantined_at"))
    shown = mine.select(
        "rule",
        "reason",
        turn.alias("turn"),
        *[sf.substring(column(name).cast("string"), 1, TEXT_LIMIT + 1).alias(f"v{i}") for i, name in enumerate(names)],
    )
    rows = shown.where(sf.col("turn") <= SAMPLES_SHOWN).orderBy("turn", "rule").limit(SAMPLES_SHOWN).collect()
    return tuple(
        SampleFacts(
            rule=_str(row["rule"]),
            reason=_str(row["reason"]),
            values=tuple((name, _short(row[f"v{i}"])) for i, name in enumerate(names) if row[f"v{i}"] is not None),
        )
        for row in rows
    )


def _stage(row: Facts, attempts: int) -> StageFacts:
    fields = (
        "rows_in",
        "rows_quarantined",
        "rows_out",
        "windows",
        "rows_inserted",
        "rows_updated",
        "rows_deleted",
    )
    return StageFacts(
        stage=row["stage"],
        status=row["status"],
        seconds=row["seconds"],
        finished_at=_time(row["finished_at"]),
        error=row["error"],
        attempts=attempts,
        **{name: row[name] for name in fields},
    )


def _latest(rows: Sequence[Facts], name: str) -> Any:
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else utc(micros)


def _str(value: str | None) -> str:
    return "" if value is None else str(value)


def _short(value: str) -> str:
    return value if len(value) <= TEXT_LIMIT else value[:TEXT_LIMIT] + "…"
