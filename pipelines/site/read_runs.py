"""The newest runs of a pattern, from the run record."""

from __future__ import annotations

from collections import defaultdict

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipelines.delta.tables import Warehouse, exists
from pipelines.error_text import plural
from pipelines.report.facts import RunFacts
from pipelines.report.read_run import run_facts
from pipelines.report.verdict import Verdict, verdict
from pipelines.runs.record import SCHEMA
from pipelines.site.facts import RunsFacts

STALE = "stale_rows"
"""The check that tells of windows of an earlier form of the pattern, which a revision leaves alone."""
RUNS_SHOWN = 60
RUNS_JUDGED = 10
"""Of so many the verdicts on each check are read too."""
_TIMES = ("interval_from", "interval_to", "started_at", "finished_at")


def read_runs(spark: SparkSession, warehouse: Warehouse, name: str) -> RunsFacts:
    """The newest runs of the pattern `name`; none where nothing has been recorded."""
    if not exists(spark, warehouse.runs):
        return RunsFacts((), 0, 0)
    mine = spark.read.format("delta").load(warehouse.runs).where(sf.col("pattern") == name)
    by_run = mine.groupBy("run_id").agg(sf.max("finished_at").alias("last"))
    total = by_run.count()
    newest = [row["run_id"] for row in by_run.orderBy(sf.desc("last"), "run_id").limit(RUNS_SHOWN).collect()]
    judged = sf.col("run_id").isin(newest[:RUNS_JUDGED])
    rows = (
        mine.where(sf.col("run_id").isin(newest))
        .select(*[item for item in SCHEMA.fieldNames() if item in mine.columns])
        .withColumns({item: sf.unix_micros(item) for item in _TIMES})
        .withColumn("checks", sf.when(judged, sf.col("checks")))
        .collect()
    )
    stages = defaultdict(list)
    for row in rows:
        stages[row["run_id"]].append(row)
    return RunsFacts(tuple(run_facts(stages[run_id]) for run_id in newest), total, len(newest[:RUNS_JUDGED]))


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
