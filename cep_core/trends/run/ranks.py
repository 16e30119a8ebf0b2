"""Adjacent conditions as whole numbers: segments for equalities, ranks and limits for inequalities.

Values are replaced by codes of one order, so that a kernel compares small integers. A segment is a partition and a
value of each equality: v and w can be adjacent only in one segment. For an inequality, v has a rank and w a limit such
that it holds exactly when v's rank is below w's limit: ascending ranks for < and <=, descending ones for > and >=.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Codes, Int32s, Int64s, Positions
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.codes import dense_ranks, ordered_codes
from trendlake.cep_core.events.order import order_of
from trendlake.cep_core.expressions.columnar import FLIPPED
from trendlake.cep_core.trends.compile.predecessors import Layer, Method
from trendlake.cep_core.trends.kernels.arguments import Divides, Fenwick, Ranges, Ranks
from trendlake.cep_core.trends.kernels.ranks import count_below, rank_in_segments
from trendlake.cep_core.trends.run.sorted_rows import Slice


@dataclass(frozen=True)
class Layers:
    """Layers of stores, as kernels read them. By layer: nodes and segments, which stand together."""

    ranks: Ranks
    ranges: Ranges
    fenwick: Fenwick
    nodes: tuple[int, ...]
    segments: tuple[int, ...]


@dataclass(frozen=True)
class _Comparison:
    """int32 codes below `size` of the V-events and the W-events, -1 for NULL; one array where both sides are the same
    expression of the same events."""

    op: str
    v: Int32s
    w: Int32s
    size: int

    def ordered(self) -> tuple[Int32s, Int32s]:
        """Ranks of the V-events and limits of the W-events."""
        v, w = self.v, self.w
        if self.op in (">", ">="):
            v = (self.size - 1) - v
            w = v if self.w is self.v else (self.size - 1) - w
        return v, w + 1 if self.op in ("<=", ">=") else w


Guarded = tuple[Int64s, Int64s, Int64s]
"""See `Guards.at`."""


def make_layers(slice_: Slice, layers: tuple[Layer, ...], guards: Guarded) -> Layers:
    n, count = slice_.length, len(layers)
    rank, limit = np.zeros((count, n), np.int32), np.zeros((count, n), np.int32)
    seg_v, seg_w = np.full((count, n), -1, np.int32), np.full((count, n), -1, np.int32)
    bases, sizes, nodes, segments = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [], []
    plan = slice_.events.plan
    several = np.array([plan.method(layer) is Method.RANGE for layer in layers], np.bool_)
    common = [plan.pair(layer.earlier, layer.later).common for layer in layers]
    ranges = Ranges(
        np.where(several, np.cumsum(several) - 1, -1),
        np.array([side == "later" for side in common], np.bool_),
        np.zeros((int(several.sum()), n), np.int32),
    )
    offset = 0
    for number, layer in enumerate(layers):
        coded = _coded(slice_, layer, guards)
        if several[number]:
            floor = ranges.floor[ranges.row[number]]
            base, size = _range_by_segment(coded, common[number] == "later", rank[number], floor, limit[number])
        else:
            base, size = _rank_by_segment(coded, rank[number], limit[number])
        coded.mark(seg_v[number], seg_w[number], offset)
        offset += len(base)
        bases.append(base)
        sizes.append(size)
        nodes.append(int(size.sum()) * (2 if several[number] else 1))
        segments.append(len(base))
    fenwick = Fenwick(np.concatenate(bases), np.concatenate(sizes))
    return Layers(Ranks(rank, limit, seg_v, seg_w), ranges, fenwick, tuple(nodes), tuple(segments))


def make_divides(slice_: Slice, layers: tuple[Layer, ...], guards: Guarded) -> Divides:
    n, count = slice_.length, len(layers)
    rank, limit = np.zeros((2, count, n), np.int32), np.zeros((2, count, n), np.int32)
    seg_v, seg_w = np.full((count, n), -1, np.int32), np.full((count, n), -1, np.int32)
    for number, layer in enumerate(layers):
        coded = _coded(slice_, layer, guards)
        for i, comparison in enumerate(coded.inequalities):
            _rank_over_segments(coded, comparison, rank[i, number], limit[i, number])
        coded.mark(seg_v[number], seg_w[number], 0)
    return Divides(rank, limit, seg_v, seg_w)


def _rank_over_segments(coded: _Coded, comparison: _Comparison, rank: Int32s, limit: Int32s) -> None:
    """Fill `rank` with places among all (segment, value) of V-events, in that order, and `limit` with how many of them
    are below the segment and limit of each W-event, 0 where none of its segment is: events of one segment compare as
    their values do, and limits above 0 rise with the segment."""
    value_v, value_w = comparison.ordered()
    has = _chosen(coded.segment_v, coded.valid_v).astype(np.int64) * (comparison.size + 1)
    has += _chosen(value_v, coded.valid_v)
    asks = _chosen(coded.segment_w, coded.valid_w).astype(np.int64) * (comparison.size + 1)
    asks += _chosen(value_w, coded.valid_w)
    ranks, _ = dense_ranks(has)
    distinct = np.zeros(int(ranks.max(initial=-1)) + 1, np.int64)
    distinct[ranks] = has
    rank[_places(coded.v, len(coded.segment_v), coded.valid_v)] = ranks
    size = coded.segments * (comparison.size + 1)
    below = _below(distinct, asks, size)
    some = below > _below(distinct, asks - _chosen(value_w, coded.valid_w), size)
    limit[_places(coded.w, len(coded.segment_w), coded.valid_w)] = np.where(some, below, 0)


@dataclass(frozen=True)
class _Coded:
    """A layer's V-events and W-events (positions, or a slice of all), their segments, where they are not NULL (None:
    everywhere) and the inequalities. `symmetric`: all of it is the same for both."""

    v: Positions
    w: Positions
    segment_v: Int32s
    segment_w: Int32s
    segments: int
    valid_v: Bools | None
    valid_w: Bools | None
    inequalities: tuple[_Comparison, ...]
    symmetric: bool

    def mark(self, seg_v: Int32s, seg_w: Int32s, offset: int) -> None:
        """Write the segments, from `offset` on, where there are any."""
        for table, positions, segment, valid in (
            (seg_v, self.v, self.segment_v, self.valid_v),
            (seg_w, self.w, self.segment_w, self.valid_w),
        ):
            shifted = segment + np.int32(offset) if offset else segment
            table[positions] = shifted if valid is None else np.where(valid, shifted, -1)


def _coded(slice_: Slice, layer: Layer, guards: Guarded) -> _Coded:
    pair = slice_.events.plan.pair(layer.earlier, layer.later)
    alike = layer.earlier == layer.later
    v = slice_.having(layer.earlier)
    w = v if alike else slice_.having(layer.later)
    comparisons = [
        _compare(split.op, slice_.value(split.earlier, v), None)
        if alike and split.symmetric
        else _compare(split.op, slice_.value(split.earlier, v), slice_.value(split.later, w))
        for split in pair.splits
    ]
    bounds, upto, _ = guards
    for g in layer.resets:
        # no N after v and before w: the latest N not after v is the latest N before w
        comparisons.append(_compare("=", arrow(upto[g, v]), arrow(bounds[g, w])))
    if layer.bounds:
        lowest = bounds[np.array(layer.bounds)].max(axis=0)
        comparisons.append(_compare(">=", arrow(slice_.time[v]), arrow(lowest[w])))
    symmetric = alike and all(comparison.w is comparison.v for comparison in comparisons)
    segment_v = slice_.partition[v]
    segment_w = segment_v if symmetric else slice_.partition[w]
    segments = int(slice_.partition.max(initial=-1)) + 1
    valid_v: Bools | None = None
    valid_w: Bools | None = None
    for comparison in comparisons:
        valid_v = _both(valid_v, comparison.v)
        valid_w = valid_v if symmetric else _both(valid_w, comparison.w)
        if comparison.op == "=":
            joined = segment_v.astype(np.int64) * comparison.size + comparison.v
            if not symmetric:
                joined = np.append(joined, segment_w.astype(np.int64) * comparison.size + comparison.w)
            dense, segments = dense_ranks(joined)
            segment_v, segment_w = dense[: len(segment_v)], dense[-len(segment_w) :] if len(segment_w) else dense[:0]
    inequalities = tuple(comparison for comparison in comparisons if comparison.op != "=")
    return _Coded(v, w, segment_v, segment_w, segments, valid_v, valid_w, inequalities, symmetric)


def _compare(op: str, earlier: pa.Array, later: pa.Array | None) -> _Comparison:
    if later is None:
        (v,), size = ordered_codes(earlier)
        return _Comparison(op, v, v, max(size, 1))
    (v, w), size = ordered_codes(earlier, later)
    return _Comparison(op, v, w, max(size, 1))


def _both(valid: Bools | None, codes: Int32s) -> Bools | None:
    """Where `valid` (None: everywhere) and a code that is not NULL's; None: everywhere."""
    known = codes >= 0
    if known.all():
        return valid
    return known if valid is None else known & valid


