"""The rows of the units that changed, where a window holds everything before it: all others stay as they are.

Of a source with many partitions a few are read whole, and not the others. A unit is known by a hash of the columns
that results show: units that share a hash are read, computed and compared together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import UInt64s
from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.execute.hashing import row_hashes
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.results.windows import Stretch, shown_unit
from trendlake.pipelines.runs.events import good_events
from trendlake.pipelines.runs.run import Run


@dataclass(frozen=True)
class ChangedUnits:
    """`hashes`: of the units with changed events, as they were and as they are."""

    run: Run
    hashes: UInt64s

    def chosen(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """Of events, or of result rows, those of the units."""
        return arrow(np.isin(_hashes(self.run, rows), self.hashes))

    def among(self, batch: pa.RecordBatch, near: pa.Array) -> pa.Array:
        """As `chosen`, of the rows that are `near`."""
        return pc.and_(near, self.chosen(batch))

    def events(self, source: TableHere, slices: tuple[Stretch, ...], most: int) -> pa.Table:
        """The good events of the units in `slices`. Raises NotHereError."""
        return good_events(self.run, source, slices, most, self.among)

    def allows(self, near: int, rows: int) -> bool:
        """The limits of a plan are of one unit."""
        return True


def changed_units(run: Run, seen: pa.Table) -> ChangedUnits | None:
    """For the events of `seen` (columns of the plan) that came or went; None where results show no unit, or a window
    holds a part of the time only."""
    if not run.plan.windows.endless or not shown_unit(run.plan):
        return None
    return units_of(run, seen)


def units_of(run: Run, events: pa.Table) -> ChangedUnits:
    """The units of `events` (columns of the plan)."""
    return ChangedUnits(run, np.unique(_hashes(run, events)))


def _hashes(run: Run, rows: pa.Table | pa.RecordBatch) -> UInt64s:
    """Of each row's unit: values are compared in the types that results have."""
    schema, columns = run.plan.result_schema, []
    for name in shown_unit(run.plan):
        column = rows.column(name)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        columns.append(whole.cast(schema.field(name).type, safe=False))
    return row_hashes(columns, rows.num_rows)
