"""FOLD: for each instance, its candidates of the least end and what becomes of it.

The right stream is sorted by group and end, as for NEXT. Kernels of kind algebra take their arrays one by one: in named
tuples, as other kinds' take them, the loop over candidates took 13 to 67 % longer (measured).
"""

from __future__ import annotations

import numpy as np

from cep_core import compiled
from cep_core.algebra.kernels.pairs import (
    ALARM,
    AT_PROGRAM,
    DONE,
    FIRST,
    HIGH,
    LOW,
    MORE_QUEUE,
    MORE_ROWS,
    NEXT_ROW,
    NO,
    OVERFLOWED,
    SECOND,
    SLOT,
    SO_FAR,
    USED,
    WHOLE,
    after,
    holds,
    load,
)  # fmt: skip
from cep_core.events.array_types import Bools, Float64s, Int64s
from cep_core.kernels.uncounted_arrays import borrowed
from cep_core.kernels.vm import execute


@compiled.expanded
def _hash(position: int, words: Int64s, at: int) -> int:
    h = np.uint64(position + 1) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(words.shape[1]):
        h = (h ^ np.uint64(words[at, k])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(1))  # type: ignore[return-value]


@compiled.expanded
def _reaches(keys: Int64s, missing: Bools, p: int, need: Int64s, lacking: Bools, row: int, strict: Bools) -> bool:
    """Whether every key at p is what `row` needs."""
    if missing[p] or lacking[row]:
        return False
    for i in range(strict.shape[0]):
        if keys[p, i] < need[row, i] or (strict[i] and keys[p, i] == need[row, i]):
            return False
    return True


@compiled.entry
def fold_instances(
    chosen: Int64s, r_group: Int64s, r_start: Int64s, r_end: Int64s,
    rows: Int64s, ends: Int64s, starts: Int64s, bounds: Int64s, own_group: Int64s, now_group: Int64s,
    within: int, low: int, high: int, points: bool, ties: bool,
    programs: Int64s, code: Int64s, values: Int64s, reals: Float64s, null: Bools, cases: Int64s, spans: Int64s,
    f_slots: Int64s, f_leaves: Int64s, f_null: Bools, b_leaves: Int64s, b_null: Bools,
    n_slots: Int64s, n_leaves: Int64s, n_null: Bools, s_slots: Int64s, s_leaves: Int64s, s_null: Bools,
    v_slots: Int64s, v_words: Int64s, v_null: Bools,
    k_keys: Int64s, k_missing: Bools, k_first: Int64s, k_first_null: Bools,
    k_now: Int64s, k_now_null: Bools, k_strict: Bools,
    g_keys: Int64s, g_missing: Bools, g_first: Int64s, g_first_null: Bools,
    g_now: Int64s, g_now_null: Bools, g_strict: Bools,
    queue: Int64s, queued: Int64s, heads: Int64s, stamps: Int64s, out: Int64s, words: Int64s, state: Int64s,
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
    ends, queued = borrowed(ends), borrowed(queued)
    k_keys, k_missing, k_first, k_first_null = (
        borrowed(k_keys),
        borrowed(k_missing),
        borrowed(k_first),
        borrowed(k_first_null),
    )
    k_now, k_now_null, k_strict = borrowed(k_now), borrowed(k_now_null), borrowed(k_strict)
    g_keys, g_missing, g_first, g_first_null = (
        borrowed(g_keys),
        borrowed(g_missing),
        borrowed(g_first),
        borrowed(g_first_null),
    )
    g_now, g_now_null, g_strict = borrowed(g_now), borrowed(g_now_null), borrowed(g_strict)
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
            load(f_slots, f_leaves, f_null, r, values, null)
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
                p = after(ends, p, last, end)
            if low > 0 and p < last and ends[p] < start + low:
                p = after(ends, p, last, start + low - 1)
            if p >= last or ends[p] - start >= within or ends[p] - start > high:
                continue
            if reads:
                if position < 0:
                    load(n_slots, b_leaves, b_null, r, values, null)
                else:
                    load(n_slots, n_leaves, n_null, rows[position], values, null)
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
                if k_strict.shape[0] > 0 and not (
                    _reaches(k_keys, k_missing, p, k_first, k_first_null, r, k_strict)
                    if position < 0
                    else _reaches(k_keys, k_missing, p, k_now, k_now_null, position, k_strict)
                ):
                    p += 1
                    continue
                if reads:
                    load(s_slots, s_leaves, s_null, rows[p], values, null)
                    if spans[WHOLE] >= 0:
                        values[spans[WHOLE]], null[spans[WHOLE]] = t - start, False
                    if spans[SECOND] >= 0:
                        values[spans[SECOND]], null[spans[SECOND]] = t - starts[p], False
                    verdict = holds(programs, 0, code, values, reals, null, cases)
                    if verdict == ALARM:
                        state[AT_PROGRAM] = 0
                        return OVERFLOWED
                    if verdict == NO:
                        p += 1
                        continue
                met, moment = True, t
                if g_strict.shape[0] > 0 and not (
                    _reaches(g_keys, g_missing, p, g_first, g_first_null, r, g_strict)
                    if position < 0
                    else _reaches(g_keys, g_missing, p, g_now, g_now_null, position, g_strict)
                ):
                    p += 1
                    continue
                if reads:
                    verdict = holds(programs, 2, code, values, reals, null, cases)
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
