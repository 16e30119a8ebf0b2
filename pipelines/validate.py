"""Checking a project's files without running them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from cep_core import Pattern, PatternWarning, compile_plan, load_pattern
from cep_core.errors import TrendlakeError
from pipelines.contract import contract_of, load_contract, load_document
from pipelines.project import Project
from pipelines.results_contract import check_templates


def check_pattern(project: Project, path: Path) -> Pattern:
    """A pattern that compiles against its source's contract. Raises PatternErrors, ContractErrors, ProjectError."""
    pattern = load_pattern(path)
    contract = load_contract(project.contract_path(str(pattern.source)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        compile_plan(pattern, contract.event_schema())
    return pattern


def check_files(project: Project, files: list[Path]) -> Iterator[tuple[Path, TrendlakeError | None, list[str]]]:
    """Each file (all patterns and contracts of the project, when none is named) with its error and warnings."""
    contracts = sorted(project.contracts.glob("*.yaml"))
    for path in files or [*contracts, *project.pattern_files()]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PatternWarning)
            try:
                _check(project, path)
                error = None
            except TrendlakeError as found:
                error = found
        yield path, error, [str(item.message) for item in caught if item.category is PatternWarning]


def _check(project: Project, path: Path) -> None:
    if path.resolve().parent != project.contracts.resolve():
        pattern = load_pattern(path)
        contract = load_contract(project.contract_path(str(pattern.source)))
        compile_plan(pattern, contract.event_schema())
    elif path.stem.startswith("results_"):
        check_templates(*load_document(path))
    else:
        contract_of(*load_document(path), events=True)
