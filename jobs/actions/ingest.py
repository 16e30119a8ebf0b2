"""`trendlake ingest`: loads files, or the data that a source brings, into the source's table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.jobs.actions.revise import patterns_of
from trendlake.jobs.airflow.notify import notify_of_source
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.times import manual_run_id
from trendlake.jobs.terminal.workspace import find_place, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import find_project

if TYPE_CHECKING:
    from trendlake.jobs.terminal.workspace import Place
    from trendlake.pipelines.contracts.contract import Contract
    from trendlake.pipelines.ingest.deliver import Taken

SOURCES = ("flights",)
"""Sources whose data comes with a package."""


def ingest_files(
    source: str, files: list[Path], profile: str | None, project_dir: Path | None, *, again: bool, whole: bool
) -> dict[str, Any]:
    """Ingests files into the table of `source`, one delivery each. A file that was ingested before is skipped; with
    `again` its rows are compared like those of any other. `whole`: all files together are the rows of a reference
    table, in place of those that it has.

    Raises SourceFileError before anything is written, and DeliveryError for a file that is refused, after the files
    before it have been written.
    """
    place = find_place(project_dir, profile, writes=True)

    import pyarrow as pa

    from trendlake.pipelines.contracts.contract import load_contract
    from trendlake.pipelines.ingest.deliver import ingest
    from trendlake.pipelines.ingest.readers.files import feed_of, read_file
    from trendlake.pipelines.ingest.readers.xml_names import is_xml
    from trendlake.pipelines.lake.road import Roads

    contract = load_contract(place.project.contract_path(source))
    if any(map(is_xml, files)) and not whole:
        return _ingest_documents(source, files, place, contract, again=again)
    tables = [(path, read_file(path, contract, others=False), feed_of(path)) for path in files]
    if whole:
        together = ", ".join(map(str, files))
        tables = [(Path(together), pa.concat_tables([rows for _, rows, _ in tables]), feed_of(*files))]
    roads = Roads(place.profile.limits)
    records: list[dict[str, Any]] = []
    outcomes: list[Taken] = []
    with session(place, f"trendlake ingest {source}", writes=True) as lake:
        for path, table, feed in tables:
            record = ingest(
                lake,
                contract,
                [table],
                feed=feed,
                run_id=manual_run_id("ingest"),
                again=again,
                whole=whole,
                progress=lambda _, taken: outcomes.append(taken),
                roads=roads,
            )
            records.append({"file": path, **of_record(record), **_counts(outcomes[-1])})
            say(f"  {path}  {describe(outcomes[-1])}")
    stops = _consequences(place, contract, outcomes)
    say(f"{source}: {plural(record.rows_out or 0, 'row')} in the table, version {record.source_version}")
    if any(taken.new or taken.replaced for taken in outcomes):
        notify_of_source(place.project, source)
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records, **stops}


def _ingest_documents(
    source: str, paths: list[Path], place: Place, contract: Contract, *, again: bool
) -> dict[str, Any]:
    """Ingests XML files, and folders of them. Files that cannot be read are named, and the others ingested; then raises
    SourceFileError."""
    from trendlake.pipelines.ingest.deliver import Taken, ingest
    from trendlake.pipelines.ingest.documents import DocumentFiles
    from trendlake.pipelines.lake.road import Roads

    all_files = [DocumentFiles(path, contract) for path in paths]
    for files in all_files:
        files.check()
    records: list[dict[str, Any]] = []
    outcomes: list[Taken] = []
    with session(place, f"trendlake ingest {source}", writes=True) as lake:
        for files in all_files:
            mine: list[Taken] = []

            def progress(number: int, taken: Taken, mine: list[Taken] = mine) -> None:
                mine.append(taken)
                say(f"  delivery {number}  {describe(taken)}")

            record = ingest(
                lake,
                contract,
                files.deliveries(),
                feed=files.feed,
                run_id=manual_run_id("ingest"),
                again=again,
                progress=progress,
                roads=Roads(place.profile.limits),
            )
            whole = sum(mine, Taken(0))
            records.append({"file": files.path, **of_record(record), **_counts(whole)})
            count = plural(len(files.files) - len(files.refused), "file")
            say(f"  {files.path}, {count}  {describe(whole)}")
            for error in files.refused:
                say(f"  not ingested: {error.message}")
            outcomes.append(whole)
    stops = _consequences(place, contract, outcomes)
    say(f"{source}: {plural(record.rows_out or 0, 'row')} in the table, version {record.source_version}")
    if any(taken.new or taken.replaced for taken in outcomes):
        notify_of_source(place.project, source)
    for files in all_files:
        files.raise_refused()
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records, **stops}


def describe(taken: Taken) -> str:
    """The outcome of a delivery: `3,049 rows: 50 new, 2,999 there already`."""
    rows = plural(taken.rows, "row")
    if taken.again:
        return f"{rows}  (there already: this delivery has been ingested before)"
    counts = {
        "new" if taken.in_place_of is None else f"in place of {taken.in_place_of:,}": taken.new,
        "replaced": taken.replaced,
        "there already": taken.there,
        "older than the existing row": taken.older,
    }
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "nothing new"
    return f"{rows}: {said}{f'; {taken.broken}' if taken.broken.rows else ''}"


def _counts(taken: Taken) -> dict[str, Any]:
    return {
        "there": taken.there,
        "older": taken.older,
        "broken": dict(taken.broken.rules),
        "ingested_before": taken.again,
    }


def _consequences(place: Place, contract: Contract, outcomes: list[Taken]) -> dict[str, Any]:
    """Prints what rows of these deliveries that break the contract will stop; the same for the document: the patterns
    that read the source, those of them that are certain to stop, and the contract's tolerance."""
    source, lost = contract.name, sum(taken.broken.lost for taken in outcomes)
    readers = patterns_of(place, source)
    stops = readers if lost and not contract.tolerance else []
    if any(taken.broken.rows for taken in outcomes):
        say(f"  rows that break the contract: `{command(f'quarantine show {source}')}`")
    if lost and readers:
        say(f"  {stopped_in_words(readers, lost, contract.tolerance)}: {', '.join(readers)}")
    return {"readers": readers, "stops": stops, "tolerance": contract.tolerance}


