"""Rows of one table that this process holds, to try a pattern on: they are judged as a run judges them, without
Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.intervals import beginnings
from trendlake.pipelines.authoring.trial import Extent
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.rules.split import Split

Span = tuple[int, int]
"""A half-open range of times, microseconds."""


@dataclass(frozen=True)
class TakenRows:
    """Good rows of a table, with the columns that the pattern reads of it and perhaps others; of all `rows` how many
    broke the contract, by the first rule broken."""

    good: pa.Table
    rows: int
    broken: Mapping[str, int]


class SampledTable(Protocol):
    """One of the tables that a pattern reads."""

    @property
    def where(self) -> str:
        """A file, or the version of a table, for people."""

    @property
    def version(self) -> int | None:
        """The version of a table; None for a file."""

    def extent(self) -> Extent | None:
        """None where no row has a time."""

    def newest(self, number: int) -> Int64s:
        """The times of the newest rows, microseconds: `number` of them or all."""

    def count(self, start_us: int, end_us: int) -> int:
        """Rows whose time, or interval, is in the half-open range."""

    def take(self, span: Span | None) -> TakenRows:
        """The rows whose time, or interval, is in the range, and those without a time; None: all rows."""

    def watermark(self, near: Span | None) -> int:
        """How far time is known to have come, microseconds; with `near` clamped to it."""


class HeldRows(ABC):
    """All rows of a file or of a table; a `SampledTable`."""

    def __init__(self, table: pa.Table, parted: Split, contract: Contract, begins: Sequence[str] = ()) -> None:
        """`table`: the contract's columns, and others behind them; `parted`: which of its rows break the contract, of
        all, as keys are unique among all. `begins`: columns with the times at which events begin that last."""
        self.table, self.parted, self.contract = table, parted, contract
        time = pa.nulls(table.num_rows, pa.timestamp("us", "UTC"))
        if not contract.is_reference:
            time = table.column(contract.event_time).combine_chunks()
        self.timed: Bools = numbers(pc.is_valid(time))
        self.times: Int64s = numbers(time.cast(pa.int64()), 0)
        self.begins = self.times
        for name in begins:
            self.begins = np.minimum(beginnings(table.column(name), self.times), self.begins)
        self.ordered, self.beginnings = (np.sort(times[self.timed]) for times in (self.times, self.begins))

    def extent(self) -> Extent | None:
        if not len(self.ordered):
            return None
        return Extent(len(self.ordered), int(self.beginnings[0]), int(self.ordered[-1]))

    def newest(self, number: int) -> Int64s:
        return self.ordered[-number:]

    def count(self, start_us: int, end_us: int) -> int:
        return int(np.searchsorted(self.beginnings, end_us) - np.searchsorted(self.ordered, start_us))

    def take(self, span: Span | None) -> TakenRows:
        good, inside = self.parted.broken < 0, np.ones(self.table.num_rows, np.bool_)
        if span is not None:
            inside = ((self.times >= span[0]) & (self.begins < span[1])) | ~self.timed
        counts = Counter(self.contract.rules[number].name for number in self.parted.broken[inside & ~good].tolist())
        return TakenRows(self.table.filter(arrow(inside & good)), int(np.count_nonzero(inside)), dict(counts))

    @abstractmethod
    def watermark(self, near: Span | None) -> int:
        """As of `SampledTable`."""
