"""The automaton of kind matches, compiled: merged runs with registers, stepped from event to event.

A **group** is all runs of one state (the part they are in) with equal registers (`registers`, `groups`); it holds a
link of the buffer, behind which its runs are, and the newest of their starts. Groups of age WAITING are under way;
those of age MOVED have just bound the event: they become nodes of the buffer, and join a group under way where one is
equal. Events of one step do not follow each other: what one of them has bound is of age TIED until the step has passed,
and what it has ended is of age LEAVING.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.kernels.register_programs import (
    NO,
    OVERFLOW,
    WHEN_SLOT,
    YES,
    Leaves,
    Programs,
    fires,
    hashed,
    load,
)
from trendlake.cep_core.kernels.run_groups import AGE, BUCKET, CHAIN, NEXT, STATE, lookup, unlink
from trendlake.cep_core.kernels.run_groups import FIRSTS as LINK
from trendlake.cep_core.kernels.run_groups import SINCE as NEWEST
from trendlake.cep_core.kernels.uncounted_arrays import borrowed

ANY, NEXT_MATCH, CONTIGUOUS = range(3)
"""Selections: what a run may ignore."""

TAKE, BEGIN, LEAVE = range(3)
"""Rows of `arcs` are 3 * part + one of these: going on with a part, beginning it, leaving it."""

DONE, FULL, MORE_GROUPS, OVERFLOWED = range(4)
"""Why `advance` returns: at the end; for room in `columns` or `ends`, or because an event has ended matches; for more
groups; or for good, as a whole number overflows."""

AT, FREE, FREES, GROUPS, ALIVE, LINKS, ENDINGS, IN_STEP = range(8)
"""The state of `advance`: the next event, free groups and how many, groups in use or free, groups under way; what it
has written: links, ends; and whether an event of the step that has not passed was read."""

WAITING, MOVED, TIED, LEAVING = range(4)
"""Ages of groups. There is a list of a state's groups for each but LEAVING: these stay in the list WAITING."""


class Events(NamedTuple):
    """`order`: events that some part may bind, partition after partition; `broken`, of each of them: no run goes on
    from before it, `step`: it begins a step. By event: `time` in microseconds, and bits by part, `begins` and `takes`.
    `kleene`, by part."""

    order: Int64s
    broken: Bools
    step: Bools
    time: Int64s
    begins: Int64s
    takes: Int64s
    kleene: Bools


class Groups(NamedTuple):
    """`memory`: see AT .. ENDINGS. `meta` (groups, 7), `registers` (groups, width) and `buckets`: see `run_groups`;
    `lists` (3, parts): WAITING, MOVED and TIED. `goal` (3, width): a register that is being made, the one that a run
    begins with, and one that is thrown away."""

    memory: Int64s
    meta: Int64s
    registers: Int64s
    buckets: Int64s
    lists: Int64s
    goal: Int64s


class Links(NamedTuple):
    """The output: `columns` (5, size), new links, as in `cep_core.matches.run.buffer`; `ends` and `horizons`: the nodes
    that end matches."""

    columns: Int64s
    ends: Int64s
    horizons: Int64s


class Rules(NamedTuple):
    """`within` in microseconds; the selection (ANY ..); `merging`: equal groups are one; `each`: stop after a step that
    ends matches; `base`: the number of the first new link."""

    within: int
    mode: int
    merging: bool
    each: bool
    base: int


@compiled.inlined
def _release(groups: Groups, g: int, merging: bool) -> None:
    """The group is no more."""
    memory = groups.memory
    if merging:
        unlink(groups.meta, groups.buckets, g)
    groups.meta[g, NEXT] = memory[FREE]
    memory[FREE] = g
    memory[FREES] += 1
    memory[ALIVE] -= 1


@compiled.part
def _clear(groups: Groups, k: int, merging: bool) -> None:
    """No group of state k is under way."""
    groups = borrowed(groups)
    for age in (WAITING, TIED):
        while groups.lists[age, k] >= 0:
            g = groups.lists[age, k]
            groups.lists[age, k] = groups.meta[g, NEXT]
            _release(groups, g, merging)


@compiled.inlined
def _link(links: Links, memory: Int64s, base: int, event: int, part: int, left: int, right: int, newest: int) -> int:
    """A new link, and its number: a node (event, part, what came before, -1) or a fork (-1, -1, one side, another)."""
    at, columns = memory[LINKS], links.columns
    columns[0, at], columns[1, at], columns[2, at], columns[3, at], columns[4, at] = event, part, left, right, newest
    memory[LINKS] += 1
    return base + int(at)


