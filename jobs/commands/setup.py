"""Options of the command that prepares a machine for Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal.outcome import guarded


@guarded
def setup(
    source: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--from", help="A folder with Delta's jars; else TRENDLAKE_JARS, else Maven.", file_okay=False),
    ] = None,
    to: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--to", help="The folder to fill; else one in the user's cache.", file_okay=False),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use no network; fail if anything is missing.")] = False,
) -> dict[str, Any]:
    """Fetch Delta's jars and compile the classes for a local disk.

    Each jar must have the SHA-256 of the lock. The first command that starts Spark does the same, if needed.
    A mirror of Maven Central in ~/.m2/settings.xml is used, and so are http_proxy and https_proxy.

    Example: trendlake setup

    Example: trendlake setup --from /media/jars --offline
    """
    from trendlake.pipelines.spark.disk_classes import compile_local_disk
    from trendlake.pipelines.spark.jars import fetch_jars
    from trendlake.pipelines.spark.setup_files import JARS, shared_folder

    if source is None and (named := os.environ.get("TRENDLAKE_JARS")):
        source = Path(named)
    folder = (to or shared_folder()).resolve()
    fetch_jars(folder / JARS, source, offline=offline)
    log_store = compile_local_disk(folder, sorted((folder / JARS).glob("*.jar")))
    typer.echo(f"ready for Spark: {folder}")
    return {"folder": folder, "jars": sorted((folder / JARS).glob("*.jar")), "log_store": log_store}
