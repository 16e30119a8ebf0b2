"""The newest runs of a pattern, from the run record."""

from __future__ import annotations

from collections import defaultdict

from pyspark.sql import SparkSession

from pipelines.delta.tables import Warehouse
from pipelines.error_text import plural
from pipelines.report.facts import RunFacts
from pipelines.report.read_run import run_facts
from pipelines.report.verdict import Verdict, verdict
from pipelines.runs.record import SCHEMA, pattern_records
from pipelines.site.facts import RunsFacts

STALE = "stale_rows"
"""The check that tells of windows of an earlier form of the pattern, which a revision leaves alone."""
RUNS_SHOWN = 60
RUNS_JUDGED = 10
"""Of so many the verdicts on each check are read too."""


def read_runs(spark: SparkSession, warehouse: Warehouse, name: str) -> RunsFacts:
    """The newest runs of the pattern `name`; none where nothing has been recorded."""
    ends: dict[str, int] = {}
    for row in pattern_records(spark, warehouse, name, ("run_id", "finished_at")):
        ends[row["run_id"]] = max(ends.get(row["run_id"], 0), row["finished_at"] or 0)
    newest = sorted(ends, key=lambda run_id: (-ends[run_id], run_id))[:RUNS_SHOWN]
    judged, others = newest[:RUNS_JUDGED], newest[RUNS_JUDGED:]
    names = [item for item in SCHEMA.fieldNames() if item != "checks"]
    rows = pattern_records(spark, warehouse, name, SCHEMA.fieldNames(), judged) if judged else []
    rows += [row | {"checks": None} for row in pattern_records(spark, warehouse, name, names, others)] if others else []
    stages = defaultdict(list)
    for row in rows:
        stages[row["run_id"]].append(row)
    return RunsFacts(tuple(run_facts(stages[run_id]) for run_id in newest), len(ends), len(judged))


def verdict_of(run: RunFacts) -> Verdict:
    """As the run's own page says it; a revision has one stage, and needs no other."""
    revision = run.stage("revise")
    if revision is None or len(run.stages) > 1:
        quarantined = next((s.rows_quarantined for s in run.stages if s.rows_quarantined is not None), 0)
        return verdict(run, quarantined)
    if revision.status != "succeeded":
        return Verdict("bad", "Failed: revise", revision.error or "No reason was recorded.")
    said = next((check.observed for check in run.checks if check.check == "revision"), "")
    warnings = [check for check in run.checks if check.success is False and check.check != STALE]
    if warnings:
        return Verdict("warn", "Revised with warnings", f"{plural(len(warnings), 'check')} gave a warning. {said}")
    changed = any((revision.rows_inserted, revision.rows_updated, revision.rows_deleted))
    return Verdict("good", "Revised" if changed else "Nothing to change", said)
