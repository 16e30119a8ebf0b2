"""FOLD: for each instance, its candidates of the least end and what becomes of it."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.algebra.kernels import arguments as a
from trendlake.cep_core.algebra.kernels.pairs import (
    ALARM,
    DONE,
    MORE_QUEUE,
    MORE_ROWS,
    NO,
    OVERFLOWED,
    after,
    holds,
    load,
)
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute


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
    left: a.Left,
    right: a.Right,
    last_: a.Last,
    limits: a.Limits,
    machine: a.Machine,
    programs: a.Programs,
    leaves: a.FoldLeaves,
    keeps: a.Steps,
    goes: a.Steps,
    queue_: a.Queue,
    instances: a.Instances,
    state: Int64s,
) -> int:
    """Fills `instances`. `keeps`, with programs 0 and 1: whether an event is a candidate; `goes`, with 2 and 3: whether
    an instance goes on with it."""
    order, groups, left_start, left_end = borrowed(left)
    rows, ends, starts, bounds = borrowed(right)
    own, now = borrowed(last_)
    within, low, high, points, ties = limits
    code, values, reals, null, cases = borrowed(machine)
    ranges, spans = borrowed(programs)
    firsts, begins, goes_on, seconds, held = borrowed(leaves)
    k_keys, k_missing, k_first, k_first_missing, k_now, k_now_missing, k_strict = borrowed(keeps)
    g_keys, g_missing, g_first, g_first_missing, g_now, g_now_missing, g_strict = borrowed(goes)
    queue, queued, heads, stamps = borrowed(queue_)
    out, words = borrowed(instances)
    state = borrowed(state)
    v_slots, v_words, v_null = held
    count = v_slots.shape[0]
    used, mask = state[a.USED], heads.shape[0] - 1
    reads = False
    for number in range(ranges.shape[0]):
        reads = reads or ranges[number, a.SLOT] >= 0
    for place in range(state[a.NEXT_ROW], order.shape[0]):
        r = order[place]
        if groups[r] < 0:
            continue
        start, before, filled = left_start[r], used, 1
        queue[0, a.POSITION], queue[0, a.END], queue[0, a.LINK] = -1, left_end[r], -1
        queued[0, count] = 0
        for k in range(count):
            queued[0, k] = v_words[r, k]
            queued[0, count] |= np.int64(v_null[r, k]) << k
        if reads:
            load(firsts, r, values, null)
            if spans[a.FIRST] >= 0:
                values[spans[a.FIRST]], null[spans[a.FIRST]] = left_end[r] - start, False
        at = 0
        while at < filled:
            position, end = queue[at, a.POSITION], queue[at, a.END]
            group = groups[r] if position < 0 else now[position]
            this, at = at, at + 1
            if group < 0:
                continue
            last = bounds[group + 1]
            p = position + 1 if position >= 0 and own[position] == group else bounds[group]
            if p < last and ends[p] <= end:
                p = after(ends, p, last, end)
            if low > 0 and p < last and ends[p] < start + low:
                p = after(ends, p, last, start + low - 1)
            if p >= last or ends[p] - start >= within or ends[p] - start > high:
                continue
            if reads:
                if position < 0:
                    load(begins, r, values, null)
                else:
                    load(goes_on, rows[position], values, null)
                for k in range(count):
                    values[v_slots[k]] = queued[this, k]
                    null[v_slots[k]] = (queued[this, count] >> k) & 1
                if spans[a.SO_FAR] >= 0:
                    values[spans[a.SO_FAR]], null[spans[a.SO_FAR]] = end - start, False
            moment, met = np.int64(0), False
            while p < last:
                t = ends[p]
                if t - start >= within or t - start > high or (met and t != moment):
                    break
                if not points and starts[p] <= end:
                    p += 1
                    continue
                if k_strict.shape[0] > 0 and not (
                    _reaches(k_keys, k_missing, p, k_first, k_first_missing, r, k_strict)
                    if position < 0
                    else _reaches(k_keys, k_missing, p, k_now, k_now_missing, position, k_strict)
                ):
                    p += 1
                    continue
                if reads:
                    load(seconds, rows[p], values, null)
                    if spans[a.WHOLE] >= 0:
                        values[spans[a.WHOLE]], null[spans[a.WHOLE]] = t - start, False
                    if spans[a.SECOND] >= 0:
                        values[spans[a.SECOND]], null[spans[a.SECOND]] = t - starts[p], False
                    verdict = holds(ranges, a.SAFE, code, values, reals, null, cases)
                    if verdict == ALARM:
                        state[a.AT_PROGRAM] = a.SAFE
                        return OVERFLOWED
                    if verdict == NO:
                        p += 1
                        continue
                met, moment = True, t
                if g_strict.shape[0] > 0 and not (
                    _reaches(g_keys, g_missing, p, g_first, g_first_missing, r, g_strict)
                    if position < 0
                    else _reaches(g_keys, g_missing, p, g_now, g_now_missing, position, g_strict)
                ):
                    p += 1
                    continue
                if reads:
                    verdict = holds(ranges, a.SAFE_GO, code, values, reals, null, cases)
                    if verdict == ALARM:
                        state[a.AT_PROGRAM] = a.SAFE_GO
                        return OVERFLOWED
                    if verdict == NO:
                        p += 1
                        continue
                if filled == queue.shape[0] or 2 * filled > heads.shape[0]:
                    state[a.NEXT_ROW], state[a.USED] = place, before
                    return MORE_QUEUE
                queued[filled, count] = 0
                for k in range(count):
                    number = a.VALUES + k
                    low_, high_ = ranges[number, a.LOW], ranges[number, a.HIGH]
                    if not execute(code, low_, high_, values, reals, null, cases):
                        state[a.AT_PROGRAM] = number
                        return OVERFLOWED
                    slot = ranges[number, a.SLOT]
                    queued[filled, k] = 0 if null[slot] else values[slot]
                    queued[filled, count] |= np.int64(null[slot]) << k
                if ties:
                    b = _hash(p, queued, filled) & mask
                    other = heads[b] if stamps[b] == place + 1 else -1
                    while other >= 0:
                        equal = queue[other, a.POSITION] == p
                        for k in range(count + 1):
                            equal = equal and queued[other, k] == queued[filled, k]
                        if equal:
                            break
                        other = queue[other, a.LINK]
                    if other >= 0:
                        p += 1
                        continue
                    queue[filled, a.LINK] = heads[b] if stamps[b] == place + 1 else -1
                    heads[b], stamps[b] = filled, place + 1
                if used == out.shape[0]:
                    state[a.NEXT_ROW], state[a.USED] = place, before
                    return MORE_ROWS
                queue[filled, a.POSITION], queue[filled, a.END] = p, t
                out[used, 0], out[used, 1] = r, rows[p]
                for k in range(count + 1):
                    words[used, k] = queued[filled, k]
                used += 1
                filled += 1
                p += 1
    state[a.USED] = used
    return DONE
