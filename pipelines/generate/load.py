"""A generated stream on its way into its source's Delta table, or into a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trendlake.pipelines.generate import Stream

DELIVERY = 500_000
"""Rows of one commit."""


@dataclass(frozen=True)
class Asked:
    """The definition of a stream: streams of equal definitions are equal row for row. `start_us`: microseconds since
    the epoch."""

    stream: Stream
    events: int
    rate: float
    seed: int
    start_us: int

    @property
    def feed(self) -> str:
        """Names the stream in the table's history."""
        return (
            f"generated {self.stream.name} 1: seed {self.seed}, {self.events} events, {self.rate!r} a second, "
            f"from {self.start_us}"
        )

    def table(self) -> pa.Table:
        """The whole stream."""
        return self.stream.build(self.events, self.rate, self.seed, self.start_us)


def deliveries(table: pa.Table) -> Iterator[pa.Table]:
    """The stream in commits of `DELIVERY` rows."""
    for offset in range(0, table.num_rows, DELIVERY):
        yield table.slice(offset, DELIVERY)


def write_file(table: pa.Table, path: Path) -> None:
    """The stream as one Parquet file, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(table, partial)
    os.replace(partial, path)
