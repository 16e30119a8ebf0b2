"""The tables that a pattern is tried on: each a file or the newest version in the warehouse; events of several are
united, and reference tables looked up, by the code of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from trendlake.cep_core.derived import one_table
from trendlake.cep_core.errors import NotSupportedError
from trendlake.pipelines.authoring.trial import Extent, TableSample, Taken
from trendlake.pipelines.authoring.trial_file import FileOfRows
from trendlake.pipelines.authoring.trial_rows import HeldRows, SampledTable, TakenRows
from trendlake.pipelines.authoring.trial_table import newest_version
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import SourceFileError, SourceMissingError
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.results.missing_rows import missing_here
from trendlake.pipelines.results.reference_tables import for_lookups, refuse_repeated, stored_columns
from trendlake.pipelines.results.source_events import reads_id
from trendlake.pipelines.results.union_events import own_columns
from trendlake.pipelines.rules.split import needed
from trendlake.pipelines.runs.consistency import least_by
from trendlake.pipelines.runs.run import Run


class TrialTables:
    """The tables of a run, whose interval is not asked. See `pipelines.authoring.trial.Sampled`."""

    def __init__(self, run: Run, tables: Mapping[str, SampledTable]) -> None:
        """`tables`: each by its key. Raises LookupRepeatedError."""
        self.run, self.tables = run, tables
        self._taken: dict[str, TakenRows] = {}
        self.reference: dict[str, pa.Table] = {}
        for part in run.references:
            rows = self._taken[part.key] = self.tables[part.key].take(None)
            self.reference[part.key] = for_lookups([part], rows.good, self.tables[part.key].version)
        for lookup in run.plan.schema.lookups:
            refuse_repeated(run, lookup, self.reference)

    @classmethod
    def of(cls, run: Run, files: Mapping[str, Sequence[Path]]) -> TrialTables:
        """`files`: by the name of a table; all others as they are in the warehouse. Raises SourceMissingError (a table
        has neither), SourceFileError, SourceSchemaError, NotSupportedError, LookupRepeatedError."""
        return cls(run, _tables_of(run, files))

    @property
    def where(self) -> str:
        """`orders.csv, payments at version 3`; files of several tables by their names."""
        return ", ".join(_where(self.run, key, table) for key, table in self.tables.items())

    @cached_property
    def _events(self) -> dict[str, SampledTable]:
        return {part.key: self.tables[part.key] for part in self.run.parts}

    @property
    def in_memory(self) -> bool:
        return all(isinstance(table, HeldRows) for table in self._events.values())

    def extent(self) -> Extent | None:
        extents = [one for table in self._events.values() if (one := table.extent()) is not None]
        if not extents:
            return None
        rows = sum(one.rows for one in extents)
        return Extent(rows, min(one.oldest for one in extents), max(one.newest for one in extents))

    def newest(self, number: int) -> int | None:
        times = np.sort(np.concatenate([table.newest(number) for table in self._events.values()]))
        return int(times[-number]) if number <= len(times) else None

    def count(self, start_us: int, end_us: int) -> int:
        return sum(table.count(start_us, end_us) for table in self._events.values())

    def take(self, windows: range) -> Taken:
        plan, span = self.run.plan, self.run.plan.windows.span(windows)
        taken = {key: table.take(span) for key, table in self._events.items()}
        return Taken(
            self._read({key: rows.good for key, rows in taken.items()}),
            self._samples(taken),
            self._reached(windows) if plan.waits else None,
        )

    def _read(self, good: Mapping[str, pa.Table]) -> pa.Table:
        """Of good rows of each table what the plan reads: its columns and its event types."""
        plan = self.run.plan
        if self.run.sources.united:
            return one_table(good, plan.schema, plan.columns)
        return needed(plan, self.run.contract, good[self.run.key])

    def _samples(self, taken: Mapping[str, TakenRows]) -> tuple[TableSample, ...]:
        of_events = [self._sample(key, rows) for key, rows in taken.items()]
        others = [(key, rows) for key, rows in self._taken.items() if key not in taken]
        return (*of_events, *(self._sample(key, rows, reference=True) for key, rows in others))

    def _sample(self, key: str, rows: TakenRows, *, reference: bool = False) -> TableSample:
        table = self.tables[key]
        extent = None if reference else table.extent()
        there = rows.rows if reference else 0 if extent is None else extent.rows
        name = self.run.sources.table(key).contract.name
        return TableSample(name, table.where, rows.rows, there, rows.broken, reference)

    def _reached(self, windows: range) -> int:
        return least_by(
            self.run, lambda part, near: self.tables[part.key].watermark(near), self.run.narrowed(windows).span
        )

    def missing(self, events: pa.Table) -> list[Check]:
        return missing_here(self.run, events, self.reference)


def _tables_of(run: Run, files: Mapping[str, Sequence[Path]]) -> dict[str, SampledTable]:
    """Each table of a run by its key. Raises as `TrialTables.of`."""
    parts = {part.key: part for part in run.every_part}
    _refuse_missing(run, [part for part in parts.values() if part.contract.name not in files])
    tables: dict[str, SampledTable] = {}
    for key, part in parts.items():
        name, events = part.contract.name, not part.whole
        begins = part.begins if events else ()
        ids = events and reads_id(part, run.plan)
        if name not in files:
            tables[key] = newest_version(part, _columns(run, part), begins, ids=ids)
            continue
        if ids and part.contract.made_id:
            message = f"a file has no ids of '{name}': results make them of their key, and {run.name} reads them"
            raise NotSupportedError(message, hint=f"leave out the file: the pattern is tried on the table '{name}'")
        try:
            tables[key] = FileOfRows(files[name], part.contract, part.lateness, begins)
        except SourceFileError as error:
            if not run.sources.named:
                raise
            raise SourceFileError(f"{name}: {error.message}", hint=error.hint) from None
    return tables


def _refuse_missing(run: Run, parts: Iterable[Run]) -> None:
    """Raises SourceMissingError that names each table that is missing."""
    errors = [
        (part, run.warehouse.missing(part.contract.name))
        for part in parts
        if not exists(part.lake, part.warehouse.source(part.contract.name))
    ]
    if not errors:
        return
    options = " ".join(f"--table {part.contract.name}=FILE" for part, _ in errors)
    if not run.sources.named:
        options = "--events FILE"
    what = "files" if len(errors) > 1 else "a file"
    hints = " and ".join(dict.fromkeys(str(error.hint) for _, error in errors))
    message = "; ".join(error.message for _, error in errors)
    raise SourceMissingError(message, hint=f"{hints}; or try the pattern on {what}: {options}")


def _columns(run: Run, part: Run) -> list[str]:
    """The columns of the one table of `part` that the run reads, in the order of its contract."""
    plan, names = run.plan, set[str]()
    if not part.whole:
        events = own_columns(part, plan) if run.sources.united else (*plan.columns, plan.schema.event_type)
        names |= {*events, *part.begins}
    names |= {name for one in run.references if one.key == part.key for name in stored_columns([one])}
    return [item.name for item in part.contract.columns if item.name in names]


def _where(run: Run, key: str, table: SampledTable) -> str:
    """A table in the title of a trial."""
    if table.version is not None or not run.sources.named:
        return table.where
    return f"{key} in {table.where}"
