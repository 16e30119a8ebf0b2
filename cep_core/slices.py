"""Rows sorted by (partition, time) with what the kernel needs of each: matches, ranks, comparison codes, links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cep_core.codes import ordered_codes
from cep_core.columns import Events
from cep_core.kernels import trends as kernel
from cep_core.layout import Layout
from cep_core.pairs import PairPredicate

Array = Any


@dataclass(frozen=True)
class Slice:
    """n rows of `events`: `rows` their indices there, `partition` (int64 codes) and `time` ascending."""

    events: Events
    rows: Array
    partition: Array
    time: Array
    ok: Array

    @property
    def length(self) -> int:
        return len(self.rows)

    def having(self, variable: str) -> Array:
        """Positions in the slice that `variable` may bind."""
        bit = np.uint64(self.events.plan.variables.index(variable))
        return np.flatnonzero((self.ok >> bit) & np.uint64(1))


def make_slice(events: Events, variables: tuple[str, ...], partition: Array) -> Slice:
    """The rows that one of `variables` may bind, by (`partition`, time). `partition`: a code for every row of events."""
    bits = np.uint64(sum(1 << events.plan.variables.index(v) for v in variables))
    rows = np.flatnonzero(events.matches & bits)
    part, time = partition[rows], events.time[rows]
    if len(rows) > 1:
        gap = np.diff(part)
        if not (np.all(gap >= 0) and np.all(np.diff(time)[gap == 0] >= 0)):
            order = np.lexsort((time, part))
            rows, part, time = rows[order], part[order], time[order]
    return Slice(events, rows, np.ascontiguousarray(part), np.ascontiguousarray(time), events.matches[rows] & bits)


@dataclass(frozen=True)
class Layers:
    """Fenwick layers as the kernel reads them; `nodes` is each layer's number of nodes."""

    rank: Array
    limit: Array
    seg_v: Array
    seg_w: Array
    seg_base: Array
    seg_size: Array
    nodes: tuple[int, ...]


def make_layers(slice_: Slice, layout: Layout) -> Layers:
    """Ranks and limits of every layer. int32; -1 in `seg_v`, `seg_w`: not in the layer (NULL, or of another variable)."""
    n = slice_.length
    count = len(layout.layers)
    rank, limit = np.zeros((count, n), np.int32), np.zeros((count, n), np.int32)
    seg_v, seg_w = np.full((count, n), -1, np.int32), np.full((count, n), -1, np.int32)
    bases, sizes, nodes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    offset = 0
    for number, names in enumerate(layout.layers):
        pair = slice_.events.plan.pair(*names)
        v, w = slice_.having(pair.earlier), slice_.having(pair.later)
        segments, base, size, used = _layer(slice_, pair, v, w, rank[number], limit[number])
        seg_v[number, v], seg_w[number, w] = segments
        seg_v[number][seg_v[number] >= 0] += offset
        seg_w[number][seg_w[number] >= 0] += offset
        offset += len(base)
        bases.append(base)
        sizes.append(size)
        nodes.append(used)
    return Layers(rank, limit, seg_v, seg_w, np.concatenate(bases), np.concatenate(sizes), tuple(nodes))


def _layer(
    slice_: Slice, pair: PairPredicate, v: Array, w: Array, rank: Array, limit: Array
) -> tuple[tuple[Array, Array], Array, Array, int]:
    """Fill `rank` and `limit`; give the segments of v and w, each segment's first node and size, and the nodes in all.

    A segment is a partition and a value of the equalities. Within it the distinct values of f(v) are ranked so that
    those that satisfy the inequality for w are a prefix: ascending for < and <=, descending for > and >=.
    """
    segment_v, segment_w = slice_.partition[v], slice_.partition[w]
    valid_v, valid_w = np.ones(len(v), bool), np.ones(len(w), bool)
    value_v, value_w, values, side = np.zeros(len(v), np.int64), np.zeros(len(w), np.int64), 1, "right"
    for split in pair.splits:
        left = slice_.events.value(split.earlier, slice_.rows[v])
        right = slice_.events.value(split.later, slice_.rows[w])
        (code_v, code_w), size = ordered_codes(left, right)
        valid_v &= code_v >= 0
        valid_w &= code_w >= 0
        size = max(size, 1)
        if split.op == "=":
            joined = np.concatenate([segment_v, segment_w]) * size + np.concatenate([code_v, code_w])
            dense = np.unique(joined, return_inverse=True)[1].astype(np.int64)
            segment_v, segment_w = dense[: len(v)], dense[len(v) :]
            continue
        if split.op in (">", ">="):
            code_v, code_w = size - 1 - code_v, size - 1 - code_w
        value_v, value_w, values = code_v, code_w, size
        side = "left" if split.op in ("<", ">") else "right"
    segments = np.unique(np.concatenate([segment_v[valid_v], segment_w[valid_w]]))
    dense_v = np.where(valid_v, np.searchsorted(segments, segment_v), -1)
    dense_w = np.where(valid_w, np.searchsorted(segments, segment_w), -1)
    keys = dense_v[valid_v] * values + value_v[valid_v]
    distinct = np.unique(keys)
    base = np.searchsorted(distinct, np.arange(len(segments), dtype=np.int64) * values)
    size_of = np.diff(np.append(base, len(distinct)))
    rank[v[valid_v]] = np.searchsorted(distinct, keys) - base[dense_v[valid_v]]
    wanted = dense_w[valid_w] * values + value_w[valid_w]
    limit[w[valid_w]] = np.searchsorted(distinct, wanted, side) - base[dense_w[valid_w]]
    return (dense_v, dense_w), base.astype(np.int64), size_of.astype(np.int64), len(distinct)


