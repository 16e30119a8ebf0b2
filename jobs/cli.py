"""`trendlake`: the one command. Each word parses its options, calls one pipeline and exits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from jobs.options import AnyRunId, AsOf, Limit, Pattern, ProfileName, ProjectDir, RunId, Since, Source, Until
from jobs.outcome import EXIT_CODES, MISTAKE, guarded
from jobs.quarantine_words import quarantine
from jobs.time_words import add_time_words
from jobs.trying_words import try_

EXAMPLES = """
Examples:

  trendlake ingest flights

  trendlake generate stock --seconds 600

  trendlake run delay_snowball --from 2013-01-01 --to 2014-01-02

  trendlake show delay_snowball --limit 10

  trendlake try my_pattern --sample

  trendlake validate conf/patterns/my_pattern.yaml
"""

app = typer.Typer(
    name="trendlake",
    help=f"Trends over Delta tables, from patterns written in YAML.\n{EXAMPLES}\n{EXIT_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

new = typer.Typer(help="Write a first contract or pattern.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(new, name="new")
app.add_typer(quarantine, name="quarantine")


def _step(
    step: str, pattern: str, since: str, until: str, run_id: str, profile: str | None, folder: Path | None
) -> None:
    from jobs import running

    place = running.find_place(folder, profile)
    name = running.check_early(place, pattern, since, until)
    with running.session(place, f"trendlake {step} {name}") as spark:
        running.run_step(step, running.prepared(place, spark, pattern, since, until, run_id))


@app.command()
@guarded
def init(folder: Annotated[Path, typer.Argument(help="The project's folder.")] = Path()) -> None:
    """Make a project: folders for patterns, contracts and profiles. What is there already is left alone.

    Example: trendlake init my_project
    """
    from jobs.starting import init_here

    init_here(folder)


@new.command("source")
@guarded
def new_source(
    name: Annotated[str, typer.Argument(help="The source's name.")],
    sample: Annotated[Path, typer.Option("--from", help="A file with its columns: CSV, Parquet or JSON.")],
    event_id: Annotated[str, typer.Option("--event-id", help="The column that tells events apart.")],
    event_time: Annotated[str, typer.Option("--event-time", help="The column of the event's time.")],
    event_type: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--event-type", help="The column that tells an event's type."),
    ] = None,
    constant: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--type", help="The type of all events, where no column tells it."),
    ] = None,
    project_dir: ProjectDir = None,
) -> None:
    """Write the data contract of a new source, with a file's columns.

    Example: trendlake new source trades --from trades.csv --event-id id --event-time at --type Trade
    """
    from jobs.starting import write_source

    write_source(name, sample, event_id, event_time, event_type, constant, project_dir)


@new.command("pattern")
@guarded
def new_pattern(
    name: Annotated[str, typer.Argument(help="The pattern's name, in snake_case.")],
    source: Annotated[str, typer.Option("--source", help="The source it asks about.")],
    project_dir: ProjectDir = None,
) -> None:
    """Write a pattern file to begin with.

    Example: trendlake new pattern rising_trades --source trades
    """
    from jobs.starting import write_pattern

    write_pattern(name, source, project_dir)


@app.command()
@guarded
def ingest(
    source: Source,
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="CSV, Parquet or JSON files; none for flights: 336,776 departures from New York in 2013."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:
    """Load a source into its Delta table, delivery by delivery; what is there already is passed over.

    Example: trendlake ingest flights

    Example: trendlake ingest trades january.csv february.parquet
    """
    from jobs.ingesting import ingest_files, ingest_source

    if files:
        ingest_files(source, files, profile, project_dir)
    else:
        ingest_source(source, profile, project_dir)


@app.command()
@guarded
def generate(
    stream: Annotated[str, typer.Argument(help="stock, cluster, linear_road, quotes, retail or shipments.")],
    events: Annotated[Optional[int], typer.Option("--events", help="How many events.")] = None,  # noqa: UP045
    seconds: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--seconds", help="Its length; 600 where --events is not given either."),
    ] = None,
    rate: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--rate",
            help="Events a second: stock 100, cluster 3000, linear_road 4000 at its end, growing from none; "
            "quotes and retail 10, shipments 0.1.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Equal seeds give equal streams.")] = 1,
    start: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--start", help="Time of the first event; 2026-01-05T09:00:00Z when not given."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="A Parquet file to write, in place of the source's table."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:
    """Make a stream by a seed and load it as the source of its name.

    The patterns under examples ask about these sources.

    Example: trendlake generate stock --events 100000 --seed 7
    """
    from jobs import generating

    asked = generating.asked(stream, events, seconds, rate, seed, start)
    if out is not None:
        generating.generate_file(asked, out)
    else:
        generating.generate_source(asked, profile, project_dir)


@app.command("check-source")
@guarded
def check_source(
    pattern: Pattern, since: Since, until: Until, run_id: RunId, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Step 1: pin the source's version, quarantine rows that break its contract, judge it.

    Example: trendlake check-source delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    _step("check_source", pattern, since, until, run_id, profile, project_dir)


@app.command()
@guarded
def compute(
    pattern: Pattern, since: Since, until: Until, run_id: RunId, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Step 2: compute the run's windows at the pinned version and stage the results.

    Example: trendlake compute delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    _step("compute", pattern, since, until, run_id, profile, project_dir)


@app.command("check-results")
@guarded
def check_results(
    pattern: Pattern, since: Since, until: Until, run_id: RunId, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Step 3: judge the staged results by the results contract.

    Example: trendlake check-results delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    _step("check_results", pattern, since, until, run_id, profile, project_dir)


@app.command()
@guarded
def publish(
    pattern: Pattern, since: Since, until: Until, run_id: RunId, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Step 4: bring the staged results into the results table, in one commit.

    Example: trendlake publish delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    _step("publish", pattern, since, until, run_id, profile, project_dir)


@app.command()
@guarded
def report(
    pattern: Pattern, run_id: RunId,
    since: Annotated[Optional[str], typer.Option("--from", help="Not needed: the run knows it.")] = None,  # noqa: UP045
    until: Annotated[Optional[str], typer.Option("--to", help="Not needed: the run knows it.")] = None,  # noqa: UP045
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Step 5: write the run's report, one HTML page and a picture.

    Example: trendlake report delay_snowball --run-id r1
    """
    from jobs import running

    place = running.find_place(project_dir, profile)
    place.project.pattern_path(pattern)
    with running.session(place, f"trendlake report {pattern}") as spark:
        running.report(place, spark, pattern, run_id)


