"""NEXT: for each event the candidates of the least end; and what FOLD shares with it.

Arrays are those of `arguments`.
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.algebra.kernels import arguments as a
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute

DONE, MORE_ROWS, MORE_QUEUE, OVERFLOWED = range(4)
"""Why `next_pairs` and `fold_instances` return."""
NO, YES, ALARM = range(3)
"""Of a condition; ALARM: whole numbers leave 64 bits."""


@compiled.expanded
def load(leaves: a.Leaves, row: int, values: Int64s, null: Bools) -> None:
    """A row of leaves into the slots of the machine."""
    slots, words, missing = leaves
    for x in range(slots.shape[0]):
        values[slots[x]] = words[row, x]
        null[slots[x]] = missing[row, x]


@compiled.part
def holds(ranges: Int64s, safe: int, code: Int64s, values: Int64s, reals: Float64s, null: Bools, cases: Int64s) -> int:
    """Whether a condition, of the programs `safe` and `safe + 1`, is true of what is loaded."""
    for number in range(safe, safe + 2):
        slot = ranges[number, a.SLOT]
        if slot >= 0:
            if not execute(code, ranges[number, a.LOW], ranges[number, a.HIGH], values, reals, null, cases):
                return ALARM
            if null[slot] or values[slot] == 0:
                return NO
    return YES


@compiled.expanded
def after(ends: Int64s, low: int, high: int, end: int) -> int:
    """The first position of [low, high) whose end is later than `end`, which ends[low] is not."""
    step = 1
    while low + step < high and ends[low + step] <= end:
        step <<= 1
    first, last = low + (step >> 1), min(low + step, high)
    while first < last:
        middle = (first + last) >> 1
        if ends[middle] <= end:
            first = middle + 1
        else:
            last = middle
    return first


@compiled.entry
def tree_of(keys: Int64s, size: int) -> Int64s:
    """A tree of maxima over `keys`, padded to `size`, a power of two: node i has the children 2 i and 2 i + 1."""
    tree = np.full(2 * size, np.int64(-(2**63)), np.int64)
    tree[size : size + keys.shape[0]] = keys
    for i in range(size - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
    return tree


@compiled.expanded
def _reaching(tree: Int64s, size: int, at: int, end: int, least: int, strict: bool) -> int:
    """The first position of [at, end) whose key is `least` or more (`strict`: more), or `end`."""
    for _ in range(8):  # most are near
        if at >= end:
            return end
        key = tree[size + at]
        if key > least or (key == least and not strict):
            return at
        at += 1
    if at >= end:
        return end
    node = size + at
    while True:
        if tree[node] > least or (tree[node] == least and not strict):
            break
        while node & 1:
            node >>= 1
        if node == 0:
            return end
        node += 1
    while node < size:
        node <<= 1
        if not (tree[node] > least or (tree[node] == least and not strict)):
            node += 1
    return min(node - size, end)


@compiled.entry
def next_pairs(
    left: a.Left,
    right: a.Right,
    limits: a.Limits,
    tree: a.Tree,
    strict: bool,
    machine: a.Machine,
    programs: a.Programs,
    firsts: a.Leaves,
    seconds: a.Leaves,
    out: Int64s,
    state: Int64s,
) -> int:
    """Fills `out`: in each column a row of the left stream, in order by group and end, and one of the right stream.
    `strict`: whether keys must be more than what `tree` says is needed."""
    order, groups, left_start, left_end = borrowed(left)
    rows, ends, starts, bounds = borrowed(right)
    within, low, high, points, _ = limits
    nodes, least = borrowed(tree)
    code, values, reals, null, cases = borrowed(machine)
    ranges, spans = borrowed(programs)
    firsts, seconds, out, state = borrowed(firsts), borrowed(seconds), borrowed(out), borrowed(state)
    size = nodes.shape[0] >> 1
    asks = ranges[a.SAFE, a.SLOT] >= 0 or ranges[a.SAFE + 1, a.SLOT] >= 0
    group, near, used = -1, 0, state[a.USED]
    for place in range(state[a.NEXT_ROW], order.shape[0]):
        r = order[place]
        if groups[r] < 0:
            continue
        start, end, before = left_start[r], left_end[r], used
        if groups[r] != group:
            group, near = groups[r], bounds[groups[r]]
        last = bounds[group + 1]
        if near >= last:
            continue
        if ends[near] <= end:
            near = after(ends, near, last, end)
        p = near
        if low > 0 and p < last and ends[p] < start + low:
            p = after(ends, p, last, start + low - 1)
        if asks:
            load(firsts, r, values, null)
            if spans[a.FIRST] >= 0:
                values[spans[a.FIRST]], null[spans[a.FIRST]] = end - start, False
        moment, met = np.int64(0), False
        while p < last:
            if size > 0:
                p = _reaching(nodes, size, p, last, least[r], strict)
                if p >= last:
                    break
            t = ends[p]
            if t - start >= within or t - start > high or (met and t != moment):
                break
            if not points and starts[p] <= end:
                p += 1
                continue
            verdict = YES
            if asks:
                load(seconds, rows[p], values, null)
                if spans[a.WHOLE] >= 0:
                    values[spans[a.WHOLE]], null[spans[a.WHOLE]] = t - start, False
                if spans[a.SECOND] >= 0:
                    values[spans[a.SECOND]], null[spans[a.SECOND]] = t - starts[p], False
                verdict = holds(ranges, a.SAFE, code, values, reals, null, cases)
                if verdict == ALARM:
                    return OVERFLOWED
            if verdict == YES:
                met, moment = True, t
                if used == out.shape[1]:
                    state[a.NEXT_ROW], state[a.USED] = place, before
                    return MORE_ROWS
                out[0, used], out[1, used] = r, rows[p]
                used += 1
            p += 1
    state[a.USED] = used
    return DONE
