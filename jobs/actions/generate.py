"""`trendlake generate`: writes a synthetic stream into its source's table or a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trendlake.cep_core.errors import did_you_mean
from trendlake.jobs.airflow.notify import notify_of_source
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.times import manual_run_id, micros_of
from trendlake.jobs.terminal.workspace import find_place, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import BadNumberError, ProjectError
from trendlake.pipelines.generate import START_US, STREAMS
from trendlake.pipelines.generate.load import Asked, deliveries, write_file

SECONDS = 600.0
"""Length of a stream by default."""
LARGEST = 200_000_000
"""Upper limit of events, because a stream is generated in memory."""


def stream_of(
    name: str, events: int | None, seconds: float | None, rate: float | None, seed: int, start: str | None
) -> Asked:
    """The stream that the options describe. Raises ProjectError, BadNumberError, BadTimeError."""
    if name not in STREAMS:
        raise ProjectError(f"there is no stream '{name}' to generate", hint=did_you_mean(name, list(STREAMS)))
    stream = STREAMS[name]
    pace = stream.rate if rate is None else rate
    if not 0 < pace < 1e9:
        raise BadNumberError(f"--rate is events a second, more than 0, not {pace:g}")
    if events is not None and seconds is not None:
        raise BadNumberError("--events and --seconds both give the length", hint="give one of them, and --rate")
    if seconds is not None and not 0 < seconds <= 1e9:
        raise BadNumberError(f"--seconds is more than 0 and at most 30 years, not {seconds:g}")
    count = stream.events(SECONDS if seconds is None else seconds, pace) if events is None else events
    if not 1 <= count <= LARGEST:
        raise BadNumberError(f"{count:,} events: a stream is generated in memory and has 1 to {LARGEST:,}")
    if count / pace > 1e9:
        raise BadNumberError(f"{count:,} events at {pace:g} a second are more than 30 years")
    return Asked(stream, count, pace, seed, START_US if start is None else micros_of(start, "--start"))


def generate_file(stream: Asked, out: Path) -> dict[str, Any]:
    """Writes the stream as a Parquet file, without Spark. Raises ProjectError if it cannot be written."""
    try:
        write_file(stream.table(), out)
    except OSError as error:
        raise ProjectError(f"{out} cannot be written: {error.strerror or error}") from None
    say(f"{stream.stream.name}: {plural(stream.events, 'event')} in {out}")
    return {**_document(stream), "file": out}


def generate_source(stream: Asked, profile: str | None, project_dir: Path | None) -> dict[str, Any]:
    """Ingests the stream into its source's table, as `trendlake ingest` does with files; ingesting it again changes
    nothing. Raises ProjectError if the table holds another stream."""
    name = stream.stream.name
    place = find_place(project_dir, profile, writes=True)

    from trendlake.pipelines.contracts.contract import load_contract
    from trendlake.pipelines.ingest.deliver import feeds, ingest
    from trendlake.pipelines.lake.road import Roads

    contract = load_contract(place.project.contract_path(name))
    table = stream.table()
    say(f"{name}: {plural(table.num_rows, 'event')}, seed {stream.seed}, {stream.rate:g} a second")
    with session(place, f"trendlake generate {name}", writes=True) as lake:
        others = feeds(lake, place.warehouse.source(name)) - {stream.feed}
        if others:
            raise ProjectError(
                f"the source {name} holds another stream already ({min(others)})",
                hint=f"their ids would clash: remove {place.warehouse.source(name)}, or give another --profile",
            )
        record = ingest(
            lake,
            contract,
            deliveries(table),
            feed=stream.feed,
            run_id=manual_run_id("generate"),
            roads=Roads(place.profile.limits),
        )
    say(
        f"{name}: {plural(record.rows_out or 0, 'row')} in the table, {record.rows_inserted:,} of them new, "
        f"version {record.source_version}"
    )
    if record.rows_inserted:
        notify_of_source(place.project, name)
    about = {"source": name, "version": record.source_version, "rows": record.rows_out}
    return {**_document(stream), **about, "ingested": [{"file": None, **of_record(record)}]}


def _document(stream: Asked) -> dict[str, Any]:
    about = {"stream": stream.stream.name, "events": stream.events, "rate": stream.rate, "seed": stream.seed}
    return {**about, "start": datetime.fromtimestamp(0, UTC) + timedelta(microseconds=stream.start_us)}