@app.command()
@guarded
def site(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of patterns, or files; all of the project when none is given."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:
    """Write the reports as a static site: a page of all patterns, one of each, Great Expectations' of its last check.

    Example: trendlake site
    """
    from jobs import running

    running.build_site(running.find_place(project_dir, profile), patterns or [])


@app.command()
@guarded
def run(
    pattern: Pattern, since: Since, until: Until, run_id: AnyRunId = None, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """All steps of a run, in one Spark session.

    Example: trendlake run delay_snowball --from 2013-01-01 --to 2014-01-02
    """
    from jobs import running
    from jobs.times import manual_run_id

    place = running.find_place(project_dir, profile)
    name = running.check_early(place, pattern, since, until)
    with running.session(place, f"trendlake run {name}") as spark:
        prepared = running.prepared(place, spark, pattern, since, until, run_id or manual_run_id("manual"))
        typer.echo(f"run {prepared.run_id} of {name}")
        for step in ("check_source", "compute", "check_results", "publish"):
            running.run_step(step, prepared)
        running.report(place, spark, pattern, prepared.run_id)


@app.command()
@guarded
def backfill(
    pattern: Pattern, since: Since, until: Until,
    chunk: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--chunk", help="Length of a chunk, such as 30 days; a twelfth of the interval when not given."),
    ] = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="From the end to the start.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many windows, events and bytes it would be.")
    ] = False,
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """Compute a long stretch of history in chunks, in one Spark session. Begun again, it goes on where it stopped.

    Example: trendlake backfill delay_snowball --from 2013-01-01 --to 2014-01-02 --chunk "30 days"
    """
    from jobs import backfilling, running

    place = running.find_place(project_dir, profile)
    name = running.check_early(place, pattern, since, until)
    length = backfilling.length_of(chunk)
    with running.session(place, f"trendlake backfill {name}") as spark:
        backfilling.run_backfill(place, spark, pattern, since, until, length, newest_first, dry_run)


