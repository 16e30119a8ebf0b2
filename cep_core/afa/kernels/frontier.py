"""The runs that are alive, moved from event to event (AFA, section 5.1, over ordered input).

A **group** is all runs of one state and register; the set of their first events is shared data (`firsts`). A group's future
depends on its state and register only, so that it is stepped once, whatever the number of its runs. Three facts about an
event and a state are known before any group is looked at, from the arcs that live and whose conditions on the event hold:
the state dies (no such arc), rests (all of them ignore the event and ask nothing of the register: its groups stay where
they are, untouched, an interval and not copies: appendix D), or steps. A group that would die at the very next event and
says nothing before is not stored: it leaves no trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.afa.kernels.firsts import EMPTY, compact, greatest, members, union
from cep_core.afa.kernels.machine import execute

Array = Any

# columns of `arcs`
SOURCE, TARGET, CONDITION, WHEN_LOW, WHEN_HIGH, WHEN_SLOT, SET_LOW, SET_HIGH, MOVE_LOW, MOVE_HIGH, IGNORES = range(11)
# columns of `meta`: a group's state, firsts, the event since when it is what it is, and its places in lists
STATE, FIRSTS, SINCE, NEXT, CHAIN, BUCKET, AGE = range(7)
# verdicts of an event on a state
DIES, RESTS, STEPS = range(3)

NO, YES, OVERFLOW = range(3)

FINE = -1

SWEEP = 4096
"""Events that a state may rest before its groups are looked through for those whose window is over."""


@njit(cache=True, nogil=True)
def judge(tables: Any, epoch: int, bits: Array, e: int, rests: bool, verdict: Array) -> None:
    """Fill `verdict` (states) for event e. `rests`: whether ignored events leave groups untouched."""
    arcs, at, listed, loose = tables[0], tables[3], tables[4], tables[11]
    for q in range(verdict.shape[0]):
        found = DIES
        for i in range(at[epoch, q], at[epoch, q + 1]):
            arc = listed[i]
            c = arcs[arc, CONDITION]
            if c >= 0 and not (bits[e, c >> 6] >> np.uint64(c & 63)) & np.uint64(1):
                continue
            if rests and arcs[arc, IGNORES] and arcs[arc, WHEN_SLOT] < 0 and not loose[q]:
                found = max(found, RESTS)
            else:
                found = STEPS
                break
        verdict[q] = found


@njit(cache=True, nogil=True)
def fire(tables: Any, machine: Any, arc: int, source: Array, s: int, target: Array, t: int) -> int:
    """Whether the arc fires on the register in row s of `source`; the new register goes to row t of `target`."""
    arcs, moves, code = tables[0], tables[1], tables[2]
    values, reals, null, cases = machine
    fields = source.shape[1] - 1
    slot = arcs[arc, WHEN_SLOT]
    move_low, move_high = arcs[arc, MOVE_LOW], arcs[arc, MOVE_HIGH]
    if slot >= 0 or move_low < move_high:
        for k in range(fields):
            values[k] = source[s, k]
            null[k] = (source[s, fields] >> k) & 1
    if slot >= 0:
        if not execute(code, arcs[arc, WHEN_LOW], arcs[arc, WHEN_HIGH], values, reals, null, cases):
            return OVERFLOW
        if null[slot] or values[slot] == 0:
            return NO
    for k in range(fields + 1):
        target[t, k] = source[s, k]
    if move_low < move_high:
        if not execute(code, arcs[arc, SET_LOW], arcs[arc, SET_HIGH], values, reals, null, cases):
            return OVERFLOW
        for m in range(move_low, move_high):
            field, slot, bits = moves[m, 0], moves[m, 1], moves[m, 2]
            if null[slot]:
                target[t, field] = 0
                target[t, fields] |= 1 << field
                continue
            value = values[slot]
            if 0 < bits < 64 and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                return OVERFLOW
            target[t, field] = value
            target[t, fields] &= ~(1 << field)
    return YES


@njit(cache=True, nogil=True)
def settle(
    tables: Any, machine: Any, epoch: int, registers: Array, states: Array, count: int
) -> tuple[Array, Array, int, int]:
    """Add to the `count` (register, state) rows all that epsilon arcs make of them; the arc that overflows, or FINE.

    Ends, since an epsilon cycle leaves the register alone.
    """
    at, listed, loose = tables[5], tables[6], tables[11]
    j = 0
    while j < count:
        if loose[states[j]]:
            for i in range(at[epoch, states[j]], at[epoch, states[j] + 1]):
                if count == states.shape[0]:
                    registers = np.concatenate((registers, np.zeros_like(registers)))
                    states = np.concatenate((states, np.zeros_like(states)))
                fired = fire(tables, machine, listed[i], registers, j, registers, count)
                if fired == OVERFLOW:
                    return registers, states, count, listed[i]
                if fired == NO:
                    continue
                states[count] = tables[0][listed[i], TARGET]
                new = True
                for x in range(count):
                    if states[x] == states[count] and same(registers, x, registers, count):
                        new = False
                        break
                count += int(new)
        j += 1
    return registers, states, count, FINE


@njit(cache=True, nogil=True)
def same(a: Array, i: int, b: Array, j: int) -> bool:
    """Whether two registers are equal, NULL being equal to NULL."""
    for k in range(a.shape[1]):  # noqa: SIM110 - numba compiles loops
        if a[i, k] != b[j, k]:
            return False
    return True


@njit(cache=True, nogil=True)
def hashed(state: int, registers: Array, i: int) -> int:
    """A hash of state and register."""
    h = np.uint64(state + 1) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(registers.shape[1]):
        h = (h ^ np.uint64(registers[i, k])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(1))


@njit(cache=True, nogil=True)
def unlink(meta: Array, buckets: Array, g: int) -> None:
    """Take a group out of its hash chain."""
    b = meta[g, BUCKET] & (buckets.shape[0] - 1)
    if buckets[b] == g:
        buckets[b] = meta[g, CHAIN]
        return
    before = buckets[b]
    while meta[before, CHAIN] != g:
        before = meta[before, CHAIN]
    meta[before, CHAIN] = meta[g, CHAIN]


@njit(cache=True, nogil=True)
def grown(meta: Array, registers: Array, buckets: Array, heads: Array, aside: Array) -> tuple[Array, Array, Array]:
    """Room for twice the groups; those in the lists `heads` and `aside` are hashed anew."""
    size = meta.shape[0]
    meta = np.concatenate((meta, np.zeros_like(meta)))
    registers = np.concatenate((registers, np.zeros_like(registers)))
    buckets = np.full(4 * size, -1, np.int64)
    for lists in (heads, aside):
        for q in range(lists.shape[0]):
            g = lists[q]
            while g >= 0:
                b = meta[g, BUCKET] & (buckets.shape[0] - 1)
                meta[g, CHAIN] = buckets[b]
                buckets[b] = g
                g = meta[g, NEXT]
    return meta, registers, buckets


@njit(cache=True, nogil=True)
def write(rows: Array, used: int, found: Array, count: int, last: int, state: int, registers: Array, i: int) -> Array:
    """Append (first, last, state, register) for each of found[:count]; gives the array, grown if need be."""
    while used + count > rows.shape[0]:
        rows = np.concatenate((rows, np.zeros_like(rows)))
    for x in range(count):
        rows[used + x, 0], rows[used + x, 1], rows[used + x, 2] = found[x], last, state
        for k in range(registers.shape[1]):
            rows[used + x, 3 + k] = registers[i, k]
    return rows


@njit(cache=True, nogil=True)
def noted(log: Array, used: int, state: int, firsts: int, since: int, until: int, registers: Array, i: int) -> Array:
    """Append (firsts, state, since, until, register): what the group was from event `since` to event `until`."""
    if used == log.shape[0]:
        log = np.concatenate((log, np.zeros_like(log)))
    log[used, 0], log[used, 1], log[used, 2], log[used, 3] = firsts, state, since, until
    for k in range(registers.shape[1]):
        log[used, 4 + k] = registers[i, k]
    return log


@njit(cache=True, nogil=True)
def ended(
    tables: Any, machine: Any, time: Array, within: int, found: Array, count: int, last: int, state: int,
    registers: Array, g: int, rows: Array, used: int, watermark: int,
) -> tuple[Array, int, int, int]:  # fmt: skip
    """The windows of found[:count] (first events of group g) have ended: take the `window_end` arcs of its state, and
    epsilon arcs from there; each once a run. (rows, used, the arc that overflows or FINE, its first event)."""
    at, listed, final, bounds = tables[7], tables[8], tables[9], tables[12]
    goal = np.zeros((4, registers.shape[1]), np.int64)
    goals = np.zeros(4, np.int64)
    one = np.zeros(1, np.int64)
    for x in range(count):
        moment = time[found[x]] + within
        if moment > watermark:
            continue
        epoch = np.searchsorted(bounds, moment, side="right")
        for i in range(at[epoch, state], at[epoch, state + 1]):
            fired = fire(tables, machine, listed[i], registers, g, goal, 0)
            if fired == OVERFLOW:
                return rows, used, listed[i], found[x]
            if fired == NO:
                continue
            goals[0] = tables[0][listed[i], TARGET]
            goal, goals, many, alarm = settle(tables, machine, epoch, goal, goals, 1)
            if alarm != FINE:
                return rows, used, alarm, found[x]
            one[0] = found[x]
            for j in range(many):
                if final[goals[j]]:
                    rows = write(rows, used, one, 1, last, goals[j], goal, j)
                    used += 1
    return rows, used, FINE, 0


@njit(cache=True, nogil=True)
def run(
    tables: Any, machine: Any, init: Array, start: int, within: int, time: Array, partition: Array, bits: Array,
    leaves: Array, leaf_null: Array, leaf_slots: Array, starts: tuple[int, int], watermark: int, rests: bool, keep: bool,
) -> tuple[Array, int, Array, int, Array, int, int, int]:  # fmt: skip
    """All runs over events in order of (partition, time, tie).

    `init`: (1, fields + 1) int64, the register as rows of results have it: fields, then the mask of NULLs. `bits`: the
    conditions on events that hold, (n, words). `leaves`: (n, L) values of `leaf_slots`. Runs begin at events with
    starts[0] <= time < starts[1]. `keep`: log all partial runs.

    Gives rows (first, last, state, register), how many; log, how many; its sets of firsts, how many; the arc that
    overflowed (or FINE) and at which event.
    """
    arcs, at, listed, final, ends, bounds = tables[0], tables[3], tables[4], tables[9], tables[10], tables[12]
    values, null = machine[0], machine[2]
    n, states, width = time.shape[0], at.shape[1] - 1, init.shape[1]
    rows, used = np.zeros((64, 3 + width), np.int64), 0
    log, logged = np.zeros((64, 4 + width), np.int64), 0
    nodes, unions, room = np.zeros((1024, 5), np.int64), 0, 4096
    meta, registers = np.zeros((64, 7), np.int64), np.zeros((64, width), np.int64)
    buckets = np.full(128, -1, np.int64)
    free, groups = -1, 0
    heads, aside, ages = np.full(states, -1, np.int64), np.full(states, -1, np.int64), np.zeros(states, np.int64)
    verdict, following, stepped = np.zeros(states, np.int64), np.zeros(states, np.int64), np.zeros(states, np.int64)
    begun, begun_at = np.zeros((4, width), np.int64), np.zeros(4, np.int64)
    goal, goals = np.zeros((4, width), np.int64), np.zeros(4, np.int64)
    marks, found, stack, stamp = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(2048, np.int64), 0
    low, epoch, has_end = 0, 0, False
    for q in range(states):
        has_end = has_end or ends[q]
    for e in range(n):
        fresh = e == 0 or partition[e] != partition[e - 1]
        over = e + 1 == n or partition[e + 1] != partition[e]
        if stack.shape[0] < nodes.shape[0] + 2:
            stack = np.zeros(nodes.shape[0] + 2, np.int64)
        if fresh:
            for q in range(states):
                while heads[q] >= 0:
                    g = heads[q]
                    heads[q] = meta[g, NEXT]
                    unlink(meta, buckets, g)
                    meta[g, NEXT] = free
                    free = g
            low, epoch = e, 0
            unions = 0 if not keep else unions
        before = low
        while time[e] - time[low] >= within:
            low += 1
        if has_end and before < low:
            for q in range(states):
                if ends[q]:
                    g = heads[q]
                    while g >= 0:
                        stamp += 1
                        count = members(nodes, meta[g, FIRSTS], before, low, stamp, marks, stack, found)
                        rows, used, alarm, where = ended(
                            tables, machine, time, within, found, count, e - 1, q, registers, g, rows, used, watermark
                        )
                        if alarm != FINE:
                            return rows, used, log, logged, nodes, unions, alarm, where
                        g = meta[g, NEXT]
        while epoch < bounds.shape[0] and bounds[epoch] <= time[e]:
            epoch += 1
        if fresh:
            judge(tables, epoch, bits, e, rests, verdict)
        else:
            verdict, following = following, verdict
        if not over:
            later = epoch
            while later < bounds.shape[0] and bounds[later] <= time[e + 1]:
                later += 1
            judge(tables, later, bits, e + 1, rests, following)
        for x in range(leaf_slots.shape[0]):
            values[leaf_slots[x]], null[leaf_slots[x]] = leaves[e, x], leaf_null[e, x]
        # lists that do not rest are put aside; what comes now is of a new age and does not meet what was
        for q in range(states):
            if verdict[q] != RESTS or e - stepped[q] >= SWEEP:
                verdict[q] = DIES if verdict[q] == DIES else STEPS
                stepped[q] = e
                aside[q], heads[q] = heads[q], -1
                ages[q] += 1
        # the runs that begin here, then the groups
        beginning = 0
        if starts[0] <= time[e] < starts[1]:
            for k in range(width):
                begun[0, k] = init[0, k]
            begun_at[0] = start
            begun, begun_at, beginning, alarm = settle(tables, machine, epoch, begun, begun_at, 1)
            if alarm != FINE:
                return rows, used, log, logged, nodes, unions, alarm, e
        q, g = -1, -1
        while True:
            if beginning > 0:
                beginning -= 1
                source, firsts, since = begun_at[beginning], e, e
                if verdict[source] == DIES:
                    continue
            else:
                while g < 0 and q + 1 < states:
                    q += 1
                    g = aside[q]
                if g < 0:
                    break
                source, firsts, since = q, meta[g, FIRSTS], meta[g, SINCE]
            stays = False
            if greatest(nodes, firsts) >= low and verdict[source] != DIES:
                for i in range(at[epoch, source], at[epoch, source + 1]):
                    arc = listed[i]
                    c = arcs[arc, CONDITION]
                    if c >= 0 and not (bits[e, c >> 6] >> np.uint64(c & 63)) & np.uint64(1):
                        continue
                    if g < 0:
                        fired = fire(tables, machine, arc, begun, beginning, goal, 0)
                    else:
                        fired = fire(tables, machine, arc, registers, g, goal, 0)
                    if fired == OVERFLOW:
                        return rows, used, log, logged, nodes, unions, arc, e
                    if fired == NO:
                        continue
                    goals[0] = arcs[arc, TARGET]
                    goal, goals, many, alarm = settle(tables, machine, epoch, goal, goals, 1)
                    if alarm != FINE:
                        return rows, used, log, logged, nodes, unions, alarm, e
                    ignored = rests and g >= 0 and arcs[arc, IGNORES] == 1
                    stays = stays or ignored
                    for j in range(many):
                        state = goals[j]
                        quiet = over or following[state] == DIES
                        if quiet and not (final[state] or ends[state] or keep):
                            continue
                        now = since if ignored and j == 0 else e
                        h = hashed(state, goal, j)
                        x = buckets[h & (buckets.shape[0] - 1)]
                        while x >= 0 and not (
                            meta[x, STATE] == state and meta[x, AGE] == ages[state] and same(registers, x, goal, j)
                        ):
                            x = meta[x, CHAIN]
                        if x >= 0:
                            nodes, unions, merged = union(nodes, unions, meta[x, FIRSTS], firsts, low)
                            if keep and now < e:
                                log = noted(log, logged, state, firsts, now, e - 1, goal, j)
                                logged += 1
                            if merged != meta[x, FIRSTS] and meta[x, SINCE] < e:
                                if keep:
                                    log = noted(log, logged, state, meta[x, FIRSTS], meta[x, SINCE], e - 1, goal, j)
                                    logged += 1
                                meta[x, SINCE] = e
                            meta[x, FIRSTS] = merged
                            continue
                        if free >= 0:
                            x = free
                            free = meta[x, NEXT]
                        else:
                            if groups == meta.shape[0]:
                                meta, registers, buckets = grown(meta, registers, buckets, heads, aside)
                            x = groups
                            groups += 1
                        meta[x, STATE], meta[x, FIRSTS], meta[x, SINCE] = state, firsts, now
                        meta[x, NEXT], heads[state] = heads[state], x
                        b = h & (buckets.shape[0] - 1)
                        meta[x, CHAIN], buckets[b] = buckets[b], x
                        meta[x, BUCKET], meta[x, AGE] = h, ages[state]
                        for k in range(width):
                            registers[x, k] = goal[j, k]
            if g >= 0:
                if keep and not stays:
                    log = noted(log, logged, q, firsts, since, e - 1, registers, g)
                    logged += 1
                aside[q] = meta[g, NEXT]
                unlink(meta, buckets, g)
                meta[g, NEXT] = free
                free, g = g, aside[q]
        for q in range(states):
            if final[q]:
                g = heads[q]
                while g >= 0:
                    stamp += 1
                    if stack.shape[0] < nodes.shape[0] + 2:
                        stack = np.zeros(nodes.shape[0] + 2, np.int64)
                    count = members(nodes, meta[g, FIRSTS], low, e + 1, stamp, marks, stack, found)
                    rows = write(rows, used, found, count, e, q, registers, g)
                    used += count
                    g = meta[g, NEXT]
        if over:
            for q in range(states):
                g = heads[q]
                while g >= 0:
                    if ends[q]:
                        stamp += 1
                        if stack.shape[0] < nodes.shape[0] + 2:
                            stack = np.zeros(nodes.shape[0] + 2, np.int64)
                        count = members(nodes, meta[g, FIRSTS], low, e + 1, stamp, marks, stack, found)
                        rows, used, alarm, where = ended(
                            tables, machine, time, within, found, count, e, q, registers, g, rows, used, watermark
                        )
                        if alarm != FINE:
                            return rows, used, log, logged, nodes, unions, alarm, where
                    if keep:
                        log = noted(log, logged, q, meta[g, FIRSTS], meta[g, SINCE], e, registers, g)
                        logged += 1
                    g = meta[g, NEXT]
        elif unions > room and not keep:
            unions, room = tidy(nodes, unions, meta, heads, groups, low)
    return rows, used, log, logged, nodes, unions, FINE, 0


@njit(cache=True, nogil=True)
def tidy(nodes: Array, unions: int, meta: Array, heads: Array, groups: int, low: int) -> tuple[int, int]:
    """Forget unions that no group needs; how many stay, and after how many to look again."""
    roots = np.full(groups, EMPTY, np.int64)
    for q in range(heads.shape[0]):
        g = heads[q]
        while g >= 0:
            roots[g] = meta[g, FIRSTS]
            g = meta[g, NEXT]
    kept = compact(nodes, unions, roots, low)
    for q in range(heads.shape[0]):
        g = heads[q]
        while g >= 0:
            meta[g, FIRSTS] = roots[g]
            g = meta[g, NEXT]
    return kept, max(4096, 2 * kept)
