"""A pattern's results as the source of another (Cayuga's PUBLISH): `source: results/<pattern>`.

Each result row is an event: of the type that is its pattern's name, at the moment from which it can be known
(`ResultShape.known_at`), identified by its table's key. Its columns follow from that pattern and its results contract,
whose rules were checked before the rows were published: none is quarantined here. The table has a change feed like any
source, so a revision upstream is a change here, and is revised in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trendlake.cep_core import AnyPlan, Pattern, compile_plan, load_pattern
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import family
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS
from trendlake.pipelines.contracts.contract import ID_COLUMN, TYPE_COLUMN, Contract, load_contract
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.contracts.sources import Sources, SourceTable
from trendlake.pipelines.errors import CycleError, ProjectError
from trendlake.pipelines.project.paths import PUBLISHED, Project, upstream


def sources_of(project: Project, pattern: Pattern, readers: tuple[str, ...] = ()) -> Sources:
    """The tables that a pattern reads, with their contracts. `readers`, errors: as of `source_contract`; of several
    wrong tables the first by name."""
    readers = (*readers, pattern.name)
    references = tuple(_references(project, pattern, readers))
    if pattern.sources is None:
        return Sources.of(contract_of_events(project, str(pattern.source), readers), references)
    idle = {entry.source: entry.idle for entry in pattern.sources.values()}
    tables = [SourceTable(name, contract_of_events(project, name, readers), idle[name]) for name in sorted(idle)]
    return Sources(tuple(tables), united=True, references=references)


def _references(project: Project, pattern: Pattern, readers: tuple[str, ...]) -> Iterator[SourceTable]:
    """The reference tables of a pattern, by name."""
    lookup_of = {one.table: name for name, one in pattern.lookup.items()}
    for table in sorted(lookup_of):
        try:
            yield SourceTable(table, source_contract(project, table, readers))
        except ProjectError as error:
            error.place = pattern.document.place(("lookup", lookup_of[table], "table"))
            raise


def contract_of_events(project: Project, source: str, readers: tuple[str, ...] = ()) -> Contract:
    """As `source_contract`, of a table whose rows are events. Raises ProjectError for a reference table, too."""
    contract = source_contract(project, source, readers)
    if contract.is_reference:
        raise ProjectError(
            f"'{source}' is a reference table: it has no event_time",
            hint=f"name it under lookup; for events give columns of {contract.file} the event roles",
        )
    return contract


def source_contract(project: Project, source: str, readers: tuple[str, ...] = ()) -> Contract:
    """The contract of a table that a pattern reads, which may be another pattern's results. `readers`: the pattern that
    reads it, after those that read that pattern's results.

    Raises ProjectError (there is no such source), CycleError, ContractErrors, and PatternErrors of patterns upstream.
    """
    name = upstream(source)
    if name is None:
        return load_contract(project.contract_path(source))
    if name in readers:
        circle = " reads ".join((*readers[readers.index(name) :], name))
        raise CycleError(f"a pattern would read its own results: {circle}", hint="let one of them read another source")
    pattern = load_pattern(project.pattern_path(name))
    read = sources_of(project, pattern, readers)
    plan = compile_plan(pattern, read.schema, read.reference_columns)
    keeps = results_contract(project.contract_path(contract_name(plan)), plan, name)
    return resubscribed(keeps, plan, read)


def resubscribed(results: Contract, plan: AnyPlan, read: Sources) -> Contract:
    """The results of `plan` as a source of events. `read`: what the plan itself reads.

    Late events of that source change windows that end up to its lateness before its newest event; the newest window
    has begun by then and ends a length later. So a result is late by no more than both together, and as far in
    the future: a window ends up to a length after the event that begins it. Raises ProjectError
    where a column has the name of one that every event has.
    """
    columns = tuple(
        item for item in results.columns if item.name not in PROVENANCE_COLUMNS and family(item.type) != "other"
    )
    key = [item for item in columns if item.name in results.key]
    needs_id = len(results.key) != 1 or [item.type for item in key] != ["string"]
    added = {TYPE_COLUMN, *({ID_COLUMN} if needs_id else ())}
    taken = sorted(item.name for item in columns if same_name(item.name) in added)
    if taken:
        raise ProjectError(
            f"the results of '{results.name}' cannot be a source: they have a column '{taken[0]}' of their own",
            hint="give it another name there",
        )
    late = None if read.lateness_us is None else read.lateness_us + plan.windows.longest
    return replace(
        results,
        name=f"{PUBLISHED}{results.name}",
        columns=columns,
        rules=(),
        roles={
            "event_id": ID_COLUMN if needs_id else results.key[0],
            "event_time": plan.result_shape.known_at,
            "event_type": TYPE_COLUMN,
        },
        made_id=needs_id,
        begins=plan.result_shape.begins,
        types=(results.name,),
        constant_type=results.name,
        lateness_us=late,
        max_future_us=read.max_future_us,
        ahead_us=read.ahead_us + plan.windows.longest,
    )
