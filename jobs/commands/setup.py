"""Options of the command that prepares a machine: what Spark needs, and the engine's machine code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal.outcome import guarded


class Part(StrEnum):
    """A part of the machine."""

    SPARK = "spark"
    KERNELS = "kernels"


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
    only: Annotated[
        Optional[Part],  # noqa: UP045
        typer.Option("--only", help="One part: spark, or kernels, which takes a minute or two."),
    ] = None,
) -> dict[str, Any]:
    """Prepare this machine for Spark, and compile what patterns need.

    For Spark: Delta's jars and the classes for a local disk.

    Each jar must have the SHA-256 of the lock. The first command that starts Spark does the same, if needed.
    The first command that needs machine code compiles it, where it is missing.
    A mirror of Maven Central in ~/.m2/settings.xml is used, and so are http_proxy and https_proxy.

    Example: trendlake setup

    Example: trendlake setup --from /media/jars --offline

    Example: trendlake setup --only kernels
    """
    facts = _for_spark(source, to, offline) if only != Part.KERNELS else {}
    if only != Part.SPARK:
        facts["kernels"] = list(_kernels())
    typer.echo("ready. next: trendlake init my_project")
    return facts


def _for_spark(source: Path | None, to: Path | None, offline: bool) -> dict[str, Any]:
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


def _kernels() -> Iterator[str]:
    from trendlake.cep_core.first_questions import compile_first_kernels

    began = time.monotonic()
    for kind in compile_first_kernels():
        typer.echo(f"ready for patterns of kind {kind}: {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        yield kind
