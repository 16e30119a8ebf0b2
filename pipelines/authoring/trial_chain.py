"""A pattern that reads results, tried on a file of the events that its chain begins with: the patterns upstream are
computed first, of all their windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import NotSupportedError
from trendlake.pipelines.authoring.trial import sample
from trendlake.pipelines.authoring.trial_file import FileOfRows, TrialFile
from trendlake.pipelines.authoring.validate import compiled_quietly
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.project.paths import Project, upstream


def file_of_chain(
    project: Project, plan: AnyPlan, contract: Contract, files: Sequence[Path], lateness: int
) -> TrialFile:
    """The files as the one table of a plan; where that is results (`contract`), as the rows that the pattern upstream
    gives over the files. `lateness`: as of `FileOfRows`. Raises SourceFileError, NotSupportedError, and what a pattern
    upstream raises."""
    name = upstream(contract.name)
    table = None if name is None else _results(project, name, plan, contract, files)
    begins = (plan.interval_start,) if plan.interval_start else ()
    return TrialFile(plan, FileOfRows(files, contract, lateness, begins, table))


def _results(project: Project, name: str, reader: AnyPlan, contract: Contract, files: Sequence[Path]) -> pa.Table:
    """The results of the pattern `name` over the files."""
    if contract.made_id and reader.schema.event_id in reader.columns:
        message = f"rows of '{contract.name}' get their ids when they are published, and the pattern reads them"
        raise NotSupportedError(message, hint=f"`trendlake run {name}`, then leave out the file")
    pattern, plan = compiled_quietly(project, project.pattern_path(name))
    sources = sources_of(project, pattern)
    if sources.named:
        message = f"{name} reads several tables, and --events is a file of one"
        raise NotSupportedError(message, hint=f"`trendlake run {name}`, then leave out the file")
    first = file_of_chain(project, plan, sources.contract, files, 0)
    rows = sample(plan, first, len(first.rows.ordered)).rows
    return rows.select([column.name for column in contract.columns])
