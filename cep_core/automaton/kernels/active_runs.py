"""The runs that are alive, moved from event to event (AFA, section 5.1, over ordered input).

A **group** is all runs of one state and register; the set of their first events is shared data (`start_sets`). A
group's future depends on its state and register only, so that it is stepped once, whatever the number of its runs.
Three things that an event can do to a state are known before any group is looked at, from the arcs that live and whose
conditions on the event hold: the state dies (no such arc), rests (all of them ignore the event and ask nothing of the
register: its groups stay where they are, untouched, an interval and not copies: appendix D), or steps. A group that
would die at the very next event and says nothing before is not stored: it leaves no trace.
"""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.automaton.kernels.alive_groups import (
    ALIVE,
    ASIDE,
    AT,
    BEFORE,
    BEGINNING,
    DONE,
    EPOCH,
    FOLLOWING,
    GROUPS,
    LATER,
    LOGGED,
    LOW,
    MORE_GOALS,
    MORE_GROUPS,
    MORE_LOG,
    MORE_NODES,
    NOW,
    OVERFLOWED,
    PHASE,
    SIZE,
    UNIONS,
    G,
    Q,
    note,
    put_aside,
    release,
    store,
)
from trendlake.cep_core.automaton.kernels.arcs import ALARM, DIES, holds, judge, settle
from trendlake.cep_core.automaton.kernels.arguments import Given, Goals, Groups, Sets, Verdicts, Written
from trendlake.cep_core.automaton.kernels.results import emit, end_windows, leave
from trendlake.cep_core.automaton.kernels.start_sets import greatest
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.register_programs import CONDITION, IGNORES, NO, OVERFLOW, TARGET, Leaves, fires, load
from trendlake.cep_core.kernels.run_groups import FIRSTS, NEXT, SINCE
from trendlake.cep_core.kernels.uncounted_arrays import borrowed

ENTER, ENDING, BEGIN, STEP, EMIT, LEAVE = range(6)
"""Phases of an event."""


@compiled.inlined
def _turn(memory: Int64s, phase: int, q: int, g: int) -> None:
    """Go on with a phase at group g of state q."""
    memory[PHASE], memory[Q], memory[G] = phase, q, g


@compiled.inlined
def _enter(given: Given, groups: Groups, verdicts: Verdicts, e: int, fresh: bool, over: bool) -> None:
    """Come to event e: the first of its partition (`fresh`), the last (`over`). Computes the event's effect on states,
    and the next event."""
    tables, programs, events, rules = given
    memory, lists, time = groups.memory, groups.lists, events.time
    if fresh:
        for q in range(lists.shape[1]):
            while lists[ALIVE, q] >= 0:
                g = lists[ALIVE, q]
                lists[ALIVE, q] = groups.meta[g, NEXT]
                release(groups, g)
            lists[SIZE, q] = 0
        memory[LOW] = e
        if not rules.keep:
            memory[UNIONS] = 0
    low = memory[LOW]
    memory[BEFORE] = low
    while time[e] - time[low] >= rules.within:
        low += 1
    memory[LOW] = low
    if fresh:
        epoch = 0
        while epoch < tables.bounds.shape[0] and tables.bounds[epoch] <= time[e]:
            epoch += 1
        memory[EPOCH] = epoch
        memory[NOW] = judge(tables, programs.arcs, tables.sets[epoch], events, e, rules.rests, verdicts)
    else:
        memory[EPOCH], memory[NOW] = memory[LATER], memory[FOLLOWING]
    if not over:
        later = memory[EPOCH]
        while later < tables.bounds.shape[0] and tables.bounds[later] <= time[e + 1]:
            later += 1
        memory[LATER] = later
        memory[FOLLOWING] = judge(tables, programs.arcs, tables.sets[later], events, e + 1, rules.rests, verdicts)


@compiled.inlined
def _begin(given: Given, memory: Int64s, goals: Goals, e: int, live: int) -> int:
    """A run begins before event e, in the states that `begun_at` lists."""
    tables, programs, events, rules = given
    memory[BEGINNING] = 0
    if rules.first <= events.time[e] < rules.last:
        for k in range(goals.init.shape[1]):
            goals.begun[0, k] = goals.init[0, k]
        goals.begun_at[0] = rules.start
        many = 1
        if rules.epsilon:
            many = settle(tables, programs, live, goals.begun, goals.begun_at, 0, 1, goals.alarm)
            if many < 0:
                goals.alarm[1] = e
                return OVERFLOWED if many == ALARM else MORE_GOALS
        memory[BEGINNING] = many
    return DONE


