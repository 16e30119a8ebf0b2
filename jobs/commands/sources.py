"""Options of the commands that bring a project its sources: a folder, contracts, events."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal.options import Json, ProfileName, ProjectDir, Source
from trendlake.jobs.terminal.outcome import guarded


class NewKind(StrEnum):
    """The kinds of a first pattern."""

    TRENDS = "trends"
    MATCH_RECOGNIZE = "match_recognize"


class Like(StrEnum):
    """The templates of `pipelines.authoring.templates`."""

    STREAK = "streak"
    FUNNEL = "funnel"
    ABSENCE = "absence"
    DROP_AND_RECOVERY = "drop-and-recovery"
    LONGEST_RUN = "longest-run"
    SESSIONS = "sessions"
    PER_DAY = "per-day"
    TOP = "top"


new = typer.Typer(help="Write a first data contract or pattern.", no_args_is_help=True, rich_markup_mode=None)


source_app = typer.Typer(help="Delete rows of a source.", no_args_is_help=True, rich_markup_mode=None)


@guarded
def init(folder: Annotated[Path, typer.Argument(help="The project's folder.")] = Path()) -> dict[str, Any]:
    """Start a project: folders for patterns, contracts and profiles.

    Does not change files that already exist.

    Example: trendlake init my_project
    """
    from trendlake.jobs.actions.new import create_project

    return create_project(folder)


@new.command("source")
@guarded
def new_source(
    name: Annotated[str, typer.Argument(help="The source's name.")],
    event_time: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--event-time", help="The column with the time of an event; XML: a path."),
    ] = None,
    event_id: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--event-id", help="The column with the id of an event, or several: carrier,day. XML: a path."),
    ] = None,
    event_type: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--event-type", help="The column with the type of an event."),
    ] = None,
    constant: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--type", help="The type of all events, if no column has it."),
    ] = None,
    document: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--document", help="The column with XML documents, which have no type."),
    ] = None,
    document_path: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--document-path", help="Of XML: the elements that become documents; default: the root."),
    ] = None,
    sample: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--from", help="A file with its columns: CSV, Parquet or JSON; or a folder of XML."),
    ] = None,
    time_format: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--time-format", help='How files write times: "%m/%d/%Y %H:%M", unix_seconds; of XML: rfc822.'),
    ] = None,
    time_zone: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--time-zone", help="The zone of times without an offset; default: UTC."),
    ] = None,
    null_words: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--null-word", help="A text that means NULL in a file, as NA and null do; repeatable."),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Rows are no events: patterns look their columns up.")
    ] = False,
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--key", help="Of reference rows: the column that tells them apart, or several: id,since."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the contract, if there is one.")] = False,
    trial: Annotated[
        bool, typer.Option("--try", help="Also write a first pattern, and try it on the file; needs no Spark.")
    ] = False,
    table: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--table", help="Path or URI of an existing Delta table, which is read in place."),
    ] = None,
    profile: ProfileName = None,
    as_json: Json = False,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Write the data contract of a new source.

    Its columns are those of a file, or of an existing Delta table. A source has events; or, with --reference, rows that
    patterns look up, such as customers.

    Example: trendlake new source trades --from trades.csv --event-id id --event-time at --type Trade --try

    Example: trendlake new source trips --from trips.csv --event-id car,start --event-time start --type Trip --time-zone
    Europe/Berlin

    Example: trendlake new source cgm --from cgm.csv --event-id time --event-time time --type Reading --null-word nil

    Example: trendlake new source customers --from customers.csv --reference

    Example: trendlake new source prices --from prices.csv --reference --key item,since

    Example: trendlake new source trades --table /lake/trades --event-id id --event-time at --event-type kind

    Example: trendlake new source news --from feeds --document-path //item --event-id guid --event-time pubDate
    --time-format rfc822
    """
    from trendlake.jobs.actions.new import write_source, write_source_of_documents, write_source_of_table
    from trendlake.pipelines.authoring.scaffold import Roles
    from trendlake.pipelines.authoring.source_file import TimeOptions
    from trendlake.pipelines.ingest.readers.xml_names import is_xml

    if reference:
        if any(value is not None for value in (event_id, event_time, event_type, constant, document, document_path)):
            raise typer.BadParameter(
                "--reference is for rows that are no events: they have no id, time, type, document"
            )
    elif key is not None:
        raise typer.BadParameter("--key is for --reference; events have --event-id")
    elif event_time is None:
        raise typer.BadParameter("--event-time is missing: the column with an event's time (no events: --reference)")
    columns = tuple(name.strip() for name in (key or "").split(",") if name.strip())
    roles = Roles(event_id or "", event_time or "", event_type, constant, document, columns)
    words = tuple(word.strip() for word in null_words or ())
    if (words or overwrite) and (sample is None or is_xml(sample)):
        raise typer.BadParameter("--null-word and --overwrite are for files of rows: --from FILE")
    if trial and (reference or sample is None or is_xml(sample)):
        raise typer.BadParameter("--try is for files of events: --from FILE")
    if event_id is None and not reference and (sample is None or is_xml(sample)):
        raise typer.BadParameter("--event-id is missing: the column with the id of an event; of XML a path")
    if sample is not None and is_xml(sample) and reference:
        raise typer.BadParameter("--reference is for CSV, Parquet and JSON files, and for tables")
    if sample is not None and table is None and is_xml(sample):
        if any(value is not None for value in (event_type, constant, document, time_zone)):
            raise typer.BadParameter("XML files give id, time and document: no type, column or time zone is stated")
        return write_source_of_documents(name, sample, roles, document_path, time_format, project_dir)
    if document_path is not None:
        raise typer.BadParameter("--document-path is for XML files: --from FOLDER")
    if sample is not None and table is None:
        options = TimeOptions(time_format, time_zone)
        return write_source(
            name,
            sample,
            roles,
            options,
            project_dir,
            null_words=words,
            overwrite=overwrite,
            trial=trial,
            as_json=as_json,
        )
    if table is not None and sample is None:
        if time_format is not None or time_zone is not None:
            raise typer.BadParameter("--time-format and --time-zone are for files; a table has timestamps")
        return write_source_of_table(name, table, roles, profile, project_dir)
    raise typer.BadParameter("the columns come from a file or a table: give --from FILE or --table PLACE")


