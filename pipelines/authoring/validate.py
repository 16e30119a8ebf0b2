"""Checking a project's files without running them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from trendlake.cep_core import AnyPlan, Pattern, PatternErrors, PatternWarning, compile_query
from trendlake.cep_core.errors import BadValueError, TrendlakeError, UnknownAttributeError, did_you_mean
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.load import read_pattern
from trendlake.pipelines.authoring.advice import notes_on
from trendlake.pipelines.contracts.contract import contract_of
from trendlake.pipelines.contracts.document import load_document
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.contracts.results import check_templates
from trendlake.pipelines.errors import ContractErrors, ProjectError
from trendlake.pipelines.project.batches import batch_of
from trendlake.pipelines.project.dag_names import DagNames, may_clash
from trendlake.pipelines.project.paths import TEMPLATES, Project, odd_entries
from trendlake.pipelines.project.profile import Profile, profile_or_default
from trendlake.pipelines.project.renames import refuse_bad_rename
from trendlake.pipelines.project.selection import check_member
from trendlake.pipelines.project.shipped import shipped
from trendlake.pipelines.project.table_names import shared_table


def compiled(project: Project, path: Path) -> tuple[Pattern, AnyPlan]:
    """A pattern and its plan against its source's contract; conditions without effect warn (PatternWarning).

    Raises PatternErrors with all mistakes of the file, also where there is no such source or its contract is wrong;
    ContractErrors where nothing but the contract is; ProjectError for a link out of the project.
    """
    pattern, errors = read_pattern(project.own(path))
    if pattern is None or not pattern.tables:
        raise PatternErrors(errors)
    if pattern.sources is not None and errors:
        raise PatternErrors(errors)
    refuse_bad_rename(project, pattern, path)
    try:
        sources = sources_of(project, pattern)
    except ProjectError as error:
        error.place = error.place or pattern.document.place(("source" if pattern.sources is None else "sources",))
        raise PatternErrors([*_errors_of_itself(path, pattern), error]) from None
    except PatternErrors as failure:
        own = _errors_of_itself(path, pattern)
        raise PatternErrors([*own, *failure.errors]) if own else failure from None
    return pattern, compile_query(path, sources.schema, sources.reference_columns)


def _errors_of_itself(path: Path, pattern: Pattern) -> list[TrendlakeError]:
    """The errors of a pattern file that do not depend on the columns of its source; none of several tables, where those
    of its shape have been raised."""
    if pattern.sources is not None:
        return []
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
    contracts, patterns = project.contract_files(), project.pattern_files()
    read = cache(lambda path: read_pattern(path)[0])
    if not files:
        for folder in (project.contracts, project.patterns):
            for path, wrong in odd_entries(folder, project.root):
                yield path, wrong, []
    profile = profile_or_default(project)

    def among_others(pattern: Pattern) -> None:
        check_member(pattern, patterns, read, profile.batches)
        if may_clash(pattern.name) or may_clash(batch_of(pattern, profile.batches) or ""):
            others = {path.stem: other for path in patterns if (other := read(path)) and other.name == path.stem}
            everything = {name: other for name, other in others.items() if other.tables} | {pattern.name: pattern}
            names = DagNames.of(everything, profile.batches, profile.sources)
            if mistakes := names.mistakes.get(pattern.name):
                raise PatternErrors(list(mistakes))

    for path in files or [*contracts, *patterns]:
        notes: list[str] = []
        error = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PatternWarning)
            try:
                notes = _check(project, profile, path, among_others)
            except TrendlakeError as raised:
                error = raised
        yield path, error, [*(str(item.message) for item in caught if item.category is PatternWarning), *notes]


def _check(project: Project, profile: Profile, path: Path, among_others: Callable[[Pattern], None]) -> list[str]:
    """Notes on expressions that are rarely meant in a file without mistakes. Raises TrendlakeError."""
    if path.resolve().parent != project.contracts.resolve():
        pattern, plan = compiled(project, path)
        among_others(pattern)
        return list(dict.fromkeys(note for table in pattern.tables for note in notes_on(project, table, plan.advice)))
    document, source = load_document(project.own(path))
    if path.stem.startswith(TEMPLATES):
        templates = [file.stem for file in shipped("data_contracts").glob(f"{TEMPLATES}*.yaml")]
        if path.stem not in templates:
            message = f"'{path.stem}' is no contract of results, and names of sources do not begin with {TEMPLATES}"
            place = source.place(("schema", 0, "name"))
            raise ContractErrors([BadValueError(message, place=place, hint=did_you_mean(path.stem, templates))])
        check_templates(document, source)
        return []
    contract = contract_of(document, source, events=True)
    error = shared_table(contract.name, project.contracts, profile.sources)
    if error is not None:
        error.place = source.place(("schema", 0, "name"))
        raise ContractErrors([error])
    return notes_on(project, contract.name, contract.advice)
