"""Checking a project's files without running them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cep_core import AnyPlan, Pattern, PatternErrors, PatternWarning, compile_query
from cep_core.errors import TrendlakeError, UnknownAttributeError
from cep_core.events.schema import EventSchema
from cep_core.load import read_pattern
from pipelines.authoring.advice import notes_on
from pipelines.contracts.contract import contract_of
from pipelines.contracts.document import load_document
from pipelines.contracts.pattern_source import source_contract
from pipelines.contracts.results import check_templates
from pipelines.errors import ProjectError
from pipelines.project.paths import Project
from pipelines.project.selection import check_member


def compiled(project: Project, path: Path) -> tuple[Pattern, AnyPlan]:
    """A pattern and its plan against its source's contract; conditions without effect warn (PatternWarning).

    Raises PatternErrors with all mistakes of the file, also where there is no such source or its contract is wrong;
    ContractErrors where nothing but the contract is; ProjectError for a link out of the project.
    """
    pattern, errors = read_pattern(project.own(path))
    if pattern is None or pattern.source is None:
        raise PatternErrors(errors)
    try:
        contract = source_contract(project, pattern.source, (pattern.name,))
    except ProjectError as error:
        error.place = pattern.document.place(("source",))
        raise PatternErrors([*_errors_of_itself(path), error]) from None
    except PatternErrors as failure:
        own = _errors_of_itself(path)
        raise PatternErrors([*own, *failure.errors]) if own else failure from None
    return pattern, compile_query(path, contract.event_schema())


def _errors_of_itself(path: Path) -> list[TrendlakeError]:
    """What is wrong with a pattern file whatever columns its source may have."""
    nothing = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string"})
    try:
        compile_query(path, nothing)
    except PatternErrors as failure:
        return [error for error in failure.errors if not isinstance(error, UnknownAttributeError)]
    return []


def check_pattern(project: Project, path: Path) -> Pattern:
    """A pattern that compiles against its source's contract. Raises as `compiled` does; warns of nothing."""
    return compiled_quietly(project, path)[0]


def compiled_quietly(project: Project, path: Path) -> tuple[Pattern, AnyPlan]:
    """As `compiled`; warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        return compiled(project, path)


def check_files(project: Project, files: list[Path]) -> Iterator[tuple[Path, TrendlakeError | None, list[str]]]:
    """Each file (all patterns and contracts of the project, when none is named) with its error and warnings."""
    contracts, patterns = sorted(project.contracts.glob("*.yaml")), project.pattern_files()
    read = cache(lambda path: read_pattern(path)[0])
    for path in files or [*contracts, *patterns]:
        notes: list[str] = []
        error = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PatternWarning)
            try:
                notes = _check(project, path, lambda pattern: check_member(pattern, patterns, read))
            except TrendlakeError as raised:
                error = raised
        yield path, error, [*(str(item.message) for item in caught if item.category is PatternWarning), *notes]


def _check(project: Project, path: Path, among_others: Callable[[Pattern], None]) -> list[str]:
    """What is rarely meant in a file without mistakes. Raises TrendlakeError."""
    if path.resolve().parent != project.contracts.resolve():
        pattern, plan = compiled(project, path)
        among_others(pattern)
        return notes_on(project, str(pattern.source), plan.advice)
    if path.stem.startswith("results_"):
        check_templates(*load_document(project.own(path)))
        return []
    contract = contract_of(*load_document(project.own(path)), events=True)
    return notes_on(project, contract.name, contract.advice)
