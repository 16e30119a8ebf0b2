"""A file of events to try a pattern on: no table, no Spark."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core import AnyPlan
from cep_core.events.arrays import arrow, numbers
from pipelines.authoring.trial import Extent, Taken, events_of
from pipelines.contracts.contract import Contract
from pipelines.ingest.documents import DocumentFiles
from pipelines.ingest.readers.files import read_file
from pipelines.ingest.readers.xml_names import is_xml
from pipelines.quality.arrow_split import split


class FileOfEvents:
    """What would be in the source if the file's rows were all it holds; see `pipelines.authoring.trial.Sampled`."""

    def __init__(self, path: Path, contract: Contract, plan: AnyPlan, lateness: int) -> None:
        """Raises SourceFileError for a file that cannot be read or does not have the contract's columns and types."""
        table = DocumentFiles(path, contract).table() if is_xml(path) else read_file(path, contract)
        named = [item.name for item in contract.columns]
        self.table = table.select([*named, *[name for name in table.column_names if name not in named]])
        self.contract, self.plan, self.lateness = contract, plan, lateness
        self.timed = numbers(pc.is_valid(self.table.column(contract.event_time)).combine_chunks())
        moments = self.table.column(contract.event_time).combine_chunks().cast(pa.int64())
        self.times = numbers(moments, 0)
        self.ordered = np.sort(self.times[self.timed])

    def extent(self) -> Extent | None:
        if not len(self.ordered):
            return None
        return Extent(len(self.ordered), int(self.ordered[0]), int(self.ordered[-1]))

    def newest(self, number: int) -> int | None:
        return int(self.ordered[-number]) if number <= len(self.ordered) else None

    def count(self, start_us: int, end_us: int) -> int:
        low, high = np.searchsorted(self.ordered, [start_us, end_us])
        return int(high - low)

    def take(self, windows: range) -> Taken:
        """Keys are unique in the whole file, so it is split whole; a row without a time belongs to every range."""
        start, end = self.plan.windows.span(windows)
        parted = split(self.table, self.contract)
        good, within = parted.broken < 0, (self.times >= start) & (self.times < end)
        inside = within | ~self.timed
        counts = Counter(self.contract.rules[number].name for number in parted.broken[inside & ~good].tolist())
        events = events_of(self.table.filter(arrow(inside & good)), self.contract, self.plan)
        # as if the file were ingested now
        limit = time.time_ns() // 1000 + self.contract.future_us
        newest = int(self.times[good & self.timed & (self.times <= limit)].max(initial=start)) - self.lateness
        return Taken(events, int(np.count_nonzero(inside)), dict(counts), parted.unjudged, min(end, newest))
