"""The automaton of kind matches, compiled: merged runs with registers, stepped from event to event.

A **group** is all runs of one state (`cep_core.matches.compile.states`) with equal registers; it holds a link of the
buffer, behind which its runs are, and the newest of their starts. Groups of age WAITING are under way;
those of age MOVED have just bound the event: they become nodes of the buffer, and join a group under way where one is
equal. Events of one step do not follow each other: what one of them has bound is of age TIED until the step has passed,
and what it has ended is of age LEAVING.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.kernels.register_programs import NO, OVERFLOW, YES, Leaves, Programs, fires, hashed, load
from trendlake.cep_core.kernels.run_groups import AGE, BUCKET, CHAIN, NEXT, STATE, lookup, unlink
from trendlake.cep_core.kernels.run_groups import FIRSTS as LINK
from trendlake.cep_core.kernels.run_groups import SINCE as NEWEST
from trendlake.cep_core.kernels.uncounted_arrays import borrowed

ANY, NEXT_MATCH, CONTIGUOUS = range(3)
"""Selections: what a run may ignore."""

TARGET, ROW, PART, LATER, HOLDS = range(5)
"""Columns of `Edges.edges`; see `cep_core.matches.compile.states.Edge`. ROW: of `Programs.arcs`."""

NO_END, FREE_END = -2, -1
"""In `Edges.ends`: no match ends in the state; one may, and nothing is asked."""

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
    from before it, `step`: it begins a step. By event: `time` in microseconds, and bits by part, `begins` and `takes`:
    whether it may be the first event of the part, and a later one."""

    order: Int64s
    broken: Bools
    step: Bools
    time: Int64s
    begins: Int64s
    takes: Int64s


class Edges(NamedTuple):
    """`edges` (edges, 5), see TARGET; those of state k are `first[k]` up to `first[k + 1]`, those that begin a match
    come before. `ends`: by state, the row of `Programs.arcs` that is asked where a match ends, or NO_END, FREE_END.
    `chosen`: room for the edges of a state. `most`: groups that a group may become by one event, at most."""

    edges: Int64s
    first: Int64s
    ends: Int64s
    chosen: Int64s
    most: int