@app.command()
@guarded
def validate(
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="Pattern files or data contracts; all of the project when none is given."),
    ] = None,
    project_dir: ProjectDir = None,
) -> None:
    """Check pattern files and data contracts: every mistake of every file, with its place.

    Example: trendlake validate conf/patterns/my_pattern.yaml
    """
    from jobs.showing import print_validation
    from pipelines.project import find_project

    if not print_validation(find_project(project_dir), files or []):
        raise typer.Exit(MISTAKE)


@app.command("test")
@guarded
def run_pattern_tests(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of patterns; all that have tests when none is given."),
    ] = None,
    project_dir: ProjectDir = None,
) -> None:
    """Run the tests beside the patterns (conf/patterns/tests): events in, rows expected, without Spark.

    Example: trendlake test delay_snowball
    """
    from jobs.testing import print_tests
    from pipelines.project import find_project

    if not print_tests(find_project(project_dir), patterns or []):
        raise typer.Exit(MISTAKE)


@app.command()
@guarded
def schema(of: Annotated[str, typer.Argument(help="pattern, contract or tests.", metavar="OF")]) -> None:
    """The JSON Schema of a kind of file, by which an editor completes and checks it.

    Those of this version are in docs/schemas.

    Example: trendlake schema pattern > pattern.json
    """
    from jobs.schemas import schema_text

    typer.echo(schema_text(of), nl=False)


@app.command()
@guarded
def explain(
    pattern: Pattern,
    svg: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--svg", help="A file for a picture of the automaton."),
    ] = None,
    project_dir: ProjectDir = None,
) -> None:
    """How a pattern is computed: what is read, how it is cut into shards, how predecessors are found.

    Example: trendlake explain delay_snowball --svg delay_snowball.svg
    """
    from jobs.showing import print_plan
    from pipelines.project import find_project

    print_plan(find_project(project_dir), pattern, svg)


@app.command()
@guarded
def show(
    pattern: Pattern, limit: Limit = 10, as_of: AsOf = None, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """The busiest rows of a pattern's results: those with the most trends; now, or as they were.

    Example: trendlake show delay_snowball --limit 5

    Example: trendlake show delay_snowball --as-of 2026-11-20T18:00
    """
    from jobs import running, showing

    place = running.find_place(project_dir, profile)
    place.project.pattern_path(pattern)
    with running.session(place, f"trendlake show {pattern}") as spark:
        showing.print_results(place, spark, pattern, limit, as_of)


@app.command()
@guarded
def runs(
    pattern: Annotated[Optional[str], typer.Argument(help="Only runs of this pattern.")] = None,  # noqa: UP045
    limit: Limit = 20, profile: ProfileName = None, project_dir: ProjectDir = None,
) -> None:  # fmt: skip
    """The newest run records: what each stage read, wrote and took.

    Example: trendlake runs delay_snowball
    """
    from jobs import running, showing

    place = running.find_place(project_dir, profile)
    with running.session(place, "trendlake runs") as spark:
        showing.print_runs(place, spark, pattern, limit)


app.command("try")(try_)
add_time_words(app)

if __name__ == "__main__":
    app(prog_name="trendlake")
