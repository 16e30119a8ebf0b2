"""The newest runs of patterns, from the run record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.report.facts import RunFacts
from trendlake.pipelines.report.read_run import run_facts
from trendlake.pipelines.report.verdict import Verdict, verdict
from trendlake.pipelines.runs.record import SCHEMA, pattern_records, run_ends
from trendlake.pipelines.site.facts import RunsFacts

STALE = "stale_rows"
"""The check that reports windows of an earlier form of the pattern, which a revision leaves alone."""
RUNS_SHOWN = 60
RUNS_JUDGED = 10
"""Of so many the verdicts on each check are read too."""


def read_runs(lake: Lake, patterns: Sequence[str]) -> dict[str, RunsFacts]:
    """The newest runs of each of `patterns`; none where nothing has been recorded. The run record is read three times,
    however many patterns there are."""
    ends = run_ends(lake, patterns)
    newest = {
        pattern: sorted(filter(None, mine), key=lambda run_id, mine=mine: (-mine[run_id], run_id))[:RUNS_SHOWN]  # type: ignore[misc]
        for pattern, mine in ends.items()
    }
    stages: dict[str, dict[str, list[dict[str, Any]]]] = {pattern: {} for pattern in patterns}
    others = [name for name in SCHEMA.fieldNames() if name != "checks"]
    for part, names in ((slice(RUNS_JUDGED), SCHEMA.fieldNames()), (slice(RUNS_JUDGED, None), others)):
        asked = {pattern: set(run_ids[part]) for pattern, run_ids in newest.items()}
        if run_ids := sorted(set().union(*asked.values())):
            for row in pattern_records(lake, patterns, names, run_ids):
                if row["run_id"] in asked[row["pattern"]]:
                    stages[row["pattern"]].setdefault(row["run_id"], []).append({"checks": None} | row)
    return {
        pattern: RunsFacts(
            tuple(run_facts(stages[pattern][run_id]) for run_id in run_ids),
            len(ends[pattern]),
            len(run_ids[:RUNS_JUDGED]),
        )
        for pattern, run_ids in newest.items()
    }


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
