"""The runs that Airflow starts by a pattern's schedule: which intervals they have published.

A pattern that moves into a batch, or out of it, has another DAG from then on, which may start with an interval that the
DAG before has run. Airflow names the runs of one interval alike in both; Trendlake puts the batch's name before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendlake.pipelines.runs.record import pattern_records
from trendlake.pipelines.runs.run import Run

SCHEDULED = "scheduled__"
"""How Airflow's ids of such runs begin."""
COLUMNS = ("run_id", "stage", "status", "interval_from", "interval_to", "plan_hash")


@dataclass(frozen=True)
class Scheduled:
    """The publications of a pattern by other scheduled runs: `run_id`, the run of the same interval in another DAG,
    None if there is none; `until`, the end of the last interval before, microseconds, None if there is none."""

    run_id: str | None = None
    until: int | None = None


def published_by_schedule(run: Run) -> Scheduled:
    """For a run that Airflow has started by schedule; of any other run nothing is said. A run that has published its
    interval itself does so again, because its task was cleared."""
    name = _name(run.run_id)
    if name is None:
        return Scheduled()
    names = list(dict.fromkeys((run.name, run.warehouse.table_of(run.name))))  # also from before it was renamed
    published = [
        row
        for row in pattern_records(run.lake, names, COLUMNS)
        if (row["stage"], row["status"]) == ("publish", "succeeded") and _name(row["run_id"] or "") is not None
    ]
    interval = (run.start_us, run.end_us, run.plan.hash)
    mine = any(row["run_id"] == run.run_id for row in published)
    others = [
        str(row["run_id"])
        for row in published
        if _name(row["run_id"]) == name and (row["interval_from"], row["interval_to"], row["plan_hash"]) == interval
    ]
    before = [row["interval_to"] for row in published if (row["interval_to"] or run.end_us) <= run.start_us]
    return Scheduled(None if mine or not others else others[0], max(before, default=None))


def _name(run_id: str) -> str | None:
    """The id of a scheduled run in Airflow, the same in every DAG."""
    at = run_id.find(SCHEDULED)
    return None if at < 0 else run_id[at:]
