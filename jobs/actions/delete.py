"""`trendlake source delete`: deletes rows of a source after a question, and prints what to revise."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import typer

from trendlake.jobs.actions.revise import next_revision, patterns_of
from trendlake.jobs.airflow.notify import notify_of_source
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.times import manual_run_id
from trendlake.jobs.terminal.waiting import asking
from trendlake.jobs.terminal.workspace import find_place, refresh_source_page, session


def delete(
    source: str,
    ids: Path | None,
    where: str | None,
    profile: str | None,
    folder: Path | None,
    *,
    dry_run: bool,
    yes: bool,
) -> dict[str, Any]:
    """Deletes rows in one commit after the user has confirmed. Raises as `pipelines.ingest.delete`."""
    from trendlake.pipelines.authoring.advice import notes_on
    from trendlake.pipelines.contracts.contract import load_contract
    from trendlake.pipelines.ingest.delete import delete_rows, find_rows, keys_in, rows_where

    place = find_place(folder, profile, writes=not dry_run)
    contract = load_contract(place.project.contract_path(source))
    place.warehouse.refuse_foreign(source)
    if ids is not None:
        selection = keys_in(ids, contract)
    with session(place, f"trendlake source delete {source}", writes=not dry_run) as lake:
        if ids is None:
            selection = rows_where(str(where), contract)
            for note in notes_on(place.project, source, selection.advice):
                say(f"note: {note}")
        affected = find_rows(lake, contract, selection)
        if affected.absent:
            say(f"{source}: not in the table: {affected.absent}")
        say(f"{source} at version {affected.version}: {_rows(affected.rows)} would be deleted")
        run_id, patterns = manual_run_id("delete"), patterns_of(place, source)
        about: dict[str, Any] = {"source": source, "run_id": run_id, "to_revise": patterns, "dry_run": dry_run}
        if dry_run or not affected.rows:
            return about | dataclasses.asdict(affected) | {"rows": 0, "selected": affected.rows}
        if not yes:
            with asking():
                typer.confirm(f"delete {_rows(affected.rows)} of {source}?", abort=True, err=True)
        done = delete_rows(lake, contract, selection, run_id)
        refresh_source_page(place, lake, source)
    say(f"{source} at version {done.version}: {_rows(done.rows)} deleted")
    if not (done.rows and notify_of_source(place.project, source)):
        for line in next_revision(source, patterns) if done.rows else ():
            say(line)
    return about | dataclasses.asdict(done) | {"selected": affected.rows}


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
