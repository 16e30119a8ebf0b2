"""The sources that can be ingested, and how each is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cep_core.errors import did_you_mean
from jobs.airflow.notify import tell_of
from jobs.terminal.json_output import of_record
from jobs.terminal.times import manual_run_id
from jobs.terminal.workspace import find_place, session
from pipelines.error_text import plural
from pipelines.errors import ProjectError

if TYPE_CHECKING:
    from pipelines.ingest.deliver import Taken

SOURCES = ("flights",)
"""Sources that bring their own data."""


def ingest_files(
    source: str, files: list[Path], profile: str | None, project_dir: Path | None, *, again: bool
) -> dict[str, Any]:  # fmt: skip
    """Bring files into the table of `source`, one delivery each; a file that is there already is passed over, or, with
    `again`, compared like any other.

    Raises SourceFileError before anything is written, DeliveryError for a file that may not be taken: those before it
    are.
    """
    place = find_place(project_dir, profile)

    from pipelines.contracts.contract import load_contract
    from pipelines.ingest.deliver import ingest
    from pipelines.ingest.readers.files import feed_of, read_file

    contract = load_contract(place.project.contract_path(source))
    tables = [(path, read_file(path, contract, others=False)) for path in files]
    records: list[dict[str, Any]] = []
    told: list[Taken] = []
    with session(place, f"trendlake ingest {source}") as spark:
        for path, table in tables:
            record = ingest(
                spark, place.warehouse, contract, [table], feed=feed_of(path), run_id=manual_run_id("ingest"),
                again=again, progress=lambda _, taken: told.append(taken),
            )  # fmt: skip
            records.append({"file": path, **of_record(record), **_counts(told[-1])})
            typer.echo(f"  {path}  {in_words(told[-1])}")
    _next(source, told)
    typer.echo(f"{source}: {plural(record.rows_out or 0, 'row')} in the table, version {record.source_version}")
    if any(taken.new or taken.replaced for taken in told):
        tell_of(place.project, source)
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records}


def in_words(taken: Taken) -> str:
    """What became of a delivery: `3,049 rows: 50 new, 2,999 there already`."""
    rows = plural(taken.rows, "row")
    if taken.again:
        return f"{rows}  (there already: this delivery has been ingested before)"
    counts = {
        "new": taken.new, "replaced": taken.replaced, "there already": taken.there,
        "older than the row that is there": taken.older,
    }  # fmt: skip
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "nothing new"
    return f"{rows}: {said}{f'; {taken.broken}' if taken.broken.rows else ''}"


def _counts(taken: Taken) -> dict[str, Any]:
    return {
        "there": taken.there,
        "older": taken.older,
        "broken": dict(taken.broken.rules),
        "ingested_before": taken.again,
    }


def _next(source: str, told: list[Taken]) -> None:
    if any(taken.broken.rows for taken in told):
        typer.echo(f"  rows that break the contract: trendlake quarantine show {source}")


def ingest_source(source: str, profile: str | None, project_dir: Path | None) -> dict[str, Any]:
    """Bring every delivery of `source` into its table, with a line for each."""
    if source not in SOURCES:
        raise ProjectError(f"there is no source '{source}' to ingest", hint=did_you_mean(source, SOURCES))
    place = find_place(project_dir, profile)

    from pipelines.contracts.contract import load_contract
    from pipelines.ingest import flights

    contract = load_contract(place.project.contract_path(source))
    table = flights.read_flights(flights.data_file())
    deliveries = list(flights.deliveries(table))
    typer.echo(f"{source}: {plural(table.num_rows, 'row')} in {len(deliveries)} deliveries")

    told: list[Taken] = []

    def progress(number: int, taken: Taken) -> None:
        told.append(taken)
        typer.echo(f"  delivery {number:>2}/{len(deliveries)}  {in_words(taken)}")

    from pipelines.ingest.deliver import ingest

    with session(place, f"trendlake ingest {source}") as spark:
        record = ingest(
            spark, place.warehouse, contract, deliveries, feed=flights.FEED, run_id=manual_run_id("ingest"),
            progress=progress,
        )  # fmt: skip
    _next(source, told)
    typer.echo(
        f"{source}: {plural(record.rows_out or 0, 'row')} in the table, {record.rows_inserted:,} of them new, "
        f"version {record.source_version}"
    )
    if record.rows_inserted:
        tell_of(place.project, source)
    records = [{"file": None, **of_record(record)}]
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records}