@new.command("pattern")
@guarded
def new_pattern(
    name: Annotated[str, typer.Argument(help="The pattern's name, in snake_case.")],
    source: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--source", help="The source whose events it reads; default: the only one."),
    ] = None,
    like: Annotated[
        Optional[Like],  # noqa: UP045
        typer.Option("--like", help="The question that it answers; asked for if left out."),
    ] = None,
    events: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--events", help="A file that constants come out of, instead of the source's table."),
    ] = None,
    kind: Annotated[
        Optional[NewKind],  # noqa: UP045
        typer.Option("--kind", help="Without a question: a pattern of this kind to edit (xml_join over documents)."),
    ] = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Write a first pattern file.

    With --like it answers a question over the source's columns, its constants come out of the source's rows, and a
    test is written too.

    Example: trendlake new pattern high_prices --like streak --events trades.csv

    Example: trendlake new pattern rising_trades --source trades --kind trends
    """
    from trendlake.jobs.actions.new import FirstPattern, write_pattern

    if kind is not None and (like or events):
        raise typer.BadParameter("--kind writes a pattern without a question: leave out --like and --events")
    options = FirstPattern(name, source, kind and kind.value, like and like.value, events)
    return write_pattern(options, project_dir)


@guarded
def ingest(
    source: Source,
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="CSV, Parquet, JSON or XML, or folders of XML; none for flights: departures in 2013."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also compare the rows of files that were ingested before.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Reference tables: the files are all rows, in one commit.")
    ] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Load files of events, or of reference rows, into a source's table.

    Adds new rows, replaces corrected rows and skips unchanged rows.

    Rows are compared by the contract's key. A row with a known key and other values is a correction: it replaces the
    row if the contract has `corrections: replace`; otherwise the file is refused.

    With --replace the rows of all files take the place of all rows of a reference table.

    Example: trendlake ingest flights

    Example: trendlake ingest trades january.csv february.parquet

    Example: trendlake ingest news feeds/

    Example: trendlake ingest customers customers.csv --replace
    """
    from trendlake.jobs.actions.ingest import ingest_files, ingest_source

    if files:
        return ingest_files(source, files, profile, project_dir, again=again, whole=replace)
    if replace:
        raise typer.BadParameter("--replace needs files: trendlake ingest NAME FILE --replace")
    return ingest_source(source, profile, project_dir)


@source_app.command("delete")
@guarded
def delete_rows(
    source: Source,
    ids: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--ids", help="A CSV, Parquet or JSON file with the keys of the rows to delete."),
    ] = None,
    where: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--where", help="A condition on the columns, as in contracts; rows that meet it are deleted."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the number of rows.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Delete rows of a source in one commit.

    Asks for confirmation. The next revision of each pattern applies the deletion.

    Example: trendlake source delete trades --ids withdrawn.csv --dry-run

    Example: trendlake source delete trades --where "company = 'A' AND price > 100" --yes
    """
    from trendlake.jobs.actions.delete import delete

    if (ids is None) == (where is None):
        raise typer.BadParameter("no rows are selected: give --ids FILE or --where CONDITION")
    return delete(source, ids, where, profile, project_dir, dry_run=dry_run, yes=yes)


@guarded
def generate(
    stream: Annotated[
        str,
        typer.Argument(
            help="stock, closes, cluster, feeds, linear_road, posts, quotes, retail, rumor, shipments, shop_orders, "
            "shop_payments or shop_customers."
        ),
    ],
    events: Annotated[Optional[int], typer.Option("--events", help="How many events.")] = None,  # noqa: UP045
    seconds: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--seconds", help="Length of the stream; default without --events: 600."),
    ] = None,
    rate: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--rate",
            help="Events a second: stock 100, cluster 3000, linear_road 4000 at its end, growing from none; "
            "quotes and retail 10, feeds and rumor 1, shipments, posts, shop_orders and shop_payments 0.1, "
            "shop_customers 0.01 changes, closes 24 a day.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Equal seeds give equal streams.")] = 1,
    start: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--start", help="Time of the first event; default: 2026-01-05T09:00:00Z."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="A Parquet file to write instead of the source's table."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Generate a stream of events from a seed.

    Loads the stream as the source of the same name. The patterns under examples read these sources.

    Example: trendlake generate stock --events 100000 --seed 7
    """
    from trendlake.jobs.actions import generate as generating

    synthetic = generating.stream_of(stream, events, seconds, rate, seed, start)
    if out is not None:
        return generating.generate_file(synthetic, out)
    return generating.generate_source(synthetic, profile, project_dir)
