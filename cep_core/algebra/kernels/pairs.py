"""NEXT and FOLD: for each event, or instance, the candidates of the least end.

The right stream is sorted by group and end; a group holds the events that equality keys let meet. Positions are in
that order. Leaves are rows of words that go to slots of the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.kernels.uncounted_arrays import borrowed
from cep_core.kernels.vm import execute

Array = Any

DONE, MORE_ROWS, MORE_QUEUE, OVERFLOWED = range(4)
NEXT_ROW, USED, AT_PROGRAM = range(3)
"""Of `state`: the row to begin with, rows of output, and, where whole numbers leave 64 bits, the program."""
NO, YES, ALARM = range(3)
LOW, HIGH, SLOT = range(3)
"""Of a row of `programs`: code[LOW:HIGH], its value in SLOT. Programs 0 and 1 are the safe and the risky part of the
first condition, 2 and 3 those of what FOLD goes on by; the rest compute values."""
WHOLE, FIRST, SECOND, SO_FAR = range(4)
"""Of `spans`: the slots of durations, -1 where no program reads them."""


@njit(cache=True, nogil=True, inline="always")
def _load(slots: Array, leaves: Array, leaf_null: Array, row: int, values: Array, null: Array) -> None:
    for x in range(slots.shape[0]):
        values[slots[x]] = leaves[row, x]
        null[slots[x]] = leaf_null[row, x]


@njit(cache=True, nogil=True)
def _holds(
    programs: Array, safe: int, code: Array, values: Array, reals: Array, null: Array, cases: Array
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


@njit(cache=True, nogil=True, inline="always")
def _after(ends: Array, low: int, high: int, end: int) -> int:
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


@njit(cache=True, nogil=True)
def tree_of(keys: Array, size: int) -> Array:
    """A tree of maxima over `keys`, padded to `size`, a power of two: node i has the children 2 i and 2 i + 1."""
    tree = np.full(2 * size, np.int64(-(2**63)), np.int64)
    tree[size : size + keys.shape[0]] = keys
    for i in range(size - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
    return tree


@njit(cache=True, nogil=True, inline="always")
def _reaching(tree: Array, size: int, at: int, end: int, least: int, strict: bool) -> int:
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


@njit(cache=True, nogil=True)
def next_pairs(
    order: Array, groups: Array, r_start: Array, r_end: Array,
    rows: Array, ends: Array, starts: Array, bounds: Array, within: int, low: int, high: int, points: bool,
    tree: Array, least: Array, strict: bool,
    programs: Array, code: Array, values: Array, reals: Array, null: Array, cases: Array, spans: Array,
    f_slots: Array, f_leaves: Array, f_null: Array, s_slots: Array, s_leaves: Array, s_null: Array,
    out: Array, state: Array,
) -> int:  # fmt: skip
    """Fills `out`, rows of (row of R, row of S). `order`: the rows of R by group and end, `groups` their groups (by
    row); `rows`, `ends`, `starts`: of S by position; `bounds`: where groups begin. `tree`: of keys of S by position,
    which must reach `least` (by row of R); empty without. `low`, `high`: of the whole's duration, inclusive."""
    code, values, reals, null, cases = (
        borrowed(code),
        borrowed(values),
        borrowed(reals),
        borrowed(null),
        borrowed(cases),
    )
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
            near = _after(ends, near, last, end)
        p = near
        if low > 0 and p < last and ends[p] < start + low:
            p = _after(ends, p, last, start + low - 1)
        if asks:
            _load(f_slots, f_leaves, f_null, r, values, null)
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
                _load(s_slots, s_leaves, s_null, rows[p], values, null)
                if spans[WHOLE] >= 0:
                    values[spans[WHOLE]], null[spans[WHOLE]] = t - start, False
                if spans[SECOND] >= 0:
                    values[spans[SECOND]], null[spans[SECOND]] = t - starts[p], False
                verdict = _holds(programs, 0, code, values, reals, null, cases)
                if verdict == ALARM:
                    return OVERFLOWED
            if verdict == YES:
                met, moment = True, t
                if used == out.shape[0]:
                    state[NEXT_ROW], state[USED] = place, before
                    return MORE_ROWS
                out[used, 0], out[used, 1] = r, rows[p]
                used += 1
            p += 1
    state[USED] = used
    return DONE