def _chosen(values: Codes, valid: Bools | None) -> Codes:
    return values if valid is None else values[valid]


def _places(positions: Positions, count: int, valid: Bools | None) -> Int64s:
    """The positions of the slice where `valid`."""
    places: Int64s = np.arange(count) if isinstance(positions, slice) else positions
    return places if valid is None else places[valid]


def _rank_by_segment(coded: _Coded, rank: Int32s, limit: Int32s) -> tuple[Int64s, Int64s]:
    """Fill `rank` and `limit` with places among the values of each segment, from 0; give each segment's first node and
    how many values it has."""
    zero = np.zeros(1, np.int32)
    value_v, value_w, values = zero, zero + 1, 1
    for comparison in coded.inequalities:
        value_v, value_w = comparison.ordered()
        values = comparison.size
    if coded.symmetric and coded.segments == 1:
        # every code is the rank of a value that exists
        rank[coded.v], limit[coded.w] = value_v, value_w
        return np.zeros(1, np.int64), np.full(1, values)
    base, size = np.zeros(coded.segments, np.int64), np.zeros(coded.segments, np.int64)
    places_v = _places(coded.v, len(coded.segment_v), coded.valid_v)
    keys = _chosen(coded.segment_v, coded.valid_v).astype(np.int64) * values
    keys += _chosen(value_v, coded.valid_v) if coded.inequalities else value_v
    order = order_of(keys)
    rank_in_segments(keys, order, values, places_v, rank, base, size)
    if coded.symmetric and coded.inequalities:
        inclusive = coded.inequalities[0].op in ("<=", ">=")
        limit[places_v] = rank[places_v] + 1 if inclusive else rank[places_v]
        return base, size
    # limits are 0..values: one more than the ranks
    places_w = _places(coded.w, len(coded.segment_w), coded.valid_w)
    segment = _chosen(coded.segment_w, coded.valid_w).astype(np.int64)
    below = _chosen(value_w, coded.valid_w) if coded.inequalities else np.broadcast_to(value_w, len(segment))
    count_below(keys, order, values, segment, below, order_of(segment * (values + 1) + below), places_w, limit)
    return base, size


