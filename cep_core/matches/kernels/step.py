"""The automaton of kind matches, compiled: merged runs with registers, stepped from event to event.

A **group** is all runs of one state (the part they are in) with equal registers (`registers`, `groups`); it holds a
link of the buffer, behind which its runs are, and the newest of their starts. Groups of age 0 are under way; those of
age 1 have just bound the event: they become nodes of the buffer, and join a group under way where one is equal.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from cep_core.events.array_types import Bools, Int64s
from cep_core.kernels.register_programs import NO, OVERFLOW, WHEN_SLOT, fire, hashed
from cep_core.kernels.run_groups import AGE, BUCKET, CHAIN, NEXT, STATE, lookup, unlink
from cep_core.kernels.run_groups import FIRSTS as LINK
from cep_core.kernels.run_groups import SINCE as NEWEST
from cep_core.kernels.uncounted_arrays import borrowed

ANY, NEXT_MATCH, CONTIGUOUS = range(3)
"""Selections: what a run may ignore."""

TAKE, BEGIN, LEAVE = range(3)
"""Rows of `arcs` are 3 * part + one of these: going on with a part, beginning it, leaving it."""

DONE, FULL, MORE_GROUPS, OVERFLOWED = range(4)
"""Why `advance` returns: at the end; for room in `columns` or `ends`, or because an event has ended matches; for more
groups; or for good, as a whole number overflows."""

AT, FREE, FREES, GROUPS, ALIVE, LINKS, ENDINGS = range(7)
"""What `advance` remembers: the next event, free groups and how many, groups in use or free, groups under way; and what
it has written: links, ends."""

WAITING, MOVED = range(2)
"""Lists of a state's groups: those under way, those that have just bound the event."""


@njit(cache=True, nogil=True)
def _release(memory: Int64s, meta: Int64s, buckets: Int64s, g: int, merging: bool) -> None:
    """The group is no more."""
    if merging:
        unlink(meta, buckets, g)
    meta[g, NEXT] = memory[FREE]
    memory[FREE] = g
    memory[FREES] += 1
    memory[ALIVE] -= 1


@njit(cache=True, nogil=True)
def _clear(memory: Int64s, meta: Int64s, buckets: Int64s, lists: Int64s, k: int, merging: bool) -> None:
    """No group of state k is under way."""
    while lists[WAITING, k] >= 0:
        g = lists[WAITING, k]
        lists[WAITING, k] = meta[g, NEXT]
        _release(memory, meta, buckets, g, merging)


@njit(cache=True, nogil=True)
def _fork(columns: Int64s, base: int, memory: Int64s, a: int, b: int, newest: int) -> int:
    """A link to the runs behind both."""
    at = memory[LINKS]
    columns[0, at], columns[1, at], columns[2, at], columns[3, at], columns[4, at] = -1, -1, a, b, newest
    memory[LINKS] += 1
    return base + int(at)


@njit(cache=True, nogil=True)
def _node(columns: Int64s, base: int, memory: Int64s, event: int, part: int, before: int, newest: int) -> int:
    """A link to the runs behind `before`, and the event after them."""
    at = memory[LINKS]
    columns[0, at], columns[1, at], columns[2, at], columns[3, at], columns[4, at] = event, part, before, -1, newest
    memory[LINKS] += 1
    return base + int(at)