@compiled.inlined
def _take(given: Given, groups: Groups, goals: Goals, e: int, live: int, source: int, g: int) -> tuple[int, int, int]:
    """Show event e to a group in state `source`, or to runs that begin there (g < 0): DONE or why to return, how many
    goals there are, and which of them is the group itself, where an arc ignores the event (else -1)."""
    tables, programs, events, rules = given
    beginning, count, stays = groups.memory[BEGINNING], 0, -1
    for i in range(tables.taking.at[live, source], tables.taking.at[live, source + 1]):
        arc = tables.taking.listed[i]
        if not holds(events, e, programs.arcs[arc, CONDITION]):
            continue
        if count == goals.states.shape[0]:
            return MORE_GOALS, count, stays
        if beginning > 0:
            fired = fires(programs, arc, goals.begun, beginning - 1, goals.registers, count)
        else:
            fired = fires(programs, arc, groups.registers, g, goals.registers, count)
        if fired == NO:
            continue
        if fired == OVERFLOW:
            goals.alarm[0], goals.alarm[1] = arc, e
            return OVERFLOWED, count, stays
        goals.states[count] = programs.arcs[arc, TARGET]
        if rules.rests and g >= 0 and programs.arcs[arc, IGNORES]:
            stays = count
        many = count + 1
        if rules.epsilon:
            many = settle(tables, programs, live, goals.registers, goals.states, count, count + 1, goals.alarm)
        if many < 0:
            goals.alarm[1] = e
            return (OVERFLOWED if many == ALARM else MORE_GOALS), count, stays
        count = many
    return DONE, count, stays


@compiled.inlined
def _step(
    given: Given,
    groups: Groups,
    sets: Sets,
    goals: Goals,
    verdicts: Verdicts,
    written: Written,
    e: int,
    live: int,
    over: bool,
) -> int:
    """Show event e to the runs that begin with it, then to the groups put aside."""
    tables, rules = given.tables, given.rules
    memory, meta, lists = groups.memory, groups.meta, groups.lists
    now, following, states = memory[NOW], memory[FOLLOWING], lists.shape[1]
    while True:
        q, g, beginning = memory[Q], memory[G], memory[BEGINNING]
        if beginning > 0:
            source, firsts, since = goals.begun_at[beginning - 1], e, e
        else:
            while g < 0 and q + 1 < states:
                q += 1
                g = lists[ASIDE, q]
            memory[Q], memory[G] = q, g
            if g < 0:
                return DONE
            source, firsts, since = q, meta[g, FIRSTS], meta[g, SINCE]
        # first all that comes of it; then, if there is room, it is stored
        count, stays = 0, -1
        if verdicts.verdicts[now, source] != DIES and greatest(sets.nodes, firsts) >= memory[LOW]:
            reason, count, stays = _take(given, groups, goals, e, live, source, g)
            if reason != DONE:
                return reason
            if memory[GROUPS] + count > meta.shape[0]:
                return MORE_GROUPS
            if memory[UNIONS] + count > sets.nodes.shape[0]:
                return MORE_NODES
        if rules.keep and memory[LOGGED] + 2 * count + 1 > written.log.shape[0]:
            return MORE_LOG
        for j in range(count):
            state = goals.states[j]
            dies = over or verdicts.verdicts[following, state] == DIES
            if not dies or tables.final[state] or tables.ends[state] or rules.keep:
                store(rules, groups, sets, goals, written, j, firsts, since if j == stays else e, e)
        if beginning > 0:
            memory[BEGINNING] = beginning - 1
            continue
        if rules.keep and stays < 0:
            note(written.log, memory, source, firsts, since, e - 1, groups.registers, g)
        lists[ASIDE, source] = meta[g, NEXT]
        release(groups, g)
        memory[G] = lists[ASIDE, source]


@compiled.entry
def advance(
    given: Given, leaves: Leaves, groups: Groups, sets: Sets, goals: Goals, verdicts: Verdicts, written: Written
) -> int:
    """All runs over events in order of (partition, time, tie), until the end or until an array is too small."""
    given, leaves, groups, sets = borrowed(given), borrowed(leaves), borrowed(groups), borrowed(sets)
    goals, verdicts, written = borrowed(goals), borrowed(verdicts), borrowed(written)
    tables, programs, events, rules = given
    memory, partition = groups.memory, events.partition
    n = partition.shape[0]
    while memory[AT] < n:
        e = memory[AT]
        over = e + 1 == n or partition[e + 1] != partition[e]
        if memory[PHASE] == ENTER:
            fresh = e == 0 or partition[e] != partition[e - 1]
            _enter(given, groups, verdicts, e, fresh, over)
            _turn(memory, ENDING, 0, groups.lists[ALIVE, 0])
        live = tables.sets[memory[EPOCH]]
        if memory[PHASE] == ENDING:
            if rules.ends:
                reason = end_windows(given, groups, sets, goals, written, e)
                if reason != DONE:
                    return reason
            load(leaves, programs, e)
            put_aside(groups, verdicts, e)
            memory[PHASE] = BEGIN
        if memory[PHASE] == BEGIN:
            reason = _begin(given, memory, goals, e, live)
            if reason != DONE:
                return reason
            _turn(memory, STEP, -1, -1)
        if memory[PHASE] == STEP:
            reason = _step(given, groups, sets, goals, verdicts, written, e, live, over)
            if reason != DONE:
                return reason
            _turn(memory, EMIT, -1, -1)
        if memory[PHASE] == EMIT:
            reason = emit(tables, groups, sets, written.rows, e)
            if reason != DONE:
                return reason
            _turn(memory, LEAVE, 0, groups.lists[ALIVE, 0])
        if over and (rules.ends or rules.keep):
            reason = leave(given, groups, sets, goals, written, e)
            if reason != DONE:
                return reason
        memory[AT], memory[PHASE] = e + 1, ENTER
    return DONE
