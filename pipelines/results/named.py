"""Results by their name: of a pattern, or of a table whose pattern has no file any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trendlake.cep_core import load_pattern
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import PUBLISHED, TABLE_NAME, Project, upstream
from trendlake.pipelines.project.table_names import QUARANTINE
from trendlake.pipelines.results.owners import owner_of, publishers, results_tables, tables_in, tables_of

SOURCES = "sources/"


@dataclass(frozen=True)
class NamedTable:
    """The table `name` (`results/rising`, `sources/trades_quarantine`) at `path`; `pattern`: whose results it holds,
    None if that has no file."""

    name: str
    path: str
    pattern: str | None


@dataclass(frozen=True)
class Orphan:
    """A table that no file of the project speaks of; `pattern`: that has published to it last, None for a quarantine;
    `rows`: how many it has; `changed`: when it was written last."""

    table: str
    pattern: str | None
    rows: int
    changed: datetime | None


def table_named(lake: Lake, project: Project, name: str) -> NamedTable:
    """The results that `name` means: a pattern's (a name or a file); `results/TABLE`, whatever files there are; the
    name of a table whose pattern has no file. Also a quarantine, `sources/SOURCE_quarantine`, whose source has no
    contract. Raises ProjectError, PatternErrors."""
    table = upstream(name)
    if table is not None and TABLE_NAME.fullmatch(table):
        return _results(lake.warehouse, project, table)
    source = name.removeprefix(SOURCES).removesuffix(QUARANTINE)
    if name == f"{SOURCES}{source}{QUARANTINE}" and TABLE_NAME.fullmatch(source):
        contracts = _contracts(project)
        if source in contracts:
            raise ProjectError(
                f"{name} is the quarantine of the source '{source}'",
                hint=f"see its rows with `trendlake quarantine show {source}`",
            )
        if f"{source}{QUARANTINE}" in contracts:
            raise ProjectError(f"{name} is a source with a contract, and no quarantine")
        return NamedTable(name, lake.warehouse.quarantine(source), None)
    if TABLE_NAME.fullmatch(name) and project.table_of(name) is None:
        named = _results(lake.warehouse, project, name)
        if named.pattern is None and exists(lake, named.path):
            return named
    pattern = load_pattern(project.pattern_path(name)).name
    return NamedTable(f"{PUBLISHED}{lake.warehouse.table_of(pattern)}", lake.warehouse.results(pattern), pattern)


def _results(warehouse: Warehouse, project: Project, table: str) -> NamedTable:
    return NamedTable(f"{PUBLISHED}{table}", warehouse.results_table(table), _patterns(project).get(table))


def no_results(lake: Lake, project: Project, pattern: str, name: str) -> ProjectError:
    """The error for the pattern `name`, as `pattern` names its file, without results; they may have another name, which
    its file does not give any more."""
    table = next(tables_of(lake, name), None)
    hint = f"run `trendlake run {project.typed(name, project.pattern_path(pattern))}`"
    if table is not None:
        hint = f"its results are in results/{table}: write `renamed_from: {table}` in {name}.yaml"
    return ProjectError(f"{name} has no results yet", hint=hint)


def publishers_of(lake: Lake, table: NamedTable) -> list[str]:
    """The patterns that have published to a results table; none to a quarantine."""
    name = upstream(table.name)
    return [] if name is None else publishers(recent_commits(lake, table.path), name)


def orphans(lake: Lake, project: Project) -> Iterator[Orphan]:
    """The results tables whose pattern has no file in conf/patterns, then the quarantines of sources without a
    contract."""
    patterns, contracts = _patterns(project), _contracts(project)
    for table in results_tables(lake):
        if table not in patterns:
            yield _orphan(lake, lake.warehouse.results_table(table), table)
    for name in tables_in(lake, f"{lake.warehouse.root}/sources"):
        own = name in contracts and name not in lake.warehouse.elsewhere  # a source may have such a name
        if name.endswith(QUARANTINE) and not own and name.removesuffix(QUARANTINE) not in contracts:
            yield _orphan(lake, f"{lake.warehouse.root}/{SOURCES}{name}", None, f"{SOURCES}{name}")


def _orphan(lake: Lake, path: str, table: str | None, name: str = "") -> Orphan:
    commits = recent_commits(lake, path)
    pattern = None if table is None else owner_of(commits, table)
    return Orphan(name or f"{PUBLISHED}{table}", pattern, row_count(lake, path), commits[0].at if commits else None)


def row_count(lake: Lake, path: str) -> int:
    """How many rows the table at `path` has."""
    return Table.at(lake, path).row_count


def _patterns(project: Project) -> dict[str, str]:
    """The patterns of the project's files, by their results tables."""
    return {project.table_of(file.stem) or file.stem: file.stem for file in project.pattern_files()}


def _contracts(project: Project) -> set[str]:
    return {file.stem for file in project.source_contracts()}