@njit(cache=True, nogil=True)
def _add(
    memory: Int64s, meta: Int64s, registers: Int64s, buckets: Int64s, lists: Int64s, columns: Int64s, base: int,
    state: int, age: int, goal: Int64s, link: int, newest: int, merging: bool,
) -> None:  # fmt: skip
    """Runs of a state and age, with the register in row 0 of `goal`: join the group that is equal, or make one."""
    h = 0
    if merging:
        h = hashed(state, goal, 0)
        x = lookup(meta, registers, buckets, h, state, age, goal, 0)
        if x >= 0:
            both = max(newest, meta[x, NEWEST])
            meta[x, LINK] = _fork(columns, base, memory, meta[x, LINK], link, both)
            meta[x, NEWEST] = both
            return
    if memory[FREE] >= 0:
        g = memory[FREE]
        memory[FREE] = meta[g, NEXT]
        memory[FREES] -= 1
    else:
        g = memory[GROUPS]
        memory[GROUPS] += 1
    memory[ALIVE] += 1
    meta[g, STATE], meta[g, LINK], meta[g, NEWEST], meta[g, AGE] = state, link, newest, age
    meta[g, NEXT], meta[g, BUCKET] = lists[age, state], h
    lists[age, state] = g
    if merging:
        b = h & (buckets.shape[0] - 1)
        meta[g, CHAIN] = buckets[b]
        buckets[b] = g
    for x in range(goal.shape[1]):
        registers[g, x] = goal[0, x]


@njit(cache=True, nogil=True)
def _advance(
    tables: Any, machine: Any, leaves: Int64s, leaf_null: Bools, leaf_slots: Int64s,
    events: Int64s, broken: Bools, time: Int64s, begins: Int64s, takes: Int64s, kleene: Bools,
    within: int, mode: int, merging: bool, each: bool,
    memory: Int64s, meta: Int64s, registers: Int64s, buckets: Int64s, lists: Int64s, goal: Int64s,
    columns: Int64s, base: int, ends: Int64s, horizons: Int64s,
) -> int:  # fmt: skip
    """`advance`, over arrays that are not counted."""
    arcs, moves, code = tables
    values, reals, null, cases = machine
    parts = kleene.shape[0]
    last = parts - 1
    memory[LINKS] = memory[ENDINGS] = 0
    while memory[AT] < events.shape[0]:
        if each and memory[ENDINGS] > 0:
            return FULL
        # every group may move twice and one may begin: each a node, joined twice
        most = 2 * memory[ALIVE] + 2
        if memory[GROUPS] - memory[FREES] + most > meta.shape[0]:
            return MORE_GROUPS
        if memory[LINKS] + 3 * most > columns.shape[1] or memory[ENDINGS] + most > ends.shape[0]:
            return FULL
        e = events[memory[AT]]
        horizon = time[e] - within
        if broken[memory[AT]]:
            for k in range(parts):
                _clear(memory, meta, buckets, lists, k, merging)
        loaded = False
        for k in range(parts):
            g = lists[WAITING, k]
            if g < 0:
                continue
            takes_it = (takes[e] >> k) & 1 == 1
            begins_it = k < last and (begins[e] >> (k + 1)) & 1 == 1
            if not takes_it and not begins_it:
                if mode == CONTIGUOUS:
                    _clear(memory, meta, buckets, lists, k, merging)
                continue
            if not loaded:
                loaded = True
                for x in range(leaf_slots.shape[0]):
                    values[leaf_slots[x]], null[leaf_slots[x]] = leaves[e, x], leaf_null[e, x]
            before = -1
            while g >= 0:
                following = meta[g, NEXT]
                gone = meta[g, NEWEST] <= horizon
                if not gone:
                    taken = begun = NO
                    if takes_it:
                        arc = 3 * k + TAKE
                        taken = fire(arcs, moves, code, values, reals, null, cases, arc, registers, g, goal, 0)
                        if taken == OVERFLOW:
                            return OVERFLOWED
                        if taken != NO:
                            _add(
                                memory, meta, registers, buckets, lists, columns, base,
                                k, MOVED, goal, meta[g, LINK], meta[g, NEWEST], merging,
                            )  # fmt: skip
                    if begins_it:
                        arc = 3 * (k + 1) + BEGIN
                        begun = fire(arcs, moves, code, values, reals, null, cases, arc, registers, g, goal, 0)
                        if begun == OVERFLOW:
                            return OVERFLOWED
                        if begun != NO:
                            _add(
                                memory, meta, registers, buckets, lists, columns, base,
                                k + 1, MOVED, goal, meta[g, LINK], meta[g, NEWEST], merging,
                            )  # fmt: skip
                    gone = mode == CONTIGUOUS or (mode == NEXT_MATCH and (taken if kleene[k] else begun) != NO)
                if gone:
                    if before < 0:
                        lists[WAITING, k] = following
                    else:
                        meta[before, NEXT] = following
                    _release(memory, meta, buckets, g, merging)
                else:
                    before = g
                g = following
        for k in range(parts):
            stays = k < last or kleene[k]
            while lists[MOVED, k] >= 0:
                g = lists[MOVED, k]
                lists[MOVED, k] = meta[g, NEXT]
                newest = meta[g, NEWEST]
                node = _node(columns, base, memory, e, k, meta[g, LINK], newest)
                for x in range(goal.shape[1]):
                    goal[0, x] = registers[g, x]
                _release(memory, meta, buckets, g, merging)
                if stays:
                    _add(
                        memory, meta, registers, buckets, lists, columns, base,
                        k, WAITING, goal, node, newest, merging,
                    )  # fmt: skip
                if k == last:
                    left = 1
                    if arcs[3 * k + LEAVE, WHEN_SLOT] >= 0:
                        left = fire(arcs, moves, code, values, reals, null, cases, 3 * k + LEAVE, goal, 0, goal, 2)
                        if left == OVERFLOW:
                            return OVERFLOWED
                    if left != NO:
                        ends[memory[ENDINGS]], horizons[memory[ENDINGS]] = node, horizon
                        memory[ENDINGS] += 1
        if begins[e] & 1 == 1:
            if not loaded:
                for x in range(leaf_slots.shape[0]):
                    values[leaf_slots[x]], null[leaf_slots[x]] = leaves[e, x], leaf_null[e, x]
            if fire(arcs, moves, code, values, reals, null, cases, BEGIN, goal, 1, goal, 0) == OVERFLOW:
                return OVERFLOWED
            node = _node(columns, base, memory, e, 0, -1, time[e])
            if last > 0 or kleene[0]:
                _add(
                    memory, meta, registers, buckets, lists, columns, base,
                    0, WAITING, goal, node, time[e], merging,
                )  # fmt: skip
            if last == 0:
                left = fire(arcs, moves, code, values, reals, null, cases, LEAVE, goal, 0, goal, 2)
                if left == OVERFLOW:
                    return OVERFLOWED
                if left != NO:
                    ends[memory[ENDINGS]], horizons[memory[ENDINGS]] = node, horizon
                    memory[ENDINGS] += 1
        memory[AT] += 1
    return DONE


