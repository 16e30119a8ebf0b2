"""Rows sorted by (partition, time) with what the kernel needs of each: matches, comparison codes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Int32s, Int64s, Positions, UInt64s
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.order import order_of
from trendlake.cep_core.expressions.columnar import evaluate
from trendlake.cep_core.expressions.operands import Words
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.trends.compile.pair_programs import PairPrograms
from trendlake.cep_core.trends.kernels import pair_predicates as k
from trendlake.cep_core.trends.kernels.arguments import Events as KernelEvents
from trendlake.cep_core.trends.kernels.arguments import Tasks
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates
from trendlake.cep_core.trends.kernels.row_order import by_partition, falls, in_order, mark_partition_ends
from trendlake.cep_core.trends.run.events import Events


@dataclass(frozen=True)
class Slice:
    """n rows of `events`: `rows` their indices there, `partition` (int64 codes) and `time` ascending. `taken`: columns
    in the slice's order, as far as they were asked for."""

    events: Events
    rows: Int64s
    partition: Int32s
    time: Int64s
    ok: UInt64s
    taken: dict[str, pa.Array]

    @property
    def length(self) -> int:
        return len(self.rows)

    @property
    def partitions(self) -> int:
        """How many partitions have an event."""
        return 1 + int(np.count_nonzero(self.partition[1:] != self.partition[:-1])) if self.length else 0

    @property
    def in_kernels(self) -> KernelEvents:
        """The events as kernels read them."""
        return KernelEvents(self.time, self.ok, self.partition)

    def having(self, variable: str) -> Positions:
        """Positions in the slice that `variable` may bind; a slice(None) when all may."""
        bit = np.uint64(1 << self.events.plan.variables.index(variable))
        bound = (self.ok & bit) != 0
        return slice(None) if bound.all() else np.flatnonzero(bound)

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column, in the slice's order."""
        if name not in self.taken:
            self.taken[name] = self.events.taken(name, self.rows)
        return self.taken[name]

    def value(self, node: s.Expr, positions: Positions) -> pa.Array:
        """An expression over attributes of one event, for `positions` of the slice."""
        if isinstance(positions, slice):
            return evaluate(node, lambda attribute: self.column(attribute.name), self.length)
        return self.events.value(node, self.rows[positions])


def make_slice(events: Events, variables: tuple[str, ...], partition: Int32s) -> Slice:
    """The rows that one of `variables` may bind, by (`partition`, time). `partition`: a code for every row of
    events."""
    bits = np.uint64(sum(1 << events.plan.variables.index(v) for v in variables))
    matches, time = events.matches, events.plan.schema.event_time
    # both arrays are part of what is kept, so that no other can have their identity
    key = (bits, time, id(matches), id(partition))
    _, _, arrays = events.columns.latest(
        "slice", key, lambda: (matches, partition, _sorted_rows(matches & bits, partition, events.time))
    )
    return Slice(events, *arrays)


def by_window(slice_: Slice, tasks: Tasks) -> Slice:
    """The slice with a partition for each of `tasks`: the windows of its partitions, in order and without overlap.

    Events of two tasks are never in one trend. So a task asks for ranks, totals and trees of its own events only: trees
    are as small as windows, and are not emptied between them. Events of no task get the task before, which does not
    read them."""
    counts = np.diff(tasks.lo, append=slice_.length)
    counts[0] += tasks.lo[0]
    return replace(slice_, partition=np.repeat(np.arange(len(counts), dtype=np.int32), counts))


def _sorted_rows(
    ok: UInt64s, partition: Int32s, time: Int64s
) -> tuple[Int64s, Int32s, Int64s, UInt64s, dict[str, pa.Array]]:
    bound = ok != 0
    rows: Int64s = np.arange(len(ok))
    if not bound.all():
        rows = np.flatnonzero(bound)
        partition, time, ok = partition[rows], time[rows], ok[rows]
    if not in_order(partition, time):
        order = by_partition(partition, _by_time(time))
        rows, partition, time, ok = rows[order], partition[order], time[order], ok[order]
    return rows, np.ascontiguousarray(partition), np.ascontiguousarray(time), ok, {}


RUN = 1_000
"""Rows of a rising run, on average, from which on runs are merged."""
_OPS = {"=": k.EQ, "!=": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE}


def make_predicates(slice_: Slice, tried: tuple[tuple[str, str], ...]) -> Predicates:
    """Of the (V, W) tried pair by pair, in that order."""
    plan, n = slice_.events.plan, slice_.length
    ops: list[int] = []
    codes: list[tuple[Int32s, Int32s]] = []
    programs = PairPrograms(plan.schema.families)
    for names in tried:
        pair = plan.pair(*names)
        v, w = slice_.having(pair.earlier), slice_.having(pair.later)
        for split in pair.splits:
            left = slice_.value(split.earlier, v)
            right = slice_.value(split.later, w)
            (code_v, code_w), _ = ordered_codes(left, right)
            sides = (np.full(n, -1, np.int32), np.full(n, -1, np.int32))
            sides[0][v], sides[1][w] = code_v, code_w
            ops.append(_OPS[split.op])
            codes.append(sides)
        for condition in pair.mixed:
            programs.add(names, condition)
    words = Words(programs, lambda leaf: _leaf(slice_, *leaf), n)
    empty = np.zeros((0, n), np.int32)
    return Predicates(
        np.array(ops, dtype=np.int64),
        np.stack([side[0] for side in codes]) if codes else empty,
        np.stack([side[1] for side in codes]) if codes else empty,
        np.array(programs.ranges, np.int64).reshape(-1, 5),
        np.array(programs.code, np.int64).reshape(-1, 4),
        *words.machine,
        words.leaf_slots,
        np.array([_reads_next(node) for (node, *_), _, _ in programs.leaves], np.bool_),
        words.leaves,
        words.leaf_null,
        np.zeros(1, np.int64),
    )


def check_alarm(predicates: Predicates) -> None:
    """Raises BadEventsError when a program met whole numbers beyond 64 bits, or, compared with doubles, beyond 2^53."""
    if predicates.alarm[0]:
        raise BadEventsError(
            "a whole number leaves 64 bits in an adjacent condition, or is past 2^53 beside a double",
            hint="filter the events before, or compare whole numbers with whole numbers",
        )


def _reads_next(node: s.Expr) -> bool:
    return any(read.next for read in s.attributes(node))


def _leaf(slice_: Slice, node: s.Expr, earlier: str, later: str) -> pa.Array:
    """An expression of one event, of the events that may be that of a pair; NULL elsewhere."""
    positions = slice_.having(later if _reads_next(node) else earlier)
    values = slice_.value(node, positions)
    if isinstance(positions, slice):
        return values
    places = np.full(slice_.length, -1, np.int64)
    places[positions] = np.arange(len(positions))
    return values.take(arrow(places, places < 0))


def partition_ends(partition: Int32s) -> Int64s:
    """For each position the end (exclusive) of its partition."""
    ends = np.empty(len(partition), np.int64)
    mark_partition_ends(partition, ends)
    return ends


def _by_time(time: Int64s) -> Int64s:
    """The order of `time`; a stable sort merges rows that come in a few rising runs, as blocks of a stream do."""
    descents = falls(time)
    if not descents:
        return np.arange(len(time))
    return np.argsort(time, kind="stable") if descents * RUN < len(time) else order_of(time)
