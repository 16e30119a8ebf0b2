"""Two tables of rows, compared by their key: which came, which went, which are other ones now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.pipelines.lake.here.write import Changes
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.results.provenance import PROVENANCE
from trendlake.pipelines.results.publication import DELETE, INSERT, OPERATION, UPDATE
from trendlake.pipelines.results.spark_order import comparable
from trendlake.pipelines.revision.difference import WAS
from trendlake.pipelines.rules.unique import exact_codes


@dataclass(frozen=True)
class Differing:
    """Of tables of one schema: by their numbers the rows of `new` whose key `old` has not, those of `old` whose key
    `new` has not, and those of both that have one key and differ, as they were `before` and are `after`. Where several
    rows of `old` have one key, all are deleted, and that of `new` is inserted; `repeated` are those but the first."""

    old: pa.Table
    new: pa.Table
    inserted: Int64s
    deleted: Int64s
    before: Int64s
    after: Int64s
    repeated: Int64s

    @property
    def counts(self) -> dict[str, int]:
        return {INSERT: len(self.inserted), UPDATE: len(self.after), DELETE: len(self.deleted)}

    def changes(self) -> Changes:
        """As the table is to be changed."""
        sides = (self.old, self.deleted), (self.old, self.before), (self.new, self.after), (self.new, self.inserted)
        return Changes(*(side.take(arrow(rows)) for side, rows in sides))

    def operations(self, time: str) -> pa.Table:
        """The rows as they are in `new`, with `INSERT` or `UPDATE` as `OPERATION`; as they were in `old`, with
        `DELETE`, once for each key; the `time` they had there as `WAS`."""
        deleted = np.setdiff1d(self.deleted, self.repeated)
        fresh, then, gone = (
            self.new.take(arrow(self.inserted)),
            self.old.take(arrow(self.before)),
            self.old.take(arrow(deleted)),
        )
        parts = [
            (fresh.append_column(WAS, pa.nulls(fresh.num_rows, self.old.schema.field(time).type)), INSERT),
            (self.new.take(arrow(self.after)).append_column(WAS, then[time]), UPDATE),
            (gone.append_column(WAS, gone[time]), DELETE),
        ]
        return _told(parts)


def _told(parts: Sequence[tuple[pa.Table, str]]) -> pa.Table:
    return pa.concat_tables([rows.append_column(OPERATION, repeated(word, rows.num_rows)) for rows, word in parts])


def differing(old: pa.Table, new: pa.Table, key: Sequence[str]) -> Differing | NotHere:
    """Unless two rows of `new` have one key."""
    both = pa.concat_tables([old, new])
    # lists as keys cannot be compared
    codes = exact_codes(both, key)
    of_old, of_new, keys = codes[: old.num_rows], codes[old.num_rows :], int(codes.max(initial=-1)) + 1
    single = np.bincount(of_old, minlength=keys) == 1
    place = np.full((2, keys), -1)
    place[0, of_old] = np.arange(old.num_rows)
    place[1, of_new] = np.arange(new.num_rows)
    if (place[1] >= 0).sum() != new.num_rows:
        return NotHere("two rows of one key")
    matched = single & (place[1] >= 0)
    before, after = place[:, matched]
    then, now = old.take(arrow(before)), new.take(arrow(after))
    same = np.ones(len(before), np.bool_)
    for name in new.column_names:
        if name not in PROVENANCE:
            same &= _same(then[name].combine_chunks(), now[name].combine_chunks())
    first = np.unique(of_old, return_index=True)[1]
    return Differing(
        old,
        new,
        np.flatnonzero(~matched[of_new]),
        np.flatnonzero(~matched[of_old]),
        before[~same],
        after[~same],
        np.setdiff1d(np.arange(old.num_rows), first),
    )


def _same(a: pa.Array, b: pa.Array) -> Bools:
    """Where two arrays of one type have the same value: NULL is itself, NaN too."""
    if pa.types.is_nested(a.type):
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return np.array([comparable(x) == comparable(y) for x, y in pairs], np.bool_)
    equal = pc.fill_null(pc.equal(a, b), False)
    nothing = pc.and_(pc.is_null(a), pc.is_null(b))
    if pa.types.is_floating(a.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), False))
    return numbers(pc.or_(equal, nothing))
