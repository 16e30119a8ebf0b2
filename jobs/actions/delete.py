"""Rows of a source deleted, for the command line: how many, asked for, and what to revise then."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import typer

from jobs.actions.quarantine import patterns_of
from jobs.airflow.notify import tell_of
from jobs.terminal.times import manual_run_id
from jobs.terminal.workspace import find_place, session


def delete(
    source: str, ids: Path | None, where: str | None, profile: str | None, folder: Path | None, *,
    dry_run: bool, yes: bool,
) -> dict[str, Any]:  # fmt: skip
    """Delete rows in one commit, once the user has agreed. Raises as `pipelines.ingest.delete`."""
    from pipelines.contracts.contract import load_contract
    from pipelines.ingest.delete import delete_rows, find_rows, keys_in, rows_where

    place = find_place(folder, profile)
    contract = load_contract(place.project.contract_path(source))
    place.warehouse.refuse_foreign(source)
    if ids is not None:
        selection = keys_in(ids, contract)
    with session(place, f"trendlake source delete {source}") as spark:
        if ids is None:
            selection = rows_where(str(where), contract)
        found = find_rows(spark, place.warehouse, contract, selection)
        if found.absent:
            typer.echo(f"{source}: not in the table: {found.absent}")
        typer.echo(f"{source} at version {found.version}: {_rows(found.rows)} would be deleted")
        run_id, patterns = manual_run_id("delete"), patterns_of(place, source)
        about: dict[str, Any] = {"source": source, "run_id": run_id, "to_revise": patterns, "dry_run": dry_run}
        if dry_run or not found.rows:
            return about | dataclasses.asdict(found) | {"rows": 0, "selected": found.rows}
        if not yes:
            typer.confirm(f"delete {_rows(found.rows)} of {source}?", abort=True, err=True)
        done = delete_rows(spark, place.warehouse, contract, selection, run_id)
    typer.echo(f"{source} at version {done.version}: {_rows(done.rows)} deleted")
    if not (done.rows and tell_of(place.project, source)):
        for name in patterns if done.rows else ():
            typer.echo(f"next: trendlake revise {name}")
    return about | dataclasses.asdict(done) | {"selected": found.rows}


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