def make_comparisons(slice_: Slice, compared: tuple[tuple[str, str, int], ...]) -> tuple[Array, Array]:
    """int32 codes (C, n) of the earlier and the later side of each comparison; -1 NULL or of another variable."""
    earlier = np.full((len(compared), slice_.length), -1, np.int32)
    later = np.full((len(compared), slice_.length), -1, np.int32)
    for number, (first, second, index) in enumerate(compared):
        split = slice_.events.plan.pair(first, second).splits[index]
        v, w = slice_.having(first), slice_.having(second)
        left = slice_.events.value(split.earlier, slice_.rows[v])
        right = slice_.events.value(split.later, slice_.rows[w])
        (code_v, code_w), _ = ordered_codes(left, right)
        earlier[number, v], later[number, w] = code_v, code_w
    return earlier, later


def make_links(slice_: Slice, layout: Layout, pairs: list[tuple[str, str]]) -> Array:
    """(variables, n): where the event that follows each event may stand, -1 nowhere.

    skip_till_next_match: the first position of the time of the next event that could follow. Contiguous selections:
    the position of the event just after. `pairs`: the (V, W) that the pattern makes adjacent.
    """
    plan = slice_.events.plan
    n = slice_.length
    following = np.full((len(plan.variables), n), -1, dtype=np.int64)
    if plan.select != "skip_till_next_match":
        position = np.full(slice_.events.length, -1, dtype=np.int64)
        position[slice_.rows] = np.arange(n)
        after = slice_.events.successors()[slice_.rows]
        found = np.where(after >= 0, position[after], -1)
        following[:] = np.where((found >= 0) & (slice_.partition[found] == slice_.partition), found, -1)
        return following
    ranges = {}
    for number, (first, second, _) in enumerate(layout.compared):
        start = ranges.get((first, second), (number, number))[0]
        ranges[(first, second)] = (start, number + 1)
    table = np.array(
        [
            (plan.variables.index(v), plan.variables.index(w), *ranges.get((v, w), (0, 0)))
            for v, w in pairs
        ],
        dtype=np.int64,
    ).reshape(len(pairs), 4)
    earlier, later = make_comparisons(slice_, layout.compared)
    ends = partition_ends(slice_.partition)
    _next_links(slice_.time, slice_.ok, ends, table, layout.ops, earlier, later, plan.windows.within, following)
    return following


def partition_ends(partition: Array) -> Array:
    """For each position the end (exclusive) of its partition."""
    n = len(partition)
    if n == 0:
        return np.zeros(0, np.int64)
    last = np.flatnonzero(np.append(partition[1:] != partition[:-1], True)) + 1
    return last[np.searchsorted(last, np.arange(n), side="right")]


@njit(cache=True, nogil=True)
def _next_links(
    time: Array, ok: Array, ends: Array, pairs: Array, ops: Array, earlier: Array, later: Array, within: int, out: Array
) -> None:  # fmt: skip
    for v in range(time.shape[0]):
        for x in range(pairs.shape[0]):
            a, b, first, last = pairs[x]
            if not (ok[v] >> np.uint64(a)) & np.uint64(1):
                continue
            group = v
            for u in range(v + 1, ends[v]):
                if time[u] != time[group]:
                    group = u
                if time[u] - time[v] >= within or (out[a, v] >= 0 and time[u] >= time[out[a, v]]):
                    break
                if time[u] == time[v] or not (ok[u] >> np.uint64(b)) & np.uint64(1):
                    continue
                if kernel.pair_true(first, last, ops, earlier, later, v, u):
                    out[a, v] = group
                    break