def stopped_in_words(readers: list[str], lost: int, tolerance: float) -> str:
    """The effect of `lost` broken rows of a source on the patterns that read it."""
    of = f"runs and revisions of {plural(len(readers), 'pattern')}"
    if tolerance:
        return f"{of} will stop where more than {tolerance:.2%} of the rows that they read break the contract"
    rows, are = ("this row", "it is") if lost == 1 else ("these rows", "they are")
    return f"{of} will stop where they read {rows}, until {are} repaired (tolerance 0)"


def ingest_source(source: str, profile: str | None, project_dir: Path | None) -> dict[str, Any]:
    """Ingests every delivery of `source` and prints a line for each."""
    if source not in SOURCES:
        find_project(project_dir).contract_path(source)  # raises with a suggestion
        raise ProjectError(f"'{source}' is read from files: name one or more", hint=f"`trendlake ingest {source} FILE`")
    place = find_place(project_dir, profile, writes=True)

    from trendlake.pipelines.contracts.contract import load_contract
    from trendlake.pipelines.ingest import flights

    contract = load_contract(place.project.contract_path(source))
    table = flights.read_flights(flights.data_file())
    deliveries = list(flights.deliveries(table))
    say(f"{source}: {plural(table.num_rows, 'row')} in {len(deliveries)} deliveries")

    outcomes: list[Taken] = []

    def progress(number: int, taken: Taken) -> None:
        outcomes.append(taken)
        say(f"  delivery {number:>2}/{len(deliveries)}  {describe(taken)}")

    from trendlake.pipelines.ingest.deliver import ingest
    from trendlake.pipelines.lake.road import Roads

    with session(place, f"trendlake ingest {source}", writes=True) as lake:
        record = ingest(
            lake,
            contract,
            deliveries,
            feed=flights.FEED,
            run_id=manual_run_id("ingest"),
            progress=progress,
            roads=Roads(place.profile.limits),
        )
    stops = _consequences(place, contract, outcomes)
    say(
        f"{source}: {plural(record.rows_out or 0, 'row')} in the table, {record.rows_inserted:,} of them new, "
        f"version {record.source_version}"
    )
    if record.rows_inserted:
        notify_of_source(place.project, source)
    records = [{"file": None, **of_record(record)}]
    return {"source": source, "version": record.source_version, "rows": record.rows_out, "ingested": records, **stops}
