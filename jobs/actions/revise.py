"""`trendlake revise`: updates published results to the newest version of their source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jobs.airflow.notify import notify_of_results
from jobs.terminal.json_output import of_record
from jobs.terminal.times import manual_run_id
from jobs.terminal.workspace import Place, changed, find_place, refresh_site, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def revise_pattern(
    pattern: str, run_id: str | None, profile: str | None, folder: Path | None, *, if_published: bool
) -> dict[str, Any]:  # fmt: skip
    """Revises a pattern in a Spark session of its own."""
    from pipelines.authoring.validate import check_pattern

    place = find_place(folder, profile)
    name = check_pattern(place.project, place.project.pattern_path(pattern)).name
    with session(place, f"trendlake revise {name}") as spark:
        document = revise_in_session(
            place, spark, pattern, run_id or manual_run_id("revise"), if_published=if_published
        )
    if document["changed"]:
        notify_of_results(place.project, name)
    return document


def revise_in_session(
    place: Place, spark: SparkSession, pattern: str, run_id: str, *, if_published: bool
) -> dict[str, Any]:  # fmt: skip
    """Updates a pattern's published windows to its source's newest version, prints the changes and updates the site.
    With `if_published`, a pattern without published results is no error."""
    from pipelines.results.ledger import read_ledger
    from pipelines.runs.run import prepare
    from pipelines.steps.revise import revise

    began = time.monotonic()
    run = prepare(spark, place.project, place.profile, pattern, run_id, 0, 1)
    ledger = read_ledger(spark, run.warehouse, run.name, run.plan, run.contract.name)
    shown = {segment.plan_hash for segment in ledger.segments}
    if if_published and run.plan.hash not in shown:
        typer.echo(f"{'revise':<14} nothing is published that could be revised")
        return {"pattern": run.name, "run_id": run_id, "changed": False, "revision": None, "site": None}
    record = revise(run)
    seconds = time.monotonic() - began
    for item in record.checks:
        if item["check"] in ("revision", "stale_rows", "stale_versions"):
            typer.echo(f"{item['check'].replace('_', ' '):<14} {item['observed']}")
        elif item["check"] == "set_apart":
            if item["success"] is False:
                see = f"trendlake quarantine show {record.source}"
                typer.echo(f"{'set apart':<14} {item['observed']}: {see}")
        elif item["success"] is False:
            typer.echo(f"{'':<14} {item['check']}: {item['observed']}")
    changes = f"{record.rows_inserted:,} inserted, {record.rows_updated:,} updated, {record.rows_deleted:,} retracted"
    done = (
        f"version {record.results_version}: {changes}"
        if changed(record)
        else f"nothing to change, version {record.results_version} stays"
    )
    typer.echo(f"{'revise':<14} {done:<70} {seconds:6.1f} s")
    # Also where nothing has changed: the results are known to be as new as the source, and an attempt before this one
    # may have published and not come to the site.
    page = refresh_site(place, spark, place.project.pattern_path(pattern))
    about = {"pattern": run.name, "run_id": run_id, "changed": changed(record)}
    return {**about, "revision": of_record(record), "site": page}
