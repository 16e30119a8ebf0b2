"""Rows sorted by (partition, time) with what the kernel needs of each: matches, ranks, comparison codes, links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cep_core import syntax as s
from cep_core.codes import dense_ranks, ordered_codes
from cep_core.columns import Events
from cep_core.errors import BadEventsError
from cep_core.kernels.predicates import EARLIER, LATER, STACK, pair_true
from cep_core.layout import Layout
from cep_core.pairs import PairPredicate
from cep_core.programs import Program, compile_program

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
        """Positions in the slice that `variable` may bind; a slice(None) when all may."""
        bit = np.uint64(1 << self.events.plan.variables.index(variable))
        bound = (self.ok & bit) != 0
        return slice(None) if bound.all() else np.flatnonzero(bound)

    def value(self, node: s.Expr, positions: Array) -> Array:
        """An expression over attributes of one event, for `positions` of the slice."""
        return self.events.value(node, self.rows[positions])


def make_slice(events: Events, variables: tuple[str, ...], partition: Array) -> Slice:
    """The rows that one of `variables` may bind, by (`partition`, time). `partition`: a code for every row of
    events."""
    bits = np.uint64(sum(1 << events.plan.variables.index(v) for v in variables))
    bound = (events.matches & bits) != 0
    rows, part, time, ok = np.arange(events.length), partition, events.time, events.matches & bits
    if not bound.all():
        rows = np.flatnonzero(bound)
        part, time, ok = part[rows], time[rows], ok[rows]
    if not _in_order(part, time):
        order = np.lexsort((time, part))
        rows, part, time, ok = rows[order], part[order], time[order], ok[order]
    return Slice(events, rows, np.ascontiguousarray(part), np.ascontiguousarray(time), ok)


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
    segments: tuple[int, ...]
    """How many segments each layer has: the segments of a layer stand together."""


def make_layers(slice_: Slice, layout: Layout) -> Layers:
    """Ranks and limits of every layer. int32; -1 in `seg_v`, `seg_w`: not in the layer (NULL, or of another
    variable)."""
    n = slice_.length
    count = len(layout.layers)
    rank, limit = np.zeros((count, n), np.int32), np.zeros((count, n), np.int32)
    seg_v, seg_w = np.full((count, n), -1, np.int32), np.full((count, n), -1, np.int32)
    bases, sizes, nodes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    offset = 0
    segments_of: list[int] = []
    for number, names in enumerate(layout.layers):
        pair = slice_.events.plan.pair(*names)
        v, w = slice_.having(pair.earlier), slice_.having(pair.later)
        segments, base, size, used = _layer(slice_, pair, v, w, rank[number], limit[number])
        for table, positions, codes in ((seg_v, v, segments[0]), (seg_w, w, segments[1])):
            table[number, positions] = np.where(codes >= 0, codes + offset, -1) if offset else codes
        offset += len(base)
        bases.append(base)
        sizes.append(size)
        nodes.append(used)
        segments_of.append(len(base))
    return Layers(
        rank, limit, seg_v, seg_w, np.concatenate(bases), np.concatenate(sizes), tuple(nodes), tuple(segments_of)
    )


def _layer(
    slice_: Slice, pair: PairPredicate, v: Array, w: Array, rank: Array, limit: Array
) -> tuple[tuple[Array, Array], Array, Array, int]:
    """Fill `rank` and `limit`; give the segments of v and w, each segment's first node and size, and the nodes in all.

    A segment is a partition and a value of the equalities. Within it the distinct values of f(v) are ranked so that
    those that satisfy the inequality for w are a prefix: ascending for < and <=, descending for > and >=.
    """
    symmetric = pair.earlier == pair.later and all(split.symmetric for split in pair.splits)
    segment_v = slice_.partition[v]
    segment_w = segment_v if symmetric else slice_.partition[w]
    segments = int(slice_.partition.max(initial=-1)) + 1
    value_v, value_w, values, inclusive = np.zeros(1, np.int32), np.zeros(1, np.int32), 1, True
    valid_v: Array = None
    valid_w: Array = None
    for split in pair.splits:
        left = slice_.value(split.earlier, v)
        if symmetric:
            (code_v,), size = ordered_codes(left)
            code_w = code_v
        else:
            (code_v, code_w), size = ordered_codes(left, slice_.value(split.later, w))
        valid_v = _both(valid_v, code_v)
        valid_w = valid_v if symmetric else _both(valid_w, code_w)
        size = max(size, 1)
        if split.op == "=":
            if symmetric:
                segment_v, segments = dense_ranks(segment_v.astype(np.int64) * size + code_v)
                segment_w = segment_v
                continue
            joined = np.concatenate([segment_v, segment_w]).astype(np.int64) * size + np.concatenate([code_v, code_w])
            dense, segments = dense_ranks(joined)
            segment_v, segment_w = dense[: len(segment_v)], dense[len(segment_v) :]
            continue
        if split.op in (">", ">="):
            code_v, code_w = size - 1 - code_v, code_v if symmetric else size - 1 - code_w
        value_v, value_w, values = code_v, code_v if symmetric else code_w, size
        inclusive = split.op in ("<=", ">=")
    if symmetric and segments == 1:
        # every code is the rank of a value that is there
        rank[v] = value_v
        limit[w] = value_v + 1 if inclusive else value_v
        found = _marked(segment_v, valid_v)
        return (found, found), np.zeros(1, np.int64), np.full(1, values), values
    base, size_of = np.zeros(segments, np.int64), np.zeros(segments, np.int64)
    places_v = _places(v, len(segment_v), valid_v)
    keys = _chosen(segment_v, valid_v).astype(np.int64) * values + (_chosen(value_v, valid_v) if values > 1 else 0)
    order = np.argsort(keys)
    _rank(keys, order, values, places_v, rank, base, size_of)
    if symmetric:
        limit[places_v] = rank[places_v] + 1 if inclusive else rank[places_v]
    else:
        wanted = _chosen(segment_w, valid_w).astype(np.int64) * values
        wanted += _chosen(value_w, valid_w) if values > 1 else 0
        places_w = _places(w, len(segment_w), valid_w)
        _limit(keys, order, wanted, np.argsort(wanted), values, places_w, inclusive, limit)
    return (_marked(segment_v, valid_v), _marked(segment_w, valid_w)), base, size_of, int(size_of.sum())


def _both(valid: Array, codes: Array) -> Array:
    """Where `valid` (None: everywhere) and a code that is not NULL's; None: everywhere."""
    known = codes >= 0
    if known.all():
        return valid
    return known if valid is None else known & valid


