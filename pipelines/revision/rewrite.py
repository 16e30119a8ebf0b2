"""Some rows of a results table on this machine's disk go, others come, by delta-rs.

For MERGE Spark plans, compiles and runs two jobs, which takes ten times as long as a few rows do
(`pipelines.lake.here.write`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.here.read import Condition, Slices, TableHere
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owned_rows import OwnedRows
from trendlake.pipelines.results.publication import Publication
from trendlake.pipelines.revision.difference import WAS, Difference
from trendlake.pipelines.revision.row_diff import Differing
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.frames import frame_of

Chosen = Callable[[pa.Table], pa.Array]
"""Result rows to those that a revision, or a run, decides about."""


@dataclass(frozen=True)
class Published:
    """The `rows` of a `table` that a revision, or a run, decides about. `time`: the results' time column. `near`: how
    many rows there are in the same windows, decided about or not."""

    table: TableHere
    time: str
    rows: pa.Table
    near: int

    @classmethod
    def of(cls, table: TableHere, time: str, slices: Slices, most: int, chosen: Chosen | None = None) -> Published:
        """The rows whose `time` is in `slices`; with `chosen`, those of them for which it is true. Raises
        NotHereError where the rows in `slices` are more than `most`."""
        rows = table.near_time(time, slices).rows(table.schema.names, time, slices, most)
        return cls(table, time, rows if chosen is None else rows.filter(chosen(rows)), rows.num_rows)

    @classmethod
    def among(cls, table: TableHere, time: str, slices: Slices, most: int, only: Condition) -> Published:
        """The rows whose `time` is in `slices` and for which `only` is true. Raises NotHereError where they are
        more than `most`."""
        rows = table.near_time(time, slices).rows(table.schema.names, time, slices, most, only)
        return cls(table, time, rows, rows.num_rows)

    @classmethod
    def of_windows(cls, table: TableHere, time: str, owned: OwnedRows, most: int) -> Published:
        """The rows that are `owned`. Raises NotHereError where they, or those of the files that are read for
        them, are more than `most`."""
        if not any(place.has or place.lacks for place in owned.places):
            return cls.of(table, time, [(place.low, place.high) for place in owned.places] or [(0, 0)], most)
        rows = owned.near(table).every(table.schema.names, most)
        mine = rows.filter(owned.arrow(rows))
        return cls(table, time, mine, mine.num_rows)


@dataclass(frozen=True)
class Rewrite:
    """As `revision.difference.Difference`, of rows that are here."""

    run: Run
    plan: AnyPlan
    there: Published
    differences: Differing

    @property
    def empty(self) -> bool:
        return not any(self.differences.counts.values())

    @property
    def counts(self) -> Mapping[str, int]:
        return self.differences.counts

    def publish(self, note: Note) -> Commit | None:
        """One commit by delta-rs; None where another publication came first. Raises NotHereError, before there
        is a commit."""
        return Publication(self.run, note).change(self.there.table, self.differences.changes(), self.there.time)

    def commit(self, note: Note) -> Commit | None:
        """As a Difference's, which it leaves it to where delta-rs does not write the table."""
        answer = tried(lambda: self.publish(note))
        if not isinstance(answer, NotHere):
            return answer
        rows = self.differences.operations(self.there.time)
        times = [*rows[self.there.time].chunks, *rows[WAS].chunks]
        ends = pc.min_max(pa.chunked_array(times, rows[WAS].type).cast(pa.int64())).as_py()
        frame = frame_of(self.run.lake.spark, rows)
        return Difference(self.run, self.plan, frame, self.counts, ends["min"] or 0, ends["max"] or 0).commit(note)

    def close(self) -> None:
        """Nothing is held but here."""
