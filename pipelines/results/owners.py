"""Which pattern a results table is of. A table keeps its name and place when its pattern is renamed (`renamed_from`).

Each publication of a pattern whose table has another name notes the pattern. So a new pattern that gets the old name,
or a second one that is said to be renamed from it, is refused and does not replace rows of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import Lake, exists, folder_of
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.results.notes import Note


def publishers(commits: Sequence[Commit], table: str) -> list[str]:
    """The patterns that have published to the table, the newest first."""
    notes = (Note.of_commit(commit.note) for commit in commits)
    return list(dict.fromkeys(note.pattern or table for note in notes if note is not None and note.number))


def owner_of(commits: Sequence[Commit], table: str) -> str:
    """The pattern that has published last to the table."""
    return next(iter(publishers(commits, table)), table)


def refuse_other_owner(lake: Lake, name: str) -> None:
    """Raises ProjectError where the results table of the pattern `name` is another pattern's, or where it is not clear
    which of two tables is its own."""
    table, project = lake.warehouse.table_of(name), lake.warehouse.project
    if project is None:
        return
    there = exists(lake, lake.warehouse.results_table(table))
    if table != name:
        _refuse_two_tables(lake, name, table, there=there)
    owner = owner_of(recent_commits(lake, lake.warehouse.results_table(table)), table) if there else name
    if owner == name:
        return
    if table == name:
        raise ProjectError(
            f"results/{table} holds the results of '{owner}', which was renamed from '{table}'",
            hint=f"give this pattern another name, or remove those results with `trendlake reset results/{table}`",
        )
    if project.table_of(owner) == table:
        raise ProjectError(
            f"'{name}' is renamed from '{table}', but '{owner}' has a file still, and its results are results/{table}",
            hint=f"remove {project.patterns / f'{owner}.yaml'}, or `renamed_from` from {name}.yaml",
        )


def _refuse_two_tables(lake: Lake, name: str, table: str, *, there: bool) -> None:
    if has_rows(lake, lake.warehouse.results_table(name)):
        if there:
            hint = f"`trendlake reset results/{name}` removes those of '{name}'; without `renamed_from` they are used"
            raise ProjectError(f"there are rows in results/{table} and in results/{name}", hint=hint)
        raise ProjectError(
            f"the results of '{name}' are in results/{name}, and there is no table results/{table}",
            hint=f"remove `renamed_from: {table}` from {name}.yaml",
        )
    if there:
        return
    for other in tables_of(lake, table):
        raise ProjectError(
            f"'{table}' was renamed before: its results are in results/{other}",
            hint=f"write `renamed_from: {other}` in {name}.yaml",
        )


def tables_of(lake: Lake, pattern: str) -> Iterator[str]:
    """The results tables of another name to which `pattern` has published, after it was renamed."""
    for table in results_tables(lake):
        if table != pattern and pattern in publishers(recent_commits(lake, lake.warehouse.results_table(table)), table):
            yield table


def has_rows(lake: Lake, path: str) -> bool:
    """Whether there is a table at `path`, and a row in it."""
    return exists(lake, path) and Table.at(lake, path).row_count > 0


def results_tables(lake: Lake) -> Iterator[str]:
    """The names of all results tables of the warehouse, in order."""
    return tables_in(lake, f"{lake.warehouse.root}/results")


def tables_in(lake: Lake, path: str) -> Iterator[str]:
    """The names of the folders in the folder `path` that are Delta tables, in order."""
    place = lake.on_disk(path)
    if place is not None:
        names = [item.name for item in place.iterdir() if item.is_dir()] if place.is_dir() else []
    else:
        files, folder = folder_of(lake, path)
        listing: Any = files.listStatus(folder) if files.exists(folder) else ()
        names = [item.getPath().getName() for item in listing if item.isDirectory()]
    return (name for name in sorted(names) if exists(lake, f"{path}/{name}"))