def _chosen(values: Array, valid: Array) -> Array:
    return values if valid is None else values[valid]


def _marked(segments: Array, valid: Array) -> Array:
    """Segments, -1 where not `valid`."""
    return segments if valid is None else np.where(valid, segments, -1)


def _places(positions: Array, count: int, valid: Array) -> Array:
    """The positions of the slice where `valid`."""
    places = np.arange(count) if isinstance(positions, slice) else positions
    return _chosen(places, valid)


@njit(cache=True, nogil=True)
def _rank(keys: Array, order: Array, values: int, at: Array, rank: Array, base: Array, size: Array) -> None:
    """Rank of each key (segment * values + value) among its segment's distinct ones; segments' first node and size."""
    nodes = 0
    for i in range(order.shape[0]):
        key = keys[order[i]]
        segment = key // values
        if i == 0 or key != keys[order[i - 1]]:
            if size[segment] == 0:
                base[segment] = nodes
            size[segment] += 1
            nodes += 1
        rank[at[order[i]]] = size[segment] - 1


@njit(cache=True, nogil=True)
def _limit(
    keys: Array, order: Array, wanted: Array, wanted_order: Array, values: int, at: Array, inclusive: bool, limit: Array
) -> None:
    """How many distinct keys of its segment lie below each wanted key, or at it when `inclusive`: one merge."""
    x, segment, below, last = 0, -1, 0, -1
    for i in range(wanted_order.shape[0]):
        key = wanted[wanted_order[i]]
        if key // values != segment:
            segment = key // values
            below = 0
            while x < order.shape[0] and keys[order[x]] < segment * values:
                x += 1
            last = -1
        while x < order.shape[0] and (keys[order[x]] < key or (inclusive and keys[order[x]] == key)):
            if keys[order[x]] != last:
                below += 1
                last = keys[order[x]]
            x += 1
        limit[at[wanted_order[i]]] = below


_OPS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


