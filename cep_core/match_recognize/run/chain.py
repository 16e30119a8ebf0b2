"""The matches that changed rows make: the chain of matches is repeated from before the change until it searches
where the old one, which is published, did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError, SearchTooLongError, SkipFailedError
from trendlake.cep_core.events.array_types import Int32s, Int64s
from trendlake.cep_core.events.arrays import numbers, read_only
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.kind import Renewed
from trendlake.cep_core.match_recognize.compile.chain import Reach, reach_of
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.local import true_of, ways_of
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.results import result_of
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.run import any_matches

_NEVER = 2**63 - 1


def can_renew(plan: RowPatternPlan) -> bool:
    """Whether matches of a change can be found without all that is before it."""
    return isinstance(reach_of(plan), Reach) and ways_of(plan) is not None


def renewed(
    plan: RowPatternPlan, events: Columns, changed: pa.Table, published: pa.Table, span: tuple[int | None, int | None]
) -> Renewed:
    """As of `Renewal`."""
    reach = reach_of(plan)
    rows = Rows(plan, events)
    assert isinstance(reach, Reach)
    one = _Renewing(plan, rows, reach, changed, published, span)
    whole = span == (None, None)
    try:
        one.find()
    except (SkipFailedError, SearchTooLongError, BadEventsError):
        if whole:
            raise
        return one.nothing()
    return one.result()


class _Renewing:
    """`part`: of each changed and each published row its partition among `rows`; -1 for another one."""

    def __init__(
        self,
        plan: RowPatternPlan,
        rows: Rows,
        reach: Reach,
        changed: pa.Table,
        published: pa.Table,
        span: tuple[int | None, int | None],
    ) -> None:
        self.plan, self.rows, self.reach, self.changed, self.published = plan, rows, reach, changed, published
        self.begun, self.ended = (one is None for one in span)
        self.end = _NEVER if span[1] is None else span[1]
        self.low = -_NEVER if span[0] is None else span[0]
        self.parts = len(rows.bounds) - 1
        self.part_of_changed, self.part_of_published = self._parts()
        self.row = self._rows_of_published()
        self.begins = self.meets = np.full(self.parts, -1, np.int64)
        self.matches: Matches | None = None

    def nothing(self) -> Renewed:
        none = np.zeros(self.published.num_rows, np.bool_)
        return Renewed(self.plan.result_schema.empty_table(), none, np.ones(self.changed.num_rows, np.bool_))

    def _parts(self) -> tuple[Int32s, Int32s]:
        names, rows = self.plan.partition_by, self.rows
        firsts, sizes = rows.bounds[:-1], (self.parts, self.changed.num_rows, self.published.num_rows)
        if not names:
            codes = np.zeros(sum(sizes), np.int32)
        else:
            kinds = [self.plan.result_schema.field(name).type for name in names]
            own = pa.table([rows.raw(name, firsts) for name in names], names=list(names))
            three = [own, self.changed.select(list(names)), self.published.select(list(names))]
            tables = [_cast(table, kinds) for table in three]
            codes = Columns(pa.concat_tables(tables)).codes(names)
        of_code = np.full(int(codes.max(initial=-1)) + 1, -1, np.int32)
        of_code[codes[: self.parts]] = np.arange(self.parts, dtype=np.int32)
        mine = of_code[codes[self.parts :]]
        return mine[: sizes[1]], mine[sizes[1] :]

    def _rows_of_published(self) -> Int64s:
        """Of each published row the row at which its match begins, or that it is of; -1 where it was not read, or is in
        another partition now."""
        plan, rows, published = self.plan, self.rows, self.published
        kind = plan.result_schema.field("match_id").type
        ids = published.column("match_id").combine_chunks()
        if plan.rows == "unmatched":
            ids = pc.if_else(ids.is_valid(), ids, published.column(plan.schema.event_id).combine_chunks().cast(kind))
        there = rows.raw(plan.schema.event_id, np.arange(rows.length)).cast(kind)
        places = numbers(pc.fill_null(pc.index_in(ids, value_set=there), -1).cast(pa.int64()))
        places = np.asarray(places, np.int64)
        if not rows.length:
            return places
        moved = rows.partition_of[places] != self.part_of_published
        return np.where((places < 0) | moved, -1, places)

    def find(self) -> None:
        """Finds where to begin, the matches from there, and where to end. Raises SkipFailedError, SearchTooLongError,
        BadEventsError."""
        from trendlake.cep_core.match_recognize.kernels import chain as kernel
        from trendlake.cep_core.match_recognize.kernels.local import Ordered

        plan, rows, reach = self.plan, self.rows, self.reach
        ordered = Ordered(*map(read_only, (true_of(plan, rows), rows.bounds, rows.times, rows.begins)))
        looked = kernel.Looked(*(np.zeros(rows.length, np.int64) for _ in range(3)))
        kernel.look(ways_of(plan), ordered, plan.bound or 0, looked)
        looked = kernel.Looked(*map(read_only, looked))
        known = np.zeros(rows.length, np.bool_)
        known[self.row[self.row >= 0]] = True
        changed = kernel.Changed(*map(read_only, (*self._times(), known)))
        timed = not reach.ahead and not reach.ends
        every = plan.onward.mode == "next"
        reading = kernel.Reading(
            plan.bound or 0, reach.back, reach.ahead, self.begun, self.ended, self.end, timed, every
        )
        begins, meets = np.zeros(self.parts, np.int64), np.zeros(self.parts, np.int64)
        kernel.taken_up(ordered, looked, changed, reading, begins)
        rows.begins = np.where(begins < 0, rows.bounds[1:], begins)
        self.matches = any_matches(plan, rows)
        begun = np.zeros(rows.length, np.bool_)
        begun[self.matches.start] = True
        kernel.meetings(ordered, looked, changed, reading, read_only(begins), read_only(begun), meets)
        self.begins, self.meets = begins, meets

    def _times(self) -> tuple[Int64s, Int64s]:
        """Of each partition the first and the last time of its changed rows."""
        first, last = np.full(self.parts, _NEVER), np.full(self.parts, -_NEVER)
        times = numbers(self.changed.column(self.plan.schema.event_time).combine_chunks().cast(pa.int64()))
        there = self.part_of_changed >= 0
        np.minimum.at(first, self.part_of_changed[there], times[there])
        np.maximum.at(last, self.part_of_changed[there], times[there])
        return first, last

    def result(self) -> Renewed:
        assert self.matches is not None
        rows, solved = self.rows, (self.begins >= 0) & (self.meets >= 0)
        zone, touched = np.zeros(rows.length, np.bool_), np.zeros(self.parts + 1, np.bool_)
        for part in np.unique(self.part_of_changed[self.part_of_changed >= 0]).tolist():
            if solved[part]:
                touched[part] = True
                zone[self.begins[part] : self.meets[part]] = True
        touched[-1] = self.begun and self.ended  # a partition that has no row any more
        table = result_of(self.plan, rows, self.matches, None, zone)
        there = self.row >= 0
        start = numbers(self.published.column("start").combine_chunks().cast(pa.int64()))
        gone = ~there & touched[self.part_of_published] & (start >= self.low) & (start < self.end)
        replaced = gone
        replaced[there] = zone[self.row[there]]
        return Renewed(table, replaced, ~touched[self.part_of_changed])


def _cast(table: pa.Table, kinds: Sequence[pa.DataType]) -> pa.Table:
    columns = [column.combine_chunks() for column in table.columns]
    plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in columns]
    return pa.table([one.cast(kind, safe=False) for one, kind in zip(plain, kinds, strict=True)], table.column_names)
