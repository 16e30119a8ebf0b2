"""Revising for the command line."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from jobs.new_version import tell_of_results
from jobs.running import changed, find_place, session
from jobs.times import manual_run_id


def revise_pattern(
    pattern: str, run_id: str | None, profile: str | None, folder: Path | None, *, if_published: bool
) -> None:  # fmt: skip
    """Bring a pattern's published windows to its source's newest version, and say what that changed. With
    `if_published`, none published is no mistake."""
    from pipelines.revision.ledger import read_ledger
    from pipelines.steps.revise import revise
    from pipelines.steps.run import prepare
    from pipelines.validate import check_pattern

    place = find_place(folder, profile)
    name = check_pattern(place.project, place.project.pattern_path(pattern)).name
    with session(place, f"trendlake revise {name}") as spark:
        began = time.monotonic()
        run = prepare(spark, place.project, place.profile, pattern, run_id or manual_run_id("revise"), 0, 1)
        shown = {segment.plan_hash for segment in read_ledger(spark, run.warehouse, run.name, run.plan).segments}
        if if_published and run.plan.hash not in shown:
            typer.echo(f"{'revise':<14} nothing is published that could be revised")
            return
        record = revise(run)
        seconds = time.monotonic() - began
        for item in record.checks:
            if item["check"] in ("revision", "stale_rows"):
                typer.echo(f"{item['check'].replace('_', ' '):<14} {item['observed']}")
        changes = (
            f"{record.rows_inserted:,} inserted, {record.rows_updated:,} updated, {record.rows_deleted:,} retracted"
        )
        done = (
            f"version {record.results_version}: {changes}"
            if changed(record)
            else f"nothing to change, version {record.results_version} stays"
        )
        typer.echo(f"{'revise':<14} {done:<70} {seconds:6.1f} s")
    if changed(record):
        tell_of_results(place.project, name)