@compiled.part
def _add(groups: Groups, links: Links, rules: Rules, state: int, age: int, link: int, newest: int) -> None:
    """Runs of a state and age, with the register in row 0 of `goal`: join the group that is equal, or make one."""
    groups, links = borrowed(groups), borrowed(links)
    memory, meta, goal, buckets, lists = groups.memory, groups.meta, groups.goal, groups.buckets, groups.lists
    h = 0
    if rules.merging:
        h = hashed(state, goal, 0)
        x = lookup(meta, groups.registers, buckets, h, state, age, goal, 0)
        if x >= 0:
            both = max(newest, meta[x, NEWEST])
            meta[x, LINK] = _link(links, memory, rules.base, -1, -1, meta[x, LINK], link, both)
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
    if rules.merging:
        b = h & (buckets.shape[0] - 1)
        meta[g, CHAIN] = buckets[b]
        buckets[b] = g
    for x in range(goal.shape[1]):
        groups.registers[g, x] = goal[0, x]


@compiled.inlined
def _move(
    programs: Programs,
    events: Events,
    groups: Groups,
    links: Links,
    rules: Rules,
    k: int,
    takes: bool,
    begins: bool,
    horizon: int,
    alone: bool,
) -> bool:
    """Show the event to the groups under way in state k: those that bind it get a copy among MOVED, of state k where
    it takes the event, of k + 1 where it begins the next part. Those that it ends stay until the step has passed, if
    the event is not `alone` in it. False where a whole number overflows."""
    meta, lists, before = groups.meta, groups.lists, -1
    g = lists[WAITING, k]
    while g >= 0:
        following = meta[g, NEXT]
        gone = meta[g, NEWEST] <= horizon
        if not gone:
            taken = begun = NO
            if takes:
                taken = fires(programs, 3 * k + TAKE, groups.registers, g, groups.goal, 0)
                if taken == OVERFLOW:
                    return False
                if taken != NO:
                    _add(groups, links, rules, k, MOVED, meta[g, LINK], meta[g, NEWEST])
            if begins:
                begun = fires(programs, 3 * (k + 1) + BEGIN, groups.registers, g, groups.goal, 0)
                if begun == OVERFLOW:
                    return False
                if begun != NO:
                    _add(groups, links, rules, k + 1, MOVED, meta[g, LINK], meta[g, NEWEST])
            gone = rules.mode == CONTIGUOUS or (
                rules.mode == NEXT_MATCH and (taken if events.kleene[k] else begun) != NO
            )
            if gone and not alone:
                meta[g, AGE] = LEAVING
                gone = False
        if gone:
            if before < 0:
                lists[WAITING, k] = following
            else:
                meta[before, NEXT] = following
            _release(groups, g, rules.merging)
        else:
            before = g
        g = following
    return True


@compiled.inlined
def _end(programs: Programs, groups: Groups, links: Links, k: int, node: int, horizon: int) -> bool:
    """Write a node of the last part, k, to `ends`, if runs may leave it with the register in row 0 of `goal`. False
    where a whole number overflows."""
    left = YES
    if programs.arcs[3 * k + LEAVE, WHEN_SLOT] >= 0:
        left = fires(programs, 3 * k + LEAVE, groups.goal, 0, groups.goal, 2)
    if left == OVERFLOW:
        return False
    if left != NO:
        at = groups.memory[ENDINGS]
        links.ends[at], links.horizons[at] = node, horizon
        groups.memory[ENDINGS] += 1
    return True


@compiled.inlined
def _settle(
    programs: Programs,
    events: Events,
    groups: Groups,
    links: Links,
    rules: Rules,
    e: int,
    k: int,
    horizon: int,
    age: int,
) -> bool:
    """The groups that have bound event e as part k become nodes; they go on, with this age, and end in the last part.
    False where a whole number overflows."""
    meta, lists, last = groups.meta, groups.lists, events.kleene.shape[0] - 1
    stays = k < last or events.kleene[k]
    while lists[MOVED, k] >= 0:
        g = lists[MOVED, k]
        lists[MOVED, k] = meta[g, NEXT]
        newest = meta[g, NEWEST]
        node = _link(links, groups.memory, rules.base, e, k, meta[g, LINK], -1, newest)
        for x in range(groups.goal.shape[1]):
            groups.goal[0, x] = groups.registers[g, x]
        _release(groups, g, rules.merging)
        if stays:
            _add(groups, links, rules, k, age, node, newest)
        if k == last and not _end(programs, groups, links, k, node, horizon):
            return False
    return True


