"""Rows that this process holds, to try a pattern on: they are judged as a run judges them, without Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.intervals import beginnings
from trendlake.pipelines.authoring.trial import Extent, Taken, events_of
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.rules.split import Split


class HeldRows(ABC):
    """All rows of a file or of a table; see `pipelines.authoring.trial.Sampled`."""

    def __init__(self, table: pa.Table, parted: Split, contract: Contract, plan: AnyPlan) -> None:
        """`table`: the contract's columns, and others behind them; `parted`: which of its rows break the contract, of
        all, as keys are unique among all."""
        self.table, self.parted, self.contract, self.plan = table, parted, contract, plan
        time = table.column(contract.event_time).combine_chunks()
        self.timed: Bools = numbers(pc.is_valid(time))
        self.times = numbers(time.cast(pa.int64()), 0)
        self.begins = self.times
        if plan.interval_start is not None:
            self.begins = np.minimum(beginnings(table.column(plan.interval_start), self.times), self.times)
        self.ordered, self.beginnings = (np.sort(times[self.timed]) for times in (self.times, self.begins))

    def extent(self) -> Extent | None:
        if not len(self.ordered):
            return None
        return Extent(len(self.ordered), int(self.beginnings[0]), int(self.ordered[-1]))

    def newest(self, number: int) -> int | None:
        return int(self.ordered[-number]) if number <= len(self.ordered) else None

    def count(self, start_us: int, end_us: int) -> int:
        return int(np.searchsorted(self.beginnings, end_us) - np.searchsorted(self.ordered, start_us))

    def take(self, windows: range) -> Taken:
        """A row without a time belongs to every range."""
        start, end = self.plan.windows.span(windows)
        good, within = self.parted.broken < 0, (self.times >= start) & (self.begins < end)
        inside = within | ~self.timed
        counts = Counter(self.contract.rules[number].name for number in self.parted.broken[inside & ~good].tolist())
        events = events_of(self.table.filter(arrow(inside & good)), self.contract, self.plan)
        rows = int(np.count_nonzero(inside))
        return Taken(events, rows, dict(counts), self.watermark(windows))

    @abstractmethod
    def watermark(self, windows: range) -> int | None:
        """How far time is known to have come, microseconds, for the windows."""
