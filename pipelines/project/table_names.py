"""The tables of sources: each is one source's, and so is its quarantine, `<source>_quarantine`."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import EXTENSION, TEMPLATES

QUARANTINE = "_quarantine"


def shared_table(source: str, contracts: Path, elsewhere: Collection[str]) -> ProjectError | None:
    """The error of a source whose table would be another's quarantine, or whose quarantine another's table; None where
    both are its own. `contracts`: the folder of the project's; `elsewhere`: the sources whose tables other programs
    write, at places of their own."""
    table, holder = source, source.removesuffix(QUARANTINE)
    if holder == source:
        table = f"{source}{QUARANTINE}"
    other = holder if table == source else table
    if table in elsewhere or not os.path.isfile(contracts / f"{other}{EXTENSION}"):
        return None
    return ProjectError(
        f"the table of the source '{table}' would be the quarantine of the source '{holder}' too",
        hint=f"give the source '{table}' another name, such as {holder}_set_apart",
    )


def refuse_template(source: str) -> None:
    """Raises ProjectError for a name that contracts of results have."""
    if source.startswith(TEMPLATES):
        raise ProjectError(
            f"'{source}' is no name of a source: contracts of results begin with {TEMPLATES}",
            hint=f"such as {source.removeprefix(TEMPLATES) or 'events'}",
        )