@compiled.inlined
def _begin(
    programs: Programs, events: Events, groups: Groups, links: Links, rules: Rules, e: int, horizon: int, age: int
) -> bool:
    """A run begins with event e; its group has this age. False where a whole number overflows."""
    last = events.kleene.shape[0] - 1
    if fires(programs, BEGIN, groups.goal, 1, groups.goal, 0) == OVERFLOW:
        return False
    node = _link(links, groups.memory, rules.base, e, 0, -1, -1, events.time[e])
    if last > 0 or events.kleene[0]:
        _add(groups, links, rules, 0, age, node, events.time[e])
    return last > 0 or _end(programs, groups, links, 0, node, horizon)


@compiled.part
def _pass_step(groups: Groups, links: Links, rules: Rules) -> None:
    """The groups that the events of a step have ended are gone, and those that have bound one are under way."""
    groups, links = borrowed(groups), borrowed(links)
    meta, lists = groups.meta, groups.lists
    for k in range(lists.shape[1]):
        g, before = lists[WAITING, k], -1
        while g >= 0:
            following = meta[g, NEXT]
            if meta[g, AGE] != LEAVING:
                before = g
            else:
                if before < 0:
                    lists[WAITING, k] = following
                else:
                    meta[before, NEXT] = following
                _release(groups, g, rules.merging)
            g = following
        while lists[TIED, k] >= 0:
            g = lists[TIED, k]
            lists[TIED, k] = meta[g, NEXT]
            node, newest = meta[g, LINK], meta[g, NEWEST]
            for x in range(groups.goal.shape[1]):
                groups.goal[0, x] = groups.registers[g, x]
            _release(groups, g, rules.merging)
            _add(groups, links, rules, k, WAITING, node, newest)
    groups.memory[IN_STEP] = 0


@compiled.entry
def advance(programs: Programs, leaves: Leaves, events: Events, groups: Groups, links: Links, rules: Rules) -> int:
    """Read `events.order` until there are no more or there is no room. The rows of `programs.arcs`: see TAKE."""
    programs, leaves, events = borrowed(programs), borrowed(leaves), borrowed(events)
    groups, links = borrowed(groups), borrowed(links)
    memory, lists, parts = groups.memory, groups.lists, events.kleene.shape[0]
    memory[LINKS] = memory[ENDINGS] = 0
    while memory[AT] < events.order.shape[0]:
        at = memory[AT]
        if rules.each and memory[ENDINGS] > 0 and events.step[at]:
            return FULL
        # every group may be joined, and move twice, and one may begin: each a node, joined twice
        most = 2 * memory[ALIVE] + 2
        if memory[GROUPS] - memory[FREES] + most > groups.meta.shape[0]:
            return MORE_GROUPS
        if memory[LINKS] + 4 * most > links.columns.shape[1] or memory[ENDINGS] + most > links.ends.shape[0]:
            return FULL
        e = events.order[at]
        horizon = events.time[e] - rules.within
        if events.broken[at]:
            for k in range(parts):
                _clear(groups, k, rules.merging)
        if events.step[at] and memory[IN_STEP] > 0:
            _pass_step(groups, links, rules)
        alone = events.step[at] and (at + 1 == events.order.shape[0] or events.step[at + 1])
        age = WAITING
        if not alone:
            memory[IN_STEP], age = 1, TIED
        loaded = False
        for k in range(parts):
            if lists[WAITING, k] < 0:
                continue
            takes = (events.takes[e] >> k) & 1 == 1
            begins = k + 1 < parts and (events.begins[e] >> (k + 1)) & 1 == 1
            if not takes and not begins:
                if rules.mode == CONTIGUOUS:
                    _clear(groups, k, rules.merging)
                continue
            if not loaded:
                loaded = True
                load(leaves, programs, e)
            if not _move(programs, events, groups, links, rules, k, takes, begins, horizon, alone):
                return OVERFLOWED
        for k in range(parts):
            if not _settle(programs, events, groups, links, rules, e, k, horizon, age):
                return OVERFLOWED
        if events.begins[e] & 1 == 1:
            if not loaded:
                load(leaves, programs, e)
            if not _begin(programs, events, groups, links, rules, e, horizon, age):
                return OVERFLOWED
        memory[AT] += 1
    return DONE
