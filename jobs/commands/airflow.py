"""Options of the command that serves Airflow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Optional

import typer

from trendlake.jobs.terminal.lines import print_error
from trendlake.jobs.terminal.options import ProjectDir
from trendlake.jobs.terminal.outcome import INTERNAL_ERROR, guarded

OWN_OPTIONS_FIRST = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Arguments after the first one are Airflow's, `--help` too."""


@guarded
def airflow(
    arguments: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="An airflow command and its options; none: serve the project.", metavar="[COMMAND]..."),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the page, if it is free.")] = 8080,
    project_dir: ProjectDir = None,
) -> None:
    """Serve the project's Airflow, or run an airflow command.

    Serves it with its page until Ctrl-C.

    Each pattern is a DAG, paused at first: unpause it on the page, or as below. The DAGs that ingest files and that
    revise results are not paused. Commands that write a new version, such as `ingest` and `run`, notify it.

    Example: trendlake airflow

    Example: trendlake airflow dags unpause my_pattern

    Example: trendlake airflow backfill create --dag-id my_pattern --from-date 2026-01-01 --to-date 2026-01-07
    """
    if find_spec("airflow") is None:
        from trendlake.pipelines.errors import ProjectError

        raise ProjectError("Airflow is not installed with this trendlake", hint="install it with the extra 'airflow'")
    from trendlake.jobs.airflow import serve
    from trendlake.jobs.airflow.home import AirflowHomeError

    try:
        if not arguments:
            serve.serve(project_dir, port)
        elif code := serve.airflow(project_dir, arguments):
            raise typer.Exit(code)
    except AirflowHomeError as error:
        print_error(str(error))
        raise typer.Exit(INTERNAL_ERROR) from None