def make_predicates(slice_: Slice, tried: tuple[tuple[str, str], ...]) -> tuple[Array, ...]:
    """What `kernels.predicates.pair_true` reads, for the (V, W) tried pair by pair, in that order."""
    plan, n = slice_.events.plan, slice_.length
    ops: list[int] = []
    codes: list[tuple[Array, Array]] = []
    code: list[tuple[int, int]] = []
    ends = [0]
    leaves: list[Array] = []
    families = plan.schema.families
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
            program = compile_program(condition, lambda attribute: families[attribute.name])
            code += [(op, leaf + len(leaves) * (op in (EARLIER, LATER))) for op, leaf in program.code]
            ends.append(len(code))
            leaves += _leaves(slice_, program, v, w)
    empty = np.zeros((0, n), np.int32)
    return (
        np.array(ops, dtype=np.int64),
        np.stack([side[0] for side in codes]) if codes else empty,
        np.stack([side[1] for side in codes]) if codes else empty,
        np.array(ends, dtype=np.int64),
        np.array(code, dtype=np.int64).reshape(len(code), 2),
        np.stack(leaves) if leaves else np.zeros((0, n)),
        np.zeros(STACK),
        np.zeros(1, np.int64),
    )


def check_alarm(predicates: tuple[Array, ...]) -> None:
    """Raises BadEventsError when a program met whole numbers past 2^53."""
    if predicates[-1][0]:
        raise BadEventsError("an adjacent condition computes whole numbers past 2^53: they would not be exact")


def _leaves(slice_: Slice, program: Program, v: Array, w: Array) -> list[Array]:
    """float64 (n) of each leaf, NaN where NULL; strings as codes of one order."""
    found = []
    for node, later in program.leaves:
        found.append(slice_.value(node, w if later else v))
    strings = [i for i, array in enumerate(found) if pa.types.is_string(array.type)]
    if strings:
        coded, _ = ordered_codes(*(found[i] for i in strings))
        for i, codes in zip(strings, coded, strict=True):
            found[i] = pa.array(codes, mask=codes < 0)
    leaves = []
    for (_, later), array in zip(program.leaves, found, strict=True):
        if pa.types.is_integer(array.type) and pc.any(pc.greater_equal(pc.abs(array), 2**53)).as_py():
            raise BadEventsError("an adjacent condition reads whole numbers past 2^53: they would not be exact")
        leaf = np.full(slice_.length, np.nan)
        leaf[w if later else v] = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        leaves.append(leaf)
    return leaves


def make_links(
    slice_: Slice, layout: Layout, pairs: tuple[tuple[str, str], ...], predicates: tuple[Array, ...]
) -> Array:
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
    ranges: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    comparisons = programs = 0
    for names in layout.tried:
        pair = plan.pair(*names)
        more, most = comparisons + len(pair.splits), programs + len(pair.mixed)
        ranges[names] = (comparisons, more, programs, most)
        comparisons, programs = more, most
    rows = [(plan.variables.index(v), plan.variables.index(w), *ranges[v, w]) for v, w in pairs]
    table = np.array(rows, dtype=np.int64).reshape(len(pairs), 6)
    ends = partition_ends(slice_.partition)
    _next_links(slice_.time, slice_.ok, ends, table, predicates, plan.windows.within, following)
    return following


def partition_ends(partition: Array) -> Array:
    """For each position the end (exclusive) of its partition."""
    ends = np.empty(len(partition), np.int64)
    _ends(partition, ends)
    return ends


@njit(cache=True, nogil=True)
def _ends(partition: Array, ends: Array) -> None:
    end = partition.shape[0]
    for i in range(partition.shape[0] - 1, -1, -1):
        if i + 1 < partition.shape[0] and partition[i] != partition[i + 1]:
            end = i + 1
        ends[i] = end


@njit(cache=True, nogil=True)
def _in_order(partition: Array, time: Array) -> bool:
    for i in range(1, partition.shape[0]):
        if partition[i] < partition[i - 1] or (partition[i] == partition[i - 1] and time[i] < time[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def _next_links(time: Array, ok: Array, ends: Array, pairs: Array, predicates: Any, within: int, out: Array) -> None:
    for v in range(time.shape[0]):
        for x in range(pairs.shape[0]):
            a, b = pairs[x, 0], pairs[x, 1]
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
                if pair_true(predicates, pairs[x, 2:6], v, u):
                    out[a, v] = group
                    break