def _below(steps: Int64s, wanted: Int64s, size: int) -> Int64s:
    """How many of `steps`, ascending and from 0 to `size` - 1, are below each of `wanted`, up to `size`."""
    if size > 8 * len(wanted):
        return np.searchsorted(steps, wanted)
    counts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(steps, minlength=size), out=counts[1:])
    return counts[wanted]


def _range_by_segment(
    coded: _Coded, of_earlier: bool, rank: Int32s, floor: Int32s, limit: Int32s
) -> tuple[Int64s, Int64s]:
    """Fill `rank` with places among the values of the expression that all inequalities share, by segment from 0, and
    `floor` and `limit` with the range of ranks for which the inequalities hold; give each segment's first node (2 for
    each rank) and how many ranks it has. `of_earlier`: the ranges are those of the V-events.

    Each inequality has codes of its own, as its other side has other types and values. All of them rise with the shared
    expression, and so does their sum: it is the same exactly where each of them is."""
    sides = (
        (coded.v, coded.segment_v, coded.valid_v, [(one.op, one.v, one.w) for one in coded.inequalities]),
        (coded.w, coded.segment_w, coded.valid_w, [(FLIPPED[one.op], one.w, one.v) for one in coded.inequalities]),
    )
    points, spans = sides if not of_earlier else sides[::-1]
    positions, segment, valid, compared = points
    places, segment = _places(positions, len(segment), valid), _chosen(segment, valid).astype(np.int64)
    codes = [_chosen(code, valid) for _, code, _ in compared]
    shared = np.sum(codes, axis=0, dtype=np.int64)
    values = sum(one.size for one in coded.inequalities)
    base, size = np.zeros(coded.segments, np.int64), np.zeros(coded.segments, np.int64)
    keys = segment * values + shared
    order = order_of(keys)
    rank_in_segments(keys, order, values, places, rank, base, size)
    first = np.ones(len(order), np.bool_)
    first[1:] = keys[order[1:]] != keys[order[:-1]]
    distinct = order[first]

    asked, asked_segment, asked_valid, _ = spans
    asked_places = _places(asked, len(asked_segment), asked_valid)
    inside = _chosen(asked_segment, asked_valid).astype(np.int64)
    low, high = np.zeros(len(inside), np.int64), size[inside]
    for (op, _, bound), code, one in zip(compared, codes, coded.inequalities, strict=True):
        steps = segment[distinct] * (one.size + 1) + code[distinct]
        wanted = inside * (one.size + 1) + _chosen(bound, asked_valid) + (1 if op in ("<=", ">") else 0)
        below = _below(steps, wanted, coded.segments * (one.size + 1)) - base[inside]
        if op in ("<", "<="):
            high = np.minimum(high, below)
        else:
            low = np.maximum(low, below)
    floor[asked_places], limit[asked_places] = low, high
    return 2 * base, size
