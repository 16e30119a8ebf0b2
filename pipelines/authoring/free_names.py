"""Which names new sources and patterns of a project may have."""

from __future__ import annotations

from trendlake.cep_core.load import read_pattern
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.dag_names import DagNames, former_revision_id, ingestion_id, source_revision_id
from trendlake.pipelines.project.paths import TABLE_NAME, Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.table_names import refuse_template, shared_table


def refuse_source(project: Project, profile: Profile, name: str) -> None:
    """Raises ProjectError for a name that no new source of the project may have."""
    _refuse_form(name)
    refuse_template(name)
    error = shared_table(name, project.contracts, profile.sources)
    if error is not None:
        raise error
    names = dag_names(project, profile)
    if name not in names.ingested and name not in profile.sources:
        _refuse_dags([ingestion_id(name), source_revision_id(name)], names)


def refuse_pattern(project: Project, profile: Profile, name: str) -> None:
    """Raises ProjectError for a name that no new pattern of the project may have."""
    _refuse_form(name)
    owner = project.renamed(name)
    if owner is not None:
        raise ProjectError(f"the results of '{owner}' are called '{name}': it was renamed", hint="take another name")
    if not (project.patterns / f"{name}.yaml").exists():
        former = former_revision_id(name)
        another = [former] if (project.patterns / f"{former}.yaml").exists() else []
        _refuse_dags([name, *another], dag_names(project, profile))


def dag_names(project: Project, profile: Profile) -> DagNames:
    """The DAGs of the project's patterns that can be read."""
    read = {path.stem: read_pattern(path)[0] for path in project.pattern_files()}
    patterns = {name: pattern for name, pattern in read.items() if pattern and pattern.tables and pattern.name == name}
    return DagNames.of(patterns, profile.batches, profile.sources)


def _refuse_form(name: str) -> None:
    if not TABLE_NAME.fullmatch(name):
        raise ProjectError(f"'{name}' is no name: lower case letters, digits and _, beginning with a letter")


def _refuse_dags(dags: list[str], names: DagNames) -> None:
    for dag in dags:
        if dag in names.makers:
            raise ProjectError(
                f"there would be two DAGs '{dag}' in Airflow: one {names.makers[dag]}", hint="take another name"
            )
