"""Some rows of a results table on this machine's disk go, others come: the files are written in this process, and Delta
commits them.

For MERGE Spark plans, compiles and runs two jobs, which takes ten times as long as a few rows do (`local_commit`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.pipelines.delta import limits, local_commit
from trendlake.pipelines.delta.commits import Commit
from trendlake.pipelines.delta.local_log import Action, local_errors
from trendlake.pipelines.delta.local_reader import Slices, TableHere, inside
from trendlake.pipelines.errors import LocalUnsupportedError
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
    """The rows of a table that are `chosen`: those in each file of `table`, which is the part of it that may have some.
    `time`: the results' time column. `near`: how many rows there are in the same windows, chosen or not."""

    table: TableHere
    time: str
    parts: tuple[pa.Table, ...]
    near: int
    chosen: Chosen

    @classmethod
    def of(cls, table: TableHere, time: str, slices: Slices, most: int, chosen: Chosen | None = None) -> Published:
        """The rows whose `time` is in `slices`; with `chosen`, those of them for which it is true. Raises
        LocalUnsupportedError where the rows in `slices` are more than `most`."""
        table = table.near_time(time, slices)
        parts = _parts(table, most, lambda file, left: file.rows(table.schema.names, time, slices, left))
        near = sum(part.num_rows for part in parts)
        if chosen is not None:
            parts = tuple(part.filter(chosen(part)) for part in parts)

        def both(rows: pa.Table) -> pa.Array:
            mask = inside(rows, time, slices)
            return mask if chosen is None else pc.and_(mask, chosen(rows))

        return cls(table, time, parts, near, both)

    @classmethod
    def of_windows(cls, table: TableHere, time: str, owned: OwnedRows, most: int) -> Published:
        """The rows that are `owned`. Raises LocalUnsupportedError where they, or those of the files that are read for
        them, are more than `most`."""
        if not any(place.has or place.lacks for place in owned.places):
            return cls.of(table, time, [(place.low, place.high) for place in owned.places] or [(0, 0)], most)
        table = owned.near(table)
        parts = _parts(table, most, lambda file, left: file.every(table.schema.names, left))
        parts = tuple(part.filter(owned.arrow(part)) for part in parts)
        return cls(table, time, parts, sum(part.num_rows for part in parts), owned.arrow)

    def among(self, rows: pa.Table) -> Bools:
        """For each of the table's `rows` whether it is one of these."""
        return numbers(self.chosen(rows).combine_chunks())

    @property
    def rows(self) -> pa.Table:
        return pa.concat_tables([self.table.none(), *self.parts])


def _parts(table: TableHere, most: int, read: Callable[[TableHere, int], pa.Table]) -> tuple[pa.Table, ...]:
    """The rows that `read` gives for each file; its argument is how many rows may still be read."""
    parts: list[pa.Table] = []
    for file in table.files:
        parts.append(read(table.part([file]), most - sum(part.num_rows for part in parts)))
    return tuple(parts)


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

    def commit(self, note: Note) -> Commit | None:
        """As a Difference's, which it leaves it to where more is to be known or held than is here."""
        with suppress(LocalUnsupportedError):
            with local_errors():
                actions = self.written()
            return Publication.of(self.run, note).commit_files(self.there.table, actions, self.counts)
        rows = self.differences.operations(self.there.time)
        times = [*rows[self.there.time].chunks, *rows[WAS].chunks]
        ends = pc.min_max(pa.chunked_array(times, rows[WAS].type).cast(pa.int64())).as_py()
        frame = frame_of(self.run.spark, rows)
        return Difference(self.run, self.plan, frame, self.counts, ends["min"] or 0, ends["max"] or 0).commit(note)

    def close(self) -> None:
        """Nothing is held but here."""

    def written(self) -> list[Action]:
        """Writes the files of rows and of changes; the actions that commit them. Raises LocalUnsupportedError and what
        Arrow raises."""
        there, table, parts, removed = self.there, self.there.table, [self.differences.come], []
        if not table.writable:
            raise LocalUnsupportedError("a table that asks more of who writes it")
        ends = np.cumsum([part.num_rows for part in there.parts], dtype=np.int64)
        for file, gone in zip(table.files, np.split(self.differences.gone, ends)[:-1], strict=True):
            if gone.any():
                whole = table.whole(file, limits.REWRITTEN - sum(part.num_rows for part in parts))
                mine = there.among(whole)
                stays = ~mine
                stays[mine] = ~gone
                parts.append(whole.filter(arrow(stays)))
                removed.append(local_commit.remove_file(table.folder, file))
        rows = pa.concat_tables(parts)
        come = [local_commit.add_file(table.folder, rows)] if rows.num_rows else []
        return [
            *removed,
            *come,
            *([local_commit.add_change_file(table.folder, self.differences.feed())] if removed else []),
        ]
