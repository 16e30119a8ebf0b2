"""The runs that are alive, moved from event to event (AFA, section 5.1, over ordered input).

A **group** is all runs of one state and register; the set of their first events is shared data (`start_sets`). A
group's future depends on its state and register only, so that it is stepped once, whatever the number of its runs.
Three things that an event can do to a state are known before any group is looked at, from the arcs that live and whose
conditions on the event hold: the state dies (no such arc), rests (all of them ignore the event and ask nothing of the
register: its groups stay where they are, untouched, an interval and not copies: appendix D), or steps. A group that
would die at the very next event and says nothing before is not stored: it leaves no trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.automaton.kernels.arcs import ALARM, DIES, RESTS, ended, judge, settle
from cep_core.automaton.kernels.start_sets import greatest, members, union
from cep_core.events.array_types import Bools, Int8s, Int64s, UInt64s
from cep_core.kernels.register_programs import CONDITION, IGNORES, NO, OVERFLOW, TARGET, fire, hashed, same
from cep_core.kernels.run_groups import AGE, BUCKET, FIRSTS, NEXT, SINCE, STATE, link, lookup, unlink
from cep_core.kernels.uncounted_arrays import borrowed

DONE, MORE_GROUPS, MORE_GOALS, MORE_ROWS, MORE_NODES, MORE_LOG, OVERFLOWED = range(7)
"""Why `advance` returns: at the end, for more room (then it goes on where it was), or for good."""

# what `advance` remembers between calls
AT, PHASE, LOW, BEFORE, EPOCH, BEGINNING, Q, G, FREE, GROUPS, USED, LOGGED, UNIONS, MARK, NOW, LATER, FOLLOWING = range(
    17
)

ENTER, ENDING, BEGIN, STEP, EMIT, LEAVE = range(6)
"""Phases of an event."""

FEW = 6
"""Groups of a state that are looked through; more are found by their hash."""
SWEEP = 4096
"""Events that a state may rest before its groups are looked through for those whose window is over."""


@njit(cache=True, nogil=True)
def noted(log: Int64s, used: int, state: int, firsts: int, since: int, until: int, registers: Int64s, i: int) -> None:
    """Append (firsts, state, since, until, register): what the group was from event `since` to event `until`."""
    log[used, 0], log[used, 1], log[used, 2], log[used, 3] = firsts, state, since, until
    for k in range(registers.shape[1]):
        log[used, 4 + k] = registers[i, k]


@njit(cache=True, nogil=True)
def _advance(
    tables: Any, machine: Any, init: Int64s, start: int, within: int, time: Int64s, partition: Int64s, bits: UInt64s,
    leaves: Int64s, leaf_null: Bools, leaf_slots: Int64s, starts: tuple[int, int], watermark: int,
    rests: bool, keep: bool,
    memory: Int64s, meta: Int64s, registers: Int64s, buckets: Int64s, lists: Int64s, verdicts: Int8s, judged: Bools,
    nodes: Int64s, stack: Int64s, rows: Int64s, log: Int64s, goal: Int64s, goals: Int64s, begun: Int64s,
    begun_at: Int64s,
    marks: Int64s, first_events: Int64s, alarm: Int64s,
) -> int:  # fmt: skip
    """`advance`, over arrays that are not counted."""
    arcs, moves, code, at, listed = tables[0], tables[1], tables[2], tables[3], tables[4]
    final, ends, loose, bounds, sets = tables[9], tables[10], tables[11], tables[12], tables[13]
    finals = tables[14]
    values, reals, null, cases = machine
    n, states, width = time.shape[0], at.shape[1] - 1, init.shape[1]
    epsilon, has_end = loose.any(), ends.any()
    e, phase, low, before, epoch = memory[AT], memory[PHASE], memory[LOW], memory[BEFORE], memory[EPOCH]
    beginning, q, g, free, groups = memory[BEGINNING], memory[Q], memory[G], memory[FREE], memory[GROUPS]
    used, logged, unions, stamp, now = memory[USED], memory[LOGGED], memory[UNIONS], memory[MARK], memory[NOW]
    following, reason = memory[FOLLOWING], DONE
    while e < n:
        over = e + 1 == n or partition[e + 1] != partition[e]
        if phase == ENTER:
            fresh = e == 0 or partition[e] != partition[e - 1]
            if fresh:
                for q in range(states):
                    while lists[0, q] >= 0:
                        g = lists[0, q]
                        lists[0, q] = meta[g, NEXT]
                        unlink(meta, buckets, g)
                        meta[g, NEXT], free = free, g
                    lists[4, q] = 0
                low = e
                unions = unions if keep else 0
            before = low
            while time[e] - time[low] >= within:
                low += 1
            epoch = 0 if fresh else memory[LATER]
            if fresh:
                while epoch < bounds.shape[0] and bounds[epoch] <= time[e]:
                    epoch += 1
                now = judge(arcs, at, listed, sets[epoch], bits, e, rests, verdicts, judged)
            else:
                now = following
            if not over:
                later = epoch
                while later < bounds.shape[0] and bounds[later] <= time[e + 1]:
                    later += 1
                memory[LATER] = later
                following = judge(arcs, at, listed, sets[later], bits, e + 1, rests, verdicts, judged)
            phase, q, g = ENDING, 0, lists[0, 0]
        if phase == ENDING:
            # windows that ended since the event before, whose `window_end` arcs fire with that event as the last
            while has_end and before < low and q < states:
                if not ends[q] or g < 0:
                    q += 1
                    g = lists[0, q] if q < states else -1
                    continue
                stamp += 1
                count = members(nodes, meta[g, FIRSTS], before, low, stamp, marks, stack, first_events)
                many = ended(
                    tables, machine, time, within, first_events, count, e - 1, q, registers, g, rows, used, watermark,
                    goal, goals, alarm,
                )  # fmt: skip
                if many < 0:
                    reason = OVERFLOWED if many == ALARM else MORE_ROWS
                    break
                used = many
                g = meta[g, NEXT]
            if reason != DONE:
                break
            for x in range(leaf_slots.shape[0]):
                values[leaf_slots[x]], null[leaf_slots[x]] = leaves[e, x], leaf_null[e, x]
            # lists that do not rest are put aside; what comes now is of a new age and does not meet what was
            for q in range(states):
                if lists[0, q] >= 0 and (verdicts[now, q] != RESTS or e - lists[3, q] >= SWEEP):
                    lists[1, q], lists[0, q] = lists[0, q], -1
                    lists[2, q] += 1
                    lists[3, q], lists[4, q] = e, 0
            phase = BEGIN
        live = sets[epoch]
        if phase == BEGIN:
            beginning = 0
            if starts[0] <= time[e] < starts[1]:
                for k in range(width):
                    begun[0, k] = init[0, k]
                begun_at[0] = start
                beginning = 1
                if epsilon:
                    beginning = settle(tables, machine, sets[epoch], begun, begun_at, 0, 1, alarm)
                    if beginning < 0:
                        alarm[1] = e
                        reason = OVERFLOWED if beginning == ALARM else MORE_GOALS
                        break
            phase, q, g = STEP, -1, -1
        while phase == STEP:
            # the runs that begin here (g < 0), then the groups put aside
            if beginning > 0:
                source, firsts, since = begun_at[beginning - 1], e, e
            else:
                while g < 0 and q + 1 < states:
                    q += 1
                    g = lists[1, q]
                if g < 0:
                    phase, q, g = EMIT, -1, -1
                    break
                source, firsts, since = q, meta[g, FIRSTS], meta[g, SINCE]
            # first all that comes of it; then, if there is room, it is stored
            count, stays = 0, -1
            if verdicts[now, source] != DIES and greatest(nodes, firsts) >= low:
                for i in range(at[live, source], at[live, source + 1]):
                    arc = listed[i]
                    c = arcs[arc, CONDITION]
                    if not (bits[e, c >> 6] >> np.uint64(c & 63)) & np.uint64(1):
                        continue
                    if count == goals.shape[0]:
                        reason = MORE_GOALS
                        break
                    if beginning > 0:
                        fired = fire(
                            arcs, moves, code, values, reals, null, cases, arc, begun, beginning - 1, goal, count
                        )
                    else:
                        fired = fire(arcs, moves, code, values, reals, null, cases, arc, registers, g, goal, count)
                    if fired == NO:
                        continue
                    if fired == OVERFLOW:
                        alarm[0], alarm[1], reason = arc, e, OVERFLOWED
                        break
                    goals[count] = arcs[arc, TARGET]
                    if rests and g >= 0 and arcs[arc, IGNORES]:
                        stays = count
                    many = count + 1
                    if epsilon:
                        many = settle(tables, machine, sets[epoch], goal, goals, count, count + 1, alarm)
                    if many < 0:
                        alarm[1] = e
                        reason = OVERFLOWED if many == ALARM else MORE_GOALS
                        break
                    count = many
                if reason != DONE:
                    break
                if groups + count > meta.shape[0]:
                    reason = MORE_GROUPS
                elif unions + count > nodes.shape[0]:
                    reason = MORE_NODES
                elif keep and logged + 2 * count + 1 > log.shape[0]:
                    reason = MORE_LOG
                if reason != DONE:
                    break
            for j in range(count):
                state = goals[j]
                if (over or verdicts[following, state] == DIES) and not (final[state] or ends[state] or keep):
                    continue
                lasting = since if j == stays else e
                h = -1
                if lists[4, state] < FEW:
                    x = lists[0, state]
                    while x >= 0 and not same(registers, x, goal, j):
                        x = meta[x, NEXT]
                else:
                    h = hashed(state, goal, j)
                    x = lookup(meta, registers, buckets, h, state, lists[2, state], goal, j)
                if x >= 0:
                    merged = union(nodes, unions, meta[x, FIRSTS], firsts, low)
                    unions += int(merged == -2 - unions)
                    if keep and lasting < e:
                        noted(log, logged, state, firsts, lasting, e - 1, goal, j)
                        logged += 1
                    if merged != meta[x, FIRSTS] and meta[x, SINCE] < e:
                        if keep:
                            noted(log, logged, state, meta[x, FIRSTS], meta[x, SINCE], e - 1, goal, j)
                            logged += 1
                        meta[x, SINCE] = e
                    meta[x, FIRSTS] = merged
                    continue
                if free >= 0:
                    x = free
                    free = meta[x, NEXT]
                else:
                    x = groups
                    groups += 1
                meta[x, STATE], meta[x, FIRSTS], meta[x, SINCE], meta[x, AGE] = state, firsts, lasting, lists[2, state]
                meta[x, NEXT], meta[x, BUCKET] = lists[0, state], -1
                lists[0, state] = x
                for k in range(width):
                    registers[x, k] = goal[j, k]
                lists[4, state] += 1
                if h >= 0:
                    link(meta, buckets, x, h)
                elif lists[4, state] == FEW:
                    while x >= 0:
                        link(meta, buckets, x, hashed(state, registers, x))
                        x = meta[x, NEXT]
            if beginning > 0:
                beginning -= 1
                continue
            if keep and stays < 0:
                if logged == log.shape[0]:
                    reason = MORE_LOG
                    break
                noted(log, logged, source, firsts, since, e - 1, registers, g)
                logged += 1
            lists[1, source] = meta[g, NEXT]
            unlink(meta, buckets, g)
            meta[g, NEXT], free = free, g
            g = lists[1, source]
        if reason != DONE:
            break
        while phase == EMIT:
            while g < 0 and q + 1 < finals.shape[0]:
                q += 1
                g = lists[0, finals[q]]
            if g < 0:
                phase, q, g = LEAVE, 0, lists[0, 0]
                break
            stamp += 1
            count = members(nodes, meta[g, FIRSTS], low, e + 1, stamp, marks, stack, first_events)
            if used + count > rows.shape[0]:
                reason = MORE_ROWS
                break
            for x in range(count):
                rows[used + x, 0], rows[used + x, 1], rows[used + x, 2] = first_events[x], e, finals[q]
                for k in range(width):
                    rows[used + x, 3 + k] = registers[g, k]
            used += count
            g = meta[g, NEXT]
        if reason != DONE:
            break
        # the partition is over: windows that end by the watermark; what is still there goes to the log
        while over and (has_end or keep) and q < states:
            if g < 0:
                q += 1
                g = lists[0, q] if q < states else -1
                continue
            if keep and logged == log.shape[0]:
                reason = MORE_LOG
                break
            if ends[q]:
                stamp += 1
                count = members(nodes, meta[g, FIRSTS], low, e + 1, stamp, marks, stack, first_events)
                many = ended(
                    tables, machine, time, within, first_events, count, e, q, registers, g, rows, used, watermark,
                    goal, goals, alarm,
                )  # fmt: skip
                if many < 0:
                    reason = OVERFLOWED if many == ALARM else MORE_ROWS
                    break
                used = many
            if keep:
                noted(log, logged, q, meta[g, FIRSTS], meta[g, SINCE], e, registers, g)
                logged += 1
            g = meta[g, NEXT]
        if reason != DONE:
            break
        e, phase = e + 1, ENTER
    memory[AT], memory[PHASE], memory[LOW], memory[BEFORE], memory[EPOCH] = e, phase, low, before, epoch
    memory[BEGINNING], memory[Q], memory[G], memory[FREE], memory[GROUPS] = beginning, q, g, free, groups
    memory[USED], memory[LOGGED], memory[UNIONS], memory[MARK], memory[NOW] = used, logged, unions, stamp, now
    memory[FOLLOWING] = following
    return reason


@njit(cache=True, nogil=True)
def advance(
    tables: Any, machine: Any, init: Int64s, start: int, within: int, time: Int64s, partition: Int64s, bits: UInt64s,
    leaves: Int64s, leaf_null: Bools, leaf_slots: Int64s, starts: tuple[int, int], watermark: int,
    rests: bool, keep: bool,
    memory: Int64s, meta: Int64s, registers: Int64s, buckets: Int64s, lists: Int64s, verdicts: Int8s, judged: Bools,
    nodes: Int64s, stack: Int64s, rows: Int64s, log: Int64s, goal: Int64s, goals: Int64s, begun: Int64s,
    begun_at: Int64s,
    marks: Int64s, first_events: Int64s, alarm: Int64s,
) -> int:  # fmt: skip
    """All runs over events in order of (partition, time, tie), until the end or until an array is too small.

    `init`: (1, fields + 1). `bits`: the conditions on events that hold, (n, words). `leaves`: (n, L) values of
    `leaf_slots`. Runs begin at events with starts[0] <= time < starts[1]. `keep`: log all partial runs. `lists`: (5,
    states), each state's groups, those put aside, the age of the list, the event at which it last stepped, how many
    groups it has. `alarm`: the
    arc that overflowed and at which event.
    """
    return _advance(
        borrowed(tables), borrowed(machine), borrowed(init), start, within, borrowed(time), borrowed(partition),
        borrowed(bits), borrowed(leaves), borrowed(leaf_null), borrowed(leaf_slots), starts, watermark, rests, keep,
        borrowed(memory), borrowed(meta), borrowed(registers), borrowed(buckets), borrowed(lists),
        borrowed(verdicts), borrowed(judged), borrowed(nodes), borrowed(stack), borrowed(rows), borrowed(log),
        borrowed(goal),
        borrowed(goals), borrowed(begun), borrowed(begun_at), borrowed(marks), borrowed(first_events), borrowed(alarm),
    )  # fmt: skip
