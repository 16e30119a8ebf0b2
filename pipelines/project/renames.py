"""`renamed_from` of a pattern file, compared with the other files of the project."""

from __future__ import annotations

from pathlib import Path

from trendlake.cep_core import Pattern, PatternErrors
from trendlake.cep_core.errors import BadValueError
from trendlake.pipelines.project.paths import Project


def refuse_bad_rename(project: Project, pattern: Pattern, file: Path) -> None:
    """Raises PatternErrors where the name that the pattern had before is not free for it."""
    before = pattern.renamed_from
    if before is not None and (mistake := _mistake(project, pattern.name, before, file)):
        message, hint = mistake
        place = pattern.document.place(("renamed_from",))
        raise PatternErrors([BadValueError(f"renamed_from: {message}", place=place, hint=hint)])


def _mistake(project: Project, name: str, before: str, file: Path) -> tuple[str, str] | None:
    if before == name:
        return f"'{name}' is the pattern's own name", "write the name that the pattern had before"
    if project.typed(name, file) != name:
        return f"only files in {project.patterns} can be renamed", f"put the file into {project.patterns}"
    if project.table_of(before) == before:
        return f"'{before}' has a file still", f"remove {project.patterns / f'{before}.yaml'}, or `renamed_from`"
    others = [path.stem for path in project.pattern_files() if path.stem != name]
    other = next((other for other in others if project.table_of(other) == before), None)
    if other is not None:
        return f"'{other}' is renamed from '{before}' too", "one results table is of one pattern"
    return None
