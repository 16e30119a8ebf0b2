"""NEXT: for each event the candidates of the least end; and what FOLD shares with it.

The right stream is sorted by group and end; a group holds the events that equality keys let meet. Positions are in
that order. Leaves are rows of words that go to slots of the machine.
"""

from __future__ import annotations

import numpy as np

from cep_core import compiled
from cep_core.events.array_types import Bools, Float64s, Int64s
from cep_core.kernels.uncounted_arrays import borrowed
from cep_core.kernels.vm import execute

DONE, MORE_ROWS, MORE_QUEUE, OVERFLOWED = range(4)
NEXT_ROW, USED, AT_PROGRAM = range(3)
"""Of `state`: the row to begin with, rows of output, and, where whole numbers leave 64 bits, the program."""
NO, YES, ALARM = range(3)
LOW, HIGH, SLOT = range(3)
"""Of a row of `programs`: code[LOW:HIGH], its value in SLOT. Programs 0 and 1 are the safe and the risky part of the
first condition, 2 and 3 those of what FOLD goes on by; the rest compute values."""
WHOLE, FIRST, SECOND, SO_FAR = range(4)
"""Of `spans`: the slots of durations, -1 where no program reads them."""


@compiled.expanded
def load(slots: Int64s, leaves: Int64s, leaf_null: Bools, row: int, values: Int64s, null: Bools) -> None:
    """A row of leaves into the slots of the machine."""
    for x in range(slots.shape[0]):
        values[slots[x]] = leaves[row, x]
        null[slots[x]] = leaf_null[row, x]


@compiled.part
def holds(
    programs: Int64s, safe: int, code: Int64s, values: Int64s, reals: Float64s, null: Bools, cases: Int64s
) -> int:  # fmt: skip
    """Whether a condition, of the programs `safe` and `safe + 1`, is true of what is loaded."""
    for number in range(safe, safe + 2):
        slot = programs[number, SLOT]
        if slot >= 0:
            if not execute(code, programs[number, LOW], programs[number, HIGH], values, reals, null, cases):
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
    order: Int64s, groups: Int64s, r_start: Int64s, r_end: Int64s,
    rows: Int64s, ends: Int64s, starts: Int64s, bounds: Int64s, within: int, low: int, high: int, points: bool,
    tree: Int64s, least: Int64s, strict: bool,
    programs: Int64s, code: Int64s, values: Int64s, reals: Float64s, null: Bools, cases: Int64s, spans: Int64s,
    f_slots: Int64s, f_leaves: Int64s, f_null: Bools, s_slots: Int64s, s_leaves: Int64s, s_null: Bools,
    out: Int64s, state: Int64s,
) -> int:  # fmt: skip
    """Fills `out`: in each column a row of R and a row of S. `order`: the rows of R by group and end, `groups` their
    groups (by row); `rows`, `ends`, `starts`: of S by position; `bounds`: where groups begin. `tree`: of keys of S by
    position, which must reach `least` (by row of R); empty without. `low`, `high`: of the duration, inclusive."""
    code, values, reals, null, cases = borrowed((code, values, reals, null, cases))
    order, groups, r_start, r_end = borrowed((order, groups, r_start, r_end))
    rows, ends, starts, bounds = borrowed((rows, ends, starts, bounds))
    tree, least, programs, spans = borrowed((tree, least, programs, spans))
    f_slots, f_leaves, f_null = borrowed((f_slots, f_leaves, f_null))
    s_slots, s_leaves, s_null = borrowed((s_slots, s_leaves, s_null))
    out, state = borrowed((out, state))
    size = tree.shape[0] >> 1
    asks = programs[0, SLOT] >= 0 or programs[1, SLOT] >= 0
    group, near, used = -1, 0, state[USED]
    for place in range(state[NEXT_ROW], order.shape[0]):
        r = order[place]
        if groups[r] < 0:
            continue
        start, end, before = r_start[r], r_end[r], used
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
            load(f_slots, f_leaves, f_null, r, values, null)
            if spans[FIRST] >= 0:
                values[spans[FIRST]], null[spans[FIRST]] = end - start, False
        moment, met = np.int64(0), False
        while p < last:
            if size > 0:
                p = _reaching(tree, size, p, last, least[r], strict)
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
                load(s_slots, s_leaves, s_null, rows[p], values, null)
                if spans[WHOLE] >= 0:
                    values[spans[WHOLE]], null[spans[WHOLE]] = t - start, False
                if spans[SECOND] >= 0:
                    values[spans[SECOND]], null[spans[SECOND]] = t - starts[p], False
                verdict = holds(programs, 0, code, values, reals, null, cases)
                if verdict == ALARM:
                    return OVERFLOWED
            if verdict == YES:
                met, moment = True, t
                if used == out.shape[1]:
                    state[NEXT_ROW], state[USED] = place, before
                    return MORE_ROWS
                out[0, used], out[1, used] = r, rows[p]
                used += 1
            p += 1
    state[USED] = used
    return DONE
