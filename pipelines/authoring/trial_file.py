"""A file of events to try a pattern on: no table, no Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from trendlake.pipelines.authoring.trial_rows import HeldRows, Span
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.documents import DocumentFiles
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.xml_names import is_xml
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.runs.watermark import watermark_at


class FileOfRows(HeldRows):
    """A table as it would be if the file's rows were all it holds."""

    version = None

    def __init__(self, path: Path, contract: Contract, lateness: int, begins: Sequence[str] = ()) -> None:
        """`lateness`: how far behind its newest row time has come, microseconds. Raises SourceFileError for a file that
        cannot be read or does not have the contract's columns and types."""
        table = DocumentFiles(path, contract).table() if is_xml(path) else read_file(path, contract)
        named = [item.name for item in contract.columns]
        others = [name for name in table.column_names if name not in named]
        table = table.select([*named, *others])
        super().__init__(table, split(table, contract), contract, begins)
        self.where, self.lateness = f"{path}", lateness

    def watermark(self, near: Span | None) -> int:
        """As if the file were ingested now."""
        limit = time.time_ns() // 1000 + self.contract.future_us
        counts = (self.parted.broken < 0) & self.timed & (self.times <= limit)
        if near is not None:
            counts &= self.times >= near[0]
        times = self.times[counts]
        return watermark_at(int(times.max()) if len(times) else None, self.lateness, near)
