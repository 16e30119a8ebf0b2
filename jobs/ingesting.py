"""The sources that can be ingested, and how each is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cep_core.errors import did_you_mean
from jobs.as_json import of_record
from jobs.new_version import tell_of
from jobs.running import find_place, session
from jobs.times import manual_run_id
from pipelines.errors import ProjectError

SOURCES = ("flights",)
"""Sources that bring their own data."""


def ingest_files(source: str, files: list[Path], profile: str | None, project_dir: Path | None) -> dict[str, Any]:
    """Bring files into the table of `source`, one delivery each; a file that is there already is passed over.

    Raises SourceFileError before anything is written.
    """
    place = find_place(project_dir, profile)

    from pipelines.contract import load_contract
    from pipelines.ingest import ingest
    from pipelines.sources.files import feed_of, read_file

    contract = load_contract(place.project.contract_path(source))
    tables = [(path, read_file(path, contract, others=False)) for path in files]
    records = []
    new = 0
    with session(place, f"trendlake ingest {source}") as spark:
        for path, table in tables:
            record = ingest(
                spark, place.warehouse, contract, [table], feed=feed_of(path), run_id=manual_run_id("ingest"),
            )  # fmt: skip
            records.append({"file": path, **of_record(record)})
            new += record.rows_inserted or 0
            told = "" if record.rows_inserted else "  (there already)"
            typer.echo(f"  {path}  {table.num_rows:,} rows{told}")
    typer.echo(f"{source}: {record.rows_out:,} rows in the table, version {record.source_version}")
    if new:
        tell_of(place.project, source)
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records}


def ingest_source(source: str, profile: str | None, project_dir: Path | None) -> dict[str, Any]:
    """Bring every delivery of `source` into its table, with a line for each."""
    if source not in SOURCES:
        raise ProjectError(f"there is no source '{source}' to ingest", hint=did_you_mean(source, SOURCES))
    place = find_place(project_dir, profile)

    from pipelines.contract import load_contract
    from pipelines.sources import flights

    contract = load_contract(place.project.contract_path(source))
    table = flights.read_flights(flights.data_file())
    deliveries = list(flights.deliveries(table))
    typer.echo(f"{source}: {table.num_rows:,} rows in {len(deliveries)} deliveries")

    def progress(number: int, rows: int, new: bool) -> None:
        typer.echo(f"  delivery {number:>2}/{len(deliveries)}  {rows:>7,} rows{'' if new else '  (there already)'}")

    from pipelines.ingest import ingest

    with session(place, f"trendlake ingest {source}") as spark:
        record = ingest(
            spark, place.warehouse, contract, deliveries, feed=flights.FEED, run_id=manual_run_id("ingest"),
            progress=progress,
        )  # fmt: skip
    typer.echo(
        f"{source}: {record.rows_out:,} rows in the table, {record.rows_inserted:,} of them new, "
        f"version {record.source_version}"
    )
    if record.rows_inserted:
        tell_of(place.project, source)
    records = [{"file": None, **of_record(record)}]
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records}