@njit(cache=True, nogil=True)
def advance(
    tables: Any, machine: Any, leaves: Int64s, leaf_null: Bools, leaf_slots: Int64s,
    events: Int64s, broken: Bools, time: Int64s, begins: Int64s, takes: Int64s, kleene: Bools,
    within: int, mode: int, merging: bool, each: bool,
    memory: Int64s, meta: Int64s, registers: Int64s, buckets: Int64s, lists: Int64s, goal: Int64s,
    columns: Int64s, base: int, ends: Int64s, horizons: Int64s,
) -> int:  # fmt: skip
    """Read `events` until there are no more or there is no room.

    `tables`: arcs, moves, code of `registers` and `machine`. `broken[i]`: no run goes on from before event i. `begins`,
    `takes`: bits by part. `goal`: (3, width), row 1 the register that a run begins with. `columns` (5, size): new
    links, numbered from `base`, as in `cep_core.matches.run.buffer`. `ends`, `horizons`: the nodes that end matches.
    `each`: stop after an event that ends some. `merging` off: every run is a group of its own.
    """
    return _advance(
        borrowed(tables), borrowed(machine), borrowed(leaves), borrowed(leaf_null), borrowed(leaf_slots),
        borrowed(events), borrowed(broken), borrowed(time), borrowed(begins), borrowed(takes), borrowed(kleene),
        within, mode, merging, each,
        borrowed(memory), borrowed(meta), borrowed(registers), borrowed(buckets), borrowed(lists), borrowed(goal),
        borrowed(columns), base, borrowed(ends), borrowed(horizons),
    )  # fmt: skip
