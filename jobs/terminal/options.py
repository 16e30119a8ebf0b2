"""Arguments and options that several words of the command share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from jobs.terminal import completion

Pattern = Annotated[
    str,
    typer.Argument(
        help="A name under conf/patterns, or a file's path.", metavar="PATTERN", autocompletion=completion.patterns
    ),
]
Source = Annotated[
    str,
    typer.Argument(help="The source, as its contract is named.", metavar="SOURCE", autocompletion=completion.sources),
]
Since = Annotated[str, typer.Option("--from", help="Start of the interval, ISO 8601 (UTC if it says no zone).")]
Until = Annotated[str, typer.Option("--to", help="End of the interval: windows that end in (from, to] are meant.")]
RunId = Annotated[str, typer.Option("--run-id", help="The run the step belongs to.")]
AnyRunId = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it
    typer.Option("--run-id", help="A name for the run; made up when not given."),
]
ProfileName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--profile", help="A name under conf/profiles; else TRENDLAKE_PROFILE, else local."),
]
ProjectDir = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--project-dir", help="The folder that holds conf/; else TRENDLAKE_PROJECT, else around here."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="Rows shown.")]
AsOf = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--as-of", help="A version of the results, or a time (ISO 8601): as they were then."),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: JSON on stdout, all else on stderr.")]
