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
from trendlake.cep_core.trends.compile.predecessors import Layer
from trendlake.cep_core.trends.kernels.arguments import Divides, Fenwick, Ranks
from trendlake.cep_core.trends.kernels.ranks import count_below, rank_in_segments
from trendlake.cep_core.trends.run.sorted_rows import Slice


@dataclass(frozen=True)
class Layers:
    """Layers with at most one inequality, as kernels read them. By layer: nodes and segments, which stand together."""

    ranks: Ranks
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
    offset = 0
    for number, layer in enumerate(layers):
        coded = _coded(slice_, layer, guards)
        base, size = _rank_by_segment(coded, rank[number], limit[number])
        coded.mark(seg_v[number], seg_w[number], offset)
        offset += len(base)
        bases.append(base)
        sizes.append(size)
        nodes.append(int(size.sum()))
        segments.append(len(base))
    fenwick = Fenwick(np.concatenate(bases), np.concatenate(sizes))
    return Layers(Ranks(rank, limit, seg_v, seg_w), fenwick, tuple(nodes), tuple(segments))


def make_divides(slice_: Slice, layers: tuple[Layer, ...], guards: Guarded) -> Divides:
    n, count = slice_.length, len(layers)
    rank, limit = np.zeros((2, count, n), np.int32), np.zeros((2, count, n), np.int32)
    seg_v, seg_w = np.full((count, n), -1, np.int32), np.full((count, n), -1, np.int32)
    size = np.zeros(count, np.int64)
    for number, layer in enumerate(layers):
        coded = _coded(slice_, layer, guards)
        for i, comparison in enumerate(coded.inequalities):
            rank[i, number, coded.v], limit[i, number, coded.w] = comparison.ordered()
            size[number] = comparison.size
        coded.mark(seg_v[number], seg_w[number], 0)
    return Divides(rank, limit, seg_v, seg_w, size)


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
    order = np.argsort(keys)
    rank_in_segments(keys, order, values, places_v, rank, base, size)
    if coded.symmetric and coded.inequalities:
        inclusive = coded.inequalities[0].op in ("<=", ">=")
        limit[places_v] = rank[places_v] + 1 if inclusive else rank[places_v]
        return base, size
    # limits are 0..values: one more than the ranks
    places_w = _places(coded.w, len(coded.segment_w), coded.valid_w)
    segment = _chosen(coded.segment_w, coded.valid_w).astype(np.int64)
    below = _chosen(value_w, coded.valid_w) if coded.inequalities else np.broadcast_to(value_w, len(segment))
    count_below(keys, order, values, segment, below, np.argsort(segment * (values + 1) + below), places_w, limit)
    return base, size