class Groups(NamedTuple):
    """`memory`: see AT .. ENDINGS. `meta` (groups, 7), `registers` (groups, width) and `buckets`: see `run_groups`;
    `lists` (3, states): WAITING, MOVED and TIED. `goal` (3, width): a register that is being made, the one that a run
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
    """`within` in microseconds; the selection (ANY ..); `merging`: equal groups are one; `plain`: they are, no run
    remembers anything, and no edge asks more than the event; `each`: stop after a step that ends matches; `base`: the
    number of the first new link."""

    within: int
    mode: int
    merging: bool
    plain: bool
    each: bool
    base: int


@compiled.inlined
def _release(groups: Groups, g: int, hashed_groups: bool) -> None:
    """The group is no more."""
    memory = groups.memory
    if hashed_groups:
        unlink(groups.meta, groups.buckets, g)
    groups.meta[g, NEXT] = memory[FREE]
    memory[FREE] = g
    memory[FREES] += 1
    memory[ALIVE] -= 1


@compiled.inlined
def _clear(groups: Groups, k: int, hashed_groups: bool) -> None:
    """No group of state k is under way."""
    for age in (WAITING, TIED):
        while groups.lists[age, k] >= 0:
            g = groups.lists[age, k]
            groups.lists[age, k] = groups.meta[g, NEXT]
            _release(groups, g, hashed_groups)


@compiled.inlined
def _link(links: Links, memory: Int64s, base: int, event: int, state: int, left: int, right: int, newest: int) -> int:
    """A new link, and its number: a node (event, state, what came before, -1) or a fork (-1, -1, one side, another)."""
    at, columns = memory[LINKS], links.columns
    columns[0, at], columns[1, at], columns[2, at], columns[3, at], columns[4, at] = event, state, left, right, newest
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
def _put(groups: Groups, links: Links, rules: Rules, state: int, age: int, link: int, newest: int) -> None:
    """As `_add`, of `plain` runs: a state has one group of an age, which no hash table holds."""
    memory, meta, lists = groups.memory, groups.meta, groups.lists
    x = lists[age, state]
    while x >= 0 and meta[x, AGE] != age:
        x = meta[x, NEXT]
    if x >= 0:
        both = max(newest, meta[x, NEWEST])
        meta[x, LINK] = _link(links, memory, rules.base, -1, -1, meta[x, LINK], link, both)
        meta[x, NEWEST] = both
        return
    g = memory[FREE]
    if g >= 0:
        memory[FREE] = meta[g, NEXT]
        memory[FREES] -= 1
    else:
        g = memory[GROUPS]
        memory[GROUPS] += 1
    memory[ALIVE] += 1
    meta[g, STATE], meta[g, LINK], meta[g, NEWEST], meta[g, AGE] = state, link, newest, age
    meta[g, NEXT], meta[g, BUCKET] = lists[age, state], -1
    lists[age, state] = g


@compiled.inlined
def _choose(edges: Edges, events: Events, low: int, high: int, e: int) -> int:
    """How many of the edges from `low` up to `high` may bind event e, as far as it alone tells; they are written to
    `chosen`."""
    count = 0
    for x in range(low, high):
        mask = events.takes[e] if edges.edges[x, LATER] else events.begins[e]
        if (mask >> edges.edges[x, PART]) & 1:
            edges.chosen[count] = x
            count += 1
    return count


@compiled.inlined
def _move(
    programs: Programs,
    edges: Edges,
    groups: Groups,
    links: Links,
    rules: Rules,
    k: int,
    count: int,
    horizon: int,
    alone: bool,
) -> bool:
    """Show the event to the groups under way in state k: those that bind it by one of the `count` edges that are chosen
    get a copy among MOVED, of the edge's state. Those that it ends stay until the step has passed, if the event is not
    `alone` in it. False where a whole number overflows."""
    meta, lists, before = groups.meta, groups.lists, -1
    g = lists[WAITING, k]
    while g >= 0:
        following = meta[g, NEXT]
        gone = meta[g, NEWEST] <= horizon
        if not gone:
            held = False
            for i in range(count):
                x = edges.chosen[i]
                if rules.plain:
                    _put(groups, links, rules, edges.edges[x, TARGET], MOVED, meta[g, LINK], meta[g, NEWEST])
                    held = held or edges.edges[x, HOLDS] != 0
                    continue
                fired = fires(programs, edges.edges[x, ROW], groups.registers, g, groups.goal, 0)
                if fired == OVERFLOW:
                    return False
                if fired != NO:
                    _add(groups, links, rules, edges.edges[x, TARGET], MOVED, meta[g, LINK], meta[g, NEWEST])
                    held = held or edges.edges[x, HOLDS] != 0
            gone = rules.mode == CONTIGUOUS or (rules.mode == NEXT_MATCH and held)
            if gone and not alone:
                meta[g, AGE] = LEAVING
                gone = False
        if gone:
            if before < 0:
                lists[WAITING, k] = following
            else:
                meta[before, NEXT] = following
            _release(groups, g, rules.merging and not rules.plain)
        else:
            before = g
        g = following
    return True


@compiled.inlined
def _end(programs: Programs, edges: Edges, groups: Groups, links: Links, k: int, node: int, horizon: int) -> bool:
    """Write a node of state k, where matches end, to `ends`, if one may end with the register in row 0 of `goal`. False
    where a whole number overflows."""
    holds = YES
    if edges.ends[k] >= 0:
        holds = fires(programs, edges.ends[k], groups.goal, 0, groups.goal, 2)
    if holds == OVERFLOW:
        return False
    if holds != NO:
        at = groups.memory[ENDINGS]
        links.ends[at], links.horizons[at] = node, horizon
        groups.memory[ENDINGS] += 1
    return True


@compiled.inlined
def _settle(
    programs: Programs, edges: Edges, groups: Groups, links: Links, rules: Rules, e: int, k: int, horizon: int, age: int
) -> bool:
    """The groups that have bound event e in state k become nodes; they go on, with this age, and end matches. False
    where a whole number overflows."""
    meta, lists = groups.meta, groups.lists
    while lists[MOVED, k] >= 0:
        g = lists[MOVED, k]
        lists[MOVED, k] = meta[g, NEXT]
        newest = meta[g, NEWEST]
        node = _link(links, groups.memory, rules.base, e, k, meta[g, LINK], -1, newest)
        if rules.plain:
            _release(groups, g, False)
            if edges.first[k] < edges.first[k + 1]:
                _put(groups, links, rules, k, age, node, newest)
        else:
            for x in range(groups.goal.shape[1]):
                groups.goal[0, x] = groups.registers[g, x]
            _release(groups, g, rules.merging)
            if edges.first[k] < edges.first[k + 1]:
                _add(groups, links, rules, k, age, node, newest)
        if edges.ends[k] != NO_END and not _end(programs, edges, groups, links, k, node, horizon):
            return False
    return True


@compiled.inlined
def _begin(
    programs: Programs,
    edges: Edges,
    events: Events,
    groups: Groups,
    links: Links,
    rules: Rules,
    e: int,
    count: int,
    horizon: int,
    age: int,
) -> bool:
    """A run begins with event e, by each of the `count` edges that are chosen; its group has this age. False where a
    whole number overflows."""
    for i in range(count):
        x = edges.chosen[i]
        if not rules.plain:
            fired = fires(programs, edges.edges[x, ROW], groups.goal, 1, groups.goal, 0)
            if fired == OVERFLOW:
                return False
            if fired == NO:
                continue
        k = edges.edges[x, TARGET]
        node = _link(links, groups.memory, rules.base, e, k, -1, -1, events.time[e])
        if edges.first[k] < edges.first[k + 1]:
            if rules.plain:
                _put(groups, links, rules, k, age, node, events.time[e])
            else:
                _add(groups, links, rules, k, age, node, events.time[e])
        if edges.ends[k] != NO_END and not _end(programs, edges, groups, links, k, node, horizon):
            return False
    return True


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
            if rules.plain:
                _release(groups, g, False)
                _put(groups, links, rules, k, WAITING, node, newest)
            else:
                _release(groups, g, rules.merging)
                _add(groups, links, rules, k, WAITING, node, newest)
    groups.memory[IN_STEP] = 0


@compiled.entry
def advance(
    programs: Programs, leaves: Leaves, events: Events, edges: Edges, groups: Groups, links: Links, rules: Rules
) -> int:
    """Read `events.order` until there are no more or there is no room."""
    programs, leaves, events, edges = borrowed(programs), borrowed(leaves), borrowed(events), borrowed(edges)
    groups, links = borrowed(groups), borrowed(links)
    memory, lists, states = groups.memory, groups.lists, edges.ends.shape[0]
    hashed_groups = rules.merging and not rules.plain
    memory[LINKS] = memory[ENDINGS] = 0
    while memory[AT] < events.order.shape[0]:
        at = memory[AT]
        if rules.each and memory[ENDINGS] > 0 and events.step[at]:
            return FULL
        # every group may move by each edge, and some may begin: each a node, joined twice
        most = edges.most * memory[ALIVE] + edges.first[0] + 1
        if memory[GROUPS] - memory[FREES] + most > groups.meta.shape[0]:
            return MORE_GROUPS
        if memory[LINKS] + 4 * most > links.columns.shape[1] or memory[ENDINGS] + most > links.ends.shape[0]:
            return FULL
        e = events.order[at]
        horizon = events.time[e] - rules.within
        if events.broken[at] and memory[ALIVE] > 0:
            for k in range(states):
                _clear(groups, k, hashed_groups)
        if events.step[at] and memory[IN_STEP] > 0:
            _pass_step(groups, links, rules)
        alone = events.step[at] and (at + 1 == events.order.shape[0] or events.step[at + 1])
        age = WAITING
        if not alone:
            memory[IN_STEP], age = 1, TIED
        loaded = False
        for k in range(states):
            if lists[WAITING, k] < 0:
                continue
            count = _choose(edges, events, edges.first[k], edges.first[k + 1], e)
            if count == 0:
                if rules.mode == CONTIGUOUS:
                    _clear(groups, k, hashed_groups)
                continue
            if not loaded:
                loaded = True
                load(leaves, programs, e)
            if not _move(programs, edges, groups, links, rules, k, count, horizon, alone):
                return OVERFLOWED
        for k in range(states):
            if not _settle(programs, edges, groups, links, rules, e, k, horizon, age):
                return OVERFLOWED
        count = _choose(edges, events, 0, edges.first[0], e)
        if count > 0:
            if not loaded:
                load(leaves, programs, e)
            if not _begin(programs, edges, events, groups, links, rules, e, count, horizon, age):
                return OVERFLOWED
        memory[AT] += 1
    return DONE