@njit(cache=True, nogil=True, inline="always")
def _hash(position: int, words: Array, at: int) -> int:
    h = np.uint64(position + 1) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(words.shape[1]):
        h = (h ^ np.uint64(words[at, k])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(1))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def fold_instances(
    chosen: Array, r_group: Array, r_start: Array, r_end: Array,
    rows: Array, ends: Array, starts: Array, bounds: Array, own_group: Array, now_group: Array,
    within: int, low: int, high: int, points: bool, ties: bool,
    programs: Array, code: Array, values: Array, reals: Array, null: Array, cases: Array, spans: Array,
    f_slots: Array, f_leaves: Array, f_null: Array, b_leaves: Array, b_null: Array,
    n_slots: Array, n_leaves: Array, n_null: Array, s_slots: Array, s_leaves: Array, s_null: Array,
    v_slots: Array, v_words: Array, v_null: Array,
    queue: Array, queued: Array, heads: Array, stamps: Array, out: Array, words: Array, state: Array,
) -> int:  # fmt: skip
    """Fills `out`, rows of (row of R, row of S), and `words`: the computed values and a mask of NULLs.

    `chosen`: the rows of R; `r_group`: where each looks first; `own_group`, `now_group` (by position): the group of an
    event of S, and where an instance whose last event it is looks. Leaves: f of the first event, b and n of `$`: of the
    first event and of S; s of S; v of the values, which begin as v_words. `queue`: (position or -1, end, link) of the
    instances of one first event, `queued` their values; `heads`, `stamps`: a hash table of them, used where `ties`.
    """
    code, values, reals, null, cases = (
        borrowed(code),
        borrowed(values),
        borrowed(reals),
        borrowed(null),
        borrowed(cases),
    )
    count = v_slots.shape[0]
    used, mask = state[USED], heads.shape[0] - 1
    reads = False
    for number in range(programs.shape[0]):
        reads = reads or programs[number, SLOT] >= 0
    for place in range(state[NEXT_ROW], chosen.shape[0]):
        r = chosen[place]
        if r_group[r] < 0:
            continue
        start, before, filled = r_start[r], used, 1
        queue[0, 0], queue[0, 1], queue[0, 2] = -1, r_end[r], -1
        queued[0, count] = 0
        for k in range(count):
            queued[0, k] = v_words[r, k]
            queued[0, count] |= np.int64(v_null[r, k]) << k
        if reads:
            _load(f_slots, f_leaves, f_null, r, values, null)
            if spans[FIRST] >= 0:
                values[spans[FIRST]], null[spans[FIRST]] = r_end[r] - start, False
        at = 0
        while at < filled:
            position, end = queue[at, 0], queue[at, 1]
            group = r_group[r] if position < 0 else now_group[position]
            this, at = at, at + 1
            if group < 0:
                continue
            last = bounds[group + 1]
            p = position + 1 if position >= 0 and own_group[position] == group else bounds[group]
            if p < last and ends[p] <= end:
                p = _after(ends, p, last, end)
            if low > 0 and p < last and ends[p] < start + low:
                p = _after(ends, p, last, start + low - 1)
            if p >= last or ends[p] - start >= within or ends[p] - start > high:
                continue
            if reads:
                if position < 0:
                    _load(n_slots, b_leaves, b_null, r, values, null)
                else:
                    _load(n_slots, n_leaves, n_null, rows[position], values, null)
                for k in range(count):
                    values[v_slots[k]] = queued[this, k]
                    null[v_slots[k]] = (queued[this, count] >> k) & 1
                if spans[SO_FAR] >= 0:
                    values[spans[SO_FAR]], null[spans[SO_FAR]] = end - start, False
            moment, met = np.int64(0), False
            while p < last:
                t = ends[p]
                if t - start >= within or t - start > high or (met and t != moment):
                    break
                if not points and starts[p] <= end:
                    p += 1
                    continue
                if reads:
                    _load(s_slots, s_leaves, s_null, rows[p], values, null)
                    if spans[WHOLE] >= 0:
                        values[spans[WHOLE]], null[spans[WHOLE]] = t - start, False
                    if spans[SECOND] >= 0:
                        values[spans[SECOND]], null[spans[SECOND]] = t - starts[p], False
                    verdict = _holds(programs, 0, code, values, reals, null, cases)
                    if verdict == ALARM:
                        state[AT_PROGRAM] = 0
                        return OVERFLOWED
                    if verdict == NO:
                        p += 1
                        continue
                met, moment = True, t
                if reads:
                    verdict = _holds(programs, 2, code, values, reals, null, cases)
                    if verdict == ALARM:
                        state[AT_PROGRAM] = 2
                        return OVERFLOWED
                    if verdict == NO:
                        p += 1
                        continue
                if filled == queue.shape[0] or 2 * filled > heads.shape[0]:
                    state[NEXT_ROW], state[USED] = place, before
                    return MORE_QUEUE
                queued[filled, count] = 0
                for k in range(count):
                    number = 4 + k
                    if not execute(
                        code, programs[number, LOW], programs[number, HIGH], values, reals, null, cases
                    ):  # fmt: skip
                        state[AT_PROGRAM] = number
                        return OVERFLOWED
                    slot = programs[number, SLOT]
                    queued[filled, k] = 0 if null[slot] else values[slot]
                    queued[filled, count] |= np.int64(null[slot]) << k
                if ties:
                    b = _hash(p, queued, filled) & mask
                    other = heads[b] if stamps[b] == place + 1 else -1
                    while other >= 0:
                        equal = queue[other, 0] == p
                        for k in range(count + 1):
                            equal = equal and queued[other, k] == queued[filled, k]
                        if equal:
                            break
                        other = queue[other, 2]
                    if other >= 0:
                        p += 1
                        continue
                    queue[filled, 2] = heads[b] if stamps[b] == place + 1 else -1
                    heads[b], stamps[b] = filled, place + 1
                if used == out.shape[0]:
                    state[NEXT_ROW], state[USED] = place, before
                    return MORE_ROWS
                queue[filled, 0], queue[filled, 1] = p, t
                out[used, 0], out[used, 1] = r, rows[p]
                for k in range(count + 1):
                    words[used, k] = queued[filled, k]
                used += 1
                filled += 1
                p += 1
    state[USED] = used
    return DONE
