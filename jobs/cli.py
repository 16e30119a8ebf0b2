"""`trendlake`: the one command. Each word parses its options, calls one pipeline and exits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from jobs.airflow_words import add_airflow_word
from jobs.options import AsOf, Json, Limit, Pattern, ProfileName, ProjectDir
from jobs.outcome import EXIT_CODES, Verdict, guarded
from jobs.quarantine_words import quarantine
from jobs.run_words import add_run_words
from jobs.source_words import add_source_words
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


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"trendlake {version('trendlake')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


add_source_words(app)
app.add_typer(quarantine, name="quarantine")
add_run_words(app)


@app.command()
@guarded
def validate(
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="Pattern files or data contracts; all of the project when none is given."),
    ] = None,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Check pattern files and data contracts: every mistake of every file, with its place.

    Example: trendlake validate conf/patterns/my_pattern.yaml
    """
    from jobs.showing import print_validation
    from pipelines.project.paths import find_project

    return print_validation(find_project(project_dir), files or [])


@app.command("test")
@guarded
def run_pattern_tests(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of patterns; all that have tests when none is given."),
    ] = None,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Run the tests beside the patterns (conf/patterns/tests): events in, rows expected, without Spark.

    Example: trendlake test delay_snowball
    """
    from jobs.testing import print_tests
    from pipelines.project.paths import find_project

    return print_tests(find_project(project_dir), patterns or [])


@app.command()
@guarded
def schema(of: Annotated[str, typer.Argument(help="pattern, contract or tests.", metavar="OF")]) -> dict[str, Any]:
    """The JSON Schema of a kind of file, by which an editor completes and checks it.

    Those of this version are in docs/schemas.

    Example: trendlake schema pattern > pattern.json
    """
    from jobs.schemas import schema_of, schema_text

    typer.echo(schema_text(of), nl=False)
    return schema_of(of)


@app.command()
@guarded
def docs(
    page: Annotated[Optional[str], typer.Argument(help="A page's name; all names when none is given.")] = None,  # noqa: UP045
) -> dict[str, Any]:
    """The documentation: what pages there are, and each of them.

    Example: trendlake docs tutorial
    """
    from jobs.documentation import print_page, print_pages

    return print_pages() if page is None else print_page(page)


@app.command()
@guarded
def explain(
    pattern: Pattern,
    svg: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--svg", help="A file for a picture of the automaton."),
    ] = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """How a pattern is computed: what is read, how it is cut into shards, how predecessors are found.

    Example: trendlake explain delay_snowball --svg delay_snowball.svg
    """
    from jobs.showing import print_plan
    from pipelines.project.paths import find_project

    return print_plan(find_project(project_dir), pattern, svg)


@app.command()
@guarded
def show(
    pattern: Pattern, limit: Limit = 10, as_of: AsOf = None, as_json: Json = False, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """The busiest rows of a pattern's results: those with the most trends; now, or as they were.

    Example: trendlake show delay_snowball --limit 5

    Example: trendlake show delay_snowball --as-of 2026-11-20T18:00
    """
    from jobs import running, showing

    place = running.find_place(project_dir, profile)
    place.project.pattern_path(pattern)
    with running.session(place, f"trendlake show {pattern}") as spark:
        return showing.print_results(place, spark, pattern, limit, as_of, as_json=as_json)


@app.command()
@guarded
def runs(
    pattern: Annotated[Optional[str], typer.Argument(help="Only runs of this pattern.")] = None,  # noqa: UP045
    limit: Limit = 20, as_json: Json = False, profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """The newest run records: what each stage read, wrote and took.

    Example: trendlake runs delay_snowball
    """
    from jobs import running, showing

    place = running.find_place(project_dir, profile)
    with running.session(place, "trendlake runs") as spark:
        return showing.print_runs(place, spark, pattern, limit, as_json=as_json)


app.command("try")(try_)
add_time_words(app)
add_airflow_word(app)

if __name__ == "__main__":
    app(prog_name="trendlake")
