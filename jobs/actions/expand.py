"""`trendlake expand`: a family written out as ordinary patterns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from trendlake.jobs.terminal.lines import say
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import Project


def expand(project: Project, name: str, folder: Path | None) -> dict[str, Any]:
    """Prints the members of a family as pattern files, or writes each to a new file of `folder`.

    Raises ProjectError: the pattern is no family, or a file exists already or cannot be written. PatternErrors.
    """
    from trendlake.cep_core.patterns.expansion import expanded
    from trendlake.cep_core.patterns.model import FamilyPattern
    from trendlake.cep_core.yaml.scalars import yaml_text
    from trendlake.pipelines.authoring.validate import compiled

    pattern, _ = compiled(project, project.pattern_path(name))
    members = list(expanded(pattern)) if isinstance(pattern, FamilyPattern) else []
    if not members:
        raise ProjectError(f"{pattern.name} has no for_each: it is one pattern already")
    texts = {f"{member['name']}.yaml": yaml_text(member) for member in members}
    if folder is None:
        typer.echo("---\n".join(texts.values()), nl=False)
    else:
        write(folder, texts)
        say(f"wrote {plural(len(texts), 'pattern')} to {folder}; remove {pattern.name}.yaml to run them in its place")
    return {"pattern": pattern.name, "members": members, "out": folder}


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes new files. Raises ProjectError if one exists."""
    existing = [name for name in texts if (folder / name).exists()]
    if existing:
        raise ProjectError(f"{folder / existing[0]} exists already", hint="choose an empty folder, or remove the file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProjectError(f"{folder} cannot be written: {error.strerror or error}") from None
