"""`trendlake run-steps`: some steps of a run in one Spark application, for an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trendlake.jobs.airflow.progress import end_with_task, write_step
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.lines import say
from trendlake.pipelines.errors import StepOrderError

STEPS = ("check_source", "compute", "check_results", "publish", "report")


def run_steps(
    pattern: str,
    since: str,
    until: str,
    run_id: str,
    steps: str,
    progress: Path | None,
    profile: str | None,
    folder: Path | None,
) -> dict[str, Any]:
    """Runs `steps` (names, separated by commas) of a run in their order and notes each in the file `progress`. Raises
    what the first step raises that fails; those before it are done."""
    names = in_order(steps)
    if progress is not None:
        end_with_task(progress)
    place = workspace.find_place(folder, profile, writes=True)
    from trendlake.pipelines.runs.scheduled import published_by_schedule

    name = workspace.check_early(place, pattern, (since, until))
    about: dict[str, Any] = {"pattern": name, "run_id": run_id, "stages": []}
    with workspace.session(place, f"trendlake {name}", judges=True, writes=True) as lake:
        run = workspace.prepared(place, lake, pattern, (since, until), run_id)
        earlier = published_by_schedule(run).run_id if names[0] == STEPS[0] else None
        if earlier is not None:
            names = _skipped(names, earlier, progress)
        for step in names:
            if step == "report":
                about |= workspace.report(place, lake, pattern, run_id)
                line = str(about["report"])
            else:
                record = workspace.run_step(step, run)
                about["stages"].append(of_record(record))
                line = workspace.summary(record)
            if progress is not None:
                write_step(progress, step, line)
    return about


def _skipped(steps: Sequence[str], run_id: str, progress: Path | None) -> Sequence[str]:
    """No step is left: another DAG, of a batch that the pattern was in, has published the interval."""
    line = f"skipped: run {run_id} has published this interval"
    say(line)
    for step in steps:
        if progress is not None:
            write_step(progress, step, line)
    return ()


def in_order(text: str) -> Sequence[str]:
    """The steps that `--steps` names. Raises StepOrderError unless they are neighbours in their order."""
    names = tuple(name.strip().replace("-", "_") for name in text.split(","))
    first = STEPS.index(names[0]) if names[0] in STEPS else 0
    if names != STEPS[first : first + len(names)]:
        raise StepOrderError(f"--steps {text}: expected neighbours of {', '.join(STEPS)}")
    return names
