"""A file of events to try a pattern on: no table, no Spark."""

from __future__ import annotations

import time
from pathlib import Path

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.authoring.trial_rows import HeldRows
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.documents import DocumentFiles
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.xml_names import is_xml
from trendlake.pipelines.rules.split import split


class FileOfEvents(HeldRows):
    """The source as it would be if the file's rows were all it holds."""

    def __init__(self, path: Path, contract: Contract, plan: AnyPlan, lateness: int) -> None:
        """Raises SourceFileError for a file that cannot be read or does not have the contract's columns and types."""
        table = DocumentFiles(path, contract).table() if is_xml(path) else read_file(path, contract)
        named = [item.name for item in contract.columns]
        others = [name for name in table.column_names if name not in named]
        table = table.select([*named, *others])
        super().__init__(table, split(table, contract), contract, plan)
        self.lateness = lateness

    def watermark(self, windows: range) -> int:
        """As if the file were ingested now."""
        start, end = self.plan.windows.span(windows)
        limit = time.time_ns() // 1000 + self.contract.future_us
        good = self.parted.broken < 0
        newest = int(self.times[good & self.timed & (self.times <= limit)].max(initial=start)) - self.lateness
        return min(end, newest)
