"""Options of the commands that check files and explain patterns, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal import completion
from trendlake.jobs.terminal.options import Pattern, ProfileName, ProjectDir
from trendlake.jobs.terminal.outcome import guarded
from trendlake.jobs.terminal.verdict import Verdict


@guarded
def validate(
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="Pattern files or data contracts; default: all of the project."),
    ] = None,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Check pattern files and data contracts.

    Prints every error of every file with its line and column.

    Example: trendlake validate conf/patterns/my_pattern.yaml
    """
    from trendlake.jobs.terminal.printing import print_validation
    from trendlake.pipelines.project.paths import find_project

    return print_validation(find_project(project_dir), files or [])


@guarded
def run_pattern_tests(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of patterns; default: all patterns with tests."),
    ] = None,
    require: Annotated[bool, typer.Option("--require", help="Fail if a pattern has no test.")] = False,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Run the tests of patterns (conf/patterns/tests).

    A test gives events and the rows expected. Spark is not started. Patterns without a test are named.

    Example: trendlake test delay_snowball

    Example: trendlake test --require
    """
    from trendlake.jobs.actions.pattern_tests import print_tests
    from trendlake.pipelines.project.paths import find_project

    if require and patterns:
        raise typer.BadParameter("--require is for all patterns of the project: name none")
    return print_tests(find_project(project_dir), patterns or [], require=require)


@guarded
def explain(
    pattern: Pattern,
    svg: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--svg", help="Also draw the automaton into this SVG file."),
    ] = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Explain how a pattern is computed, and draw it.

    Prints the columns read, the shards, and the method that finds predecessors.

    Example: trendlake explain delay_snowball --svg delay_snowball.svg
    """
    from trendlake.jobs.terminal.printing import print_plan
    from trendlake.pipelines.project.paths import find_project

    return print_plan(find_project(project_dir), pattern, svg)


@guarded
def plan(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help="Names, files, or selectors; default: all patterns.",
            metavar="PATTERN",
            autocompletion=completion.patterns,
        ),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", help="States that are a failure, separated by commas; also `stale` and `incompatible`."
        ),
    ] = "",
    details: Annotated[
        bool, typer.Option("--details", help="Also the old and the new text of changed keys, by Git.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="text, or markdown for a comment on an edit.")] = "text",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write the plan to this file, for `trendlake apply`."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Show what edited files change about published results.

    Compares each pattern and its contracts with what is published: which windows are stale, how much work they are,
    which columns readers lose, and the commands that bring all up to date. Nothing is written but --out.

    States: error, new, changes_results, contract, renamed, code, behind, words_only,
    unchanged, removed.

    Example: trendlake plan

    Example: trendlake plan falling --fail-on incompatible,stale

    Example: trendlake plan --format markdown

    Example: trendlake plan --out plan.json
    """
    from trendlake.jobs.actions.plan import plan as compared

    if form not in ("text", "markdown"):
        raise typer.BadParameter("--format is text or markdown")
    return compared(patterns or [], fail_on, form, profile, project_dir, details=details, out=out)


@guarded
def expand(
    pattern: Pattern,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write each pattern to a file of this folder."),
    ] = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Write the members of a family out as patterns.

    Each row of for_each becomes a pattern of its own, with a batch that runs them together.

    Example: trendlake expand price_alarm --out conf/patterns
    """
    from trendlake.jobs.actions.expand import expand as write_out
    from trendlake.pipelines.project.paths import find_project

    return write_out(find_project(project_dir), pattern, out)


@guarded
def schema(of: Annotated[str, typer.Argument(help="pattern, contract or tests.", metavar="OF")]) -> dict[str, Any]:
    """Print the JSON Schema of a kind of file.

    Editors use it to complete and check files. The schemas of this version are in docs/schemas.

    Example: trendlake schema pattern > pattern.json
    """
    from trendlake.jobs.actions.schema import schema_of, schema_text

    typer.echo(schema_text(of), nl=False)
    return schema_of(of)
