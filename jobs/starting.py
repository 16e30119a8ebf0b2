"""`trendlake init` and `trendlake new`: first files, and what to do next."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from pipelines.errors import ProjectError
from pipelines.project import find_project

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def init_here(folder: Path) -> dict[str, Any]:
    """A project in `folder`. Raises ProjectError where it cannot be written."""
    from pipelines.scaffold import init_project

    try:
        written = init_project(folder, Path(__file__).resolve().parents[1] / "data_contracts")
    except OSError as error:
        raise ProjectError(f"{folder} cannot be written: {error.strerror or error}") from None
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo("next: trendlake new source NAME --from FILE --event-id COLUMN --event-time COLUMN --type NAME")
    return {"wrote": written}


def write_source(
    name: str, sample: Path, event_id: str, event_time: str, event_type: str | None, constant: str | None,
    project_dir: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """The contract of a new source. Raises ProjectError, SourceFileError, ContractErrors."""
    from pipelines.contract import load_contract
    from pipelines.scaffold import Roles, new_source
    from pipelines.sources.files import read_file

    project = find_project(project_dir)
    _named(name)
    columns = read_file(sample).schema
    path = new_source(project, name, columns, Roles(event_id, event_time, event_type, constant))
    load_contract(path)
    typer.echo(f"wrote {path}: read it, say what the columns promise")
    typer.echo(f"next: trendlake ingest {name} {sample}")
    return {"wrote": [path]}


def write_pattern(name: str, source: str, project_dir: Path | None) -> dict[str, Any]:
    """A pattern to begin with. Raises ProjectError, ContractErrors."""
    from pipelines.scaffold import new_pattern
    from pipelines.upstream import source_contract

    project = find_project(project_dir)
    _named(name)
    path = new_pattern(project, name, source_contract(project, source, (name,)))
    typer.echo(f"wrote {path}: say in it what to find")
    typer.echo(f"next: trendlake validate {path}")
    return {"wrote": [path]}


def _named(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ProjectError(f"'{name}' is no name: lower case letters, digits and _, beginning with a letter")
