"""Files to try a pattern on: no table, no Spark, and for the files of a pattern's one table not even its package."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.events.windows import BEGINNING
from trendlake.cep_core.plan import times_read
from trendlake.pipelines.authoring.trial import Extent, TableSample, Taken
from trendlake.pipelines.authoring.trial_rows import HeldRows, Span
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.ingest.documents import DocumentFiles
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.xml_names import is_xml
from trendlake.pipelines.rules.split import needed, split
from trendlake.pipelines.runs.watermark import watermark_at


class FileOfRows(HeldRows):
    """A table as it would be if the rows of one or several files were all it holds."""

    version = None

    def __init__(
        self,
        paths: Sequence[Path],
        contract: Contract,
        lateness: int,
        begins: Sequence[str] = (),
        table: pa.Table | None = None,
    ) -> None:
        """`lateness`: how far behind its newest row time has come, microseconds; `table`: the rows, where they are
        computed of the files. Raises SourceFileError for a file that cannot be read or does not have the contract's
        columns and types."""
        if table is None:
            table = pa.concat_tables([_rows_of(path, contract) for path in paths])
        named = [item.name for item in contract.columns]
        others = [name for name in table.column_names if name not in named]
        table = table.select([*named, *others])
        super().__init__(table, split(table, contract), contract, begins)
        self.where, self.lateness = ", ".join(map(str, paths)), lateness

    def watermark(self, near: Span | None) -> int:
        """As if the file were ingested now."""
        limit = time.time_ns() // 1000 + self.contract.future_us
        counts = (self.parted.broken < 0) & self.timed & (self.times <= limit)
        if near is not None:
            counts &= self.times >= near[0]
        times = self.times[counts]
        return watermark_at(int(times.max()) if len(times) else None, self.lateness, near)


def _rows_of(path: Path, contract: Contract) -> pa.Table:
    return DocumentFiles(path, contract).table() if is_xml(path) else read_file(path, contract)


class TrialFile:
    """The files of a plan that reads one table and looks nothing up. See `pipelines.authoring.trial.Sampled`."""

    in_memory = True

    def __init__(self, plan: AnyPlan, rows: FileOfRows) -> None:
        self.plan, self.rows = plan, rows
        self.reference: Mapping[str, pa.Table] = {}

    @property
    def where(self) -> str:
        return self.rows.where

    def extent(self) -> Extent | None:
        return self.rows.extent()

    def newest(self, number: int) -> int | None:
        times = self.rows.newest(number)
        return int(times[-number]) if number <= len(times) else None

    def count(self, start_us: int, end_us: int) -> int:
        return self.rows.count(start_us, end_us)

    def take(self, windows: range) -> Taken:
        contract, span = self.rows.contract, self.plan.windows.span(windows)
        rows = self.rows.take(span)
        table = TableSample(contract.name, self.where, rows.rows, len(self.rows.ordered), rows.broken)
        start, end = times_read(self.plan, windows)
        reached = self.rows.watermark((max(start, BEGINNING), end)) if self.plan.waits else None
        return Taken(needed(self.plan, contract, rows.good), (table,), reached)

    def missing(self, events: pa.Table) -> Sequence[Check]:
        return ()


def files_of(typed_files: Sequence[str], names: Sequence[str], pattern: str) -> dict[str, tuple[Path, ...]]:
    """The files of each table, by its name, of texts such as `orders=o.csv`. `names`: the tables that the pattern
    reads. Raises ProjectError."""
    files: dict[str, tuple[Path, ...]] = {}
    for text in typed_files:
        name, sign, file = text.partition("=")
        if not (sign and name and file):
            raise ProjectError(f"--table {text}: expected NAME=FILE", hint=f"such as --table {names[0]}=FILE")
        if name not in names:
            hint = did_you_mean(name, names) or f"it reads {', '.join(names)}"
            raise ProjectError(f"--table {text}: {pattern} does not read '{name}'", hint=hint)
        if Path(file) in files.get(name, ()):
            raise ProjectError(f"--table {text}: the file is given twice", hint="leave out one of them")
        files[name] = (*files.get(name, ()), Path(file))
    return files
