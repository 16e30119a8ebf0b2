"""The groups that are alive: how they are stored, joined, put aside, noted in the log and released."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.automaton.kernels.arcs import RESTS
from trendlake.cep_core.automaton.kernels.arguments import (
    LOG_FIRSTS,
    LOG_REGISTER,
    LOG_SINCE,
    LOG_STATE,
    LOG_UNTIL,
    Goals,
    Groups,
    Rules,
    Sets,
    Verdicts,
    Written,
)
from trendlake.cep_core.automaton.kernels.start_sets import union
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.register_programs import hashed, same
from trendlake.cep_core.kernels.run_groups import AGE, BUCKET, FIRSTS, NEXT, SINCE, STATE, link, lookup, unlink

DONE, MORE_GROUPS, MORE_GOALS, MORE_ROWS, MORE_NODES, MORE_LOG, OVERFLOWED = range(7)
"""Why `advance` returns: at the end, for more room (then it goes on where it was), or for good. Of its steps: DONE, or
why it is to return."""

# what `advance` remembers between calls: places in `Groups.memory`
AT, PHASE, LOW, BEFORE, EPOCH, BEGINNING, Q, G, FREE, GROUPS, USED, LOGGED, UNIONS, MARK, NOW, LATER, FOLLOWING = range(
    17
)

ALIVE, ASIDE, LIST_AGE, STEPPED, SIZE = range(5)
"""Rows of `Groups.lists`."""

FEW = 6
"""Groups of a state that are looked through; more are found by their hash."""
SWEEP = 4096
"""Events that a state may rest before its groups are looked through for those whose window is over."""


@compiled.part
def note(
    log: Int64s, memory: Int64s, state: int, firsts: int, since: int, until: int, registers: Int64s, i: int
) -> None:
    """Append what a group was from event `since` to event `until` to the log; there is room."""
    used = memory[LOGGED]
    log[used, LOG_FIRSTS], log[used, LOG_STATE] = firsts, state
    log[used, LOG_SINCE], log[used, LOG_UNTIL] = since, until
    for k in range(registers.shape[1]):
        log[used, LOG_REGISTER + k] = registers[i, k]
    memory[LOGGED] += 1


@compiled.inlined
def release(groups: Groups, g: int) -> None:
    """The group is no more."""
    unlink(groups.meta, groups.buckets, g)
    groups.meta[g, NEXT] = groups.memory[FREE]
    groups.memory[FREE] = g


@compiled.inlined
def put_aside(groups: Groups, verdicts: Verdicts, e: int) -> None:
    """Lists that do not rest are put aside; what comes now is of a new age and does not meet what was."""
    lists, now = groups.lists, groups.memory[NOW]
    for q in range(lists.shape[1]):
        if lists[ALIVE, q] >= 0 and (verdicts.verdicts[now, q] != RESTS or e - lists[STEPPED, q] >= SWEEP):
            lists[ASIDE, q], lists[ALIVE, q] = lists[ALIVE, q], -1
            lists[LIST_AGE, q] += 1
            lists[STEPPED, q], lists[SIZE, q] = e, 0


@compiled.inlined
def _join(
    rules: Rules,
    groups: Groups,
    sets: Sets,
    goals: Goals,
    written: Written,
    x: int,
    j: int,
    firsts: int,
    lasting: int,
    e: int,
) -> None:
    """Goal j, since event `lasting`, is equal to group x: its first events become theirs."""
    memory, meta, state = groups.memory, groups.meta, goals.states[j]
    merged = union(sets.nodes, memory[UNIONS], meta[x, FIRSTS], firsts, memory[LOW])
    memory[UNIONS] += int(merged == -2 - memory[UNIONS])
    if rules.keep and lasting < e:
        note(written.log, memory, state, firsts, lasting, e - 1, goals.registers, j)
    if merged != meta[x, FIRSTS] and meta[x, SINCE] < e:
        if rules.keep:
            note(written.log, memory, state, meta[x, FIRSTS], meta[x, SINCE], e - 1, goals.registers, j)
        meta[x, SINCE] = e
    meta[x, FIRSTS] = merged


@compiled.inlined
def _add(groups: Groups, goals: Goals, j: int, firsts: int, lasting: int, h: int) -> None:
    """Goal j becomes a group, of hash h if that is known (else -1)."""
    memory, meta, lists, state = groups.memory, groups.meta, groups.lists, goals.states[j]
    x = memory[FREE]
    if x >= 0:
        memory[FREE] = meta[x, NEXT]
    else:
        x = memory[GROUPS]
        memory[GROUPS] += 1
    meta[x, STATE], meta[x, FIRSTS], meta[x, SINCE], meta[x, AGE] = state, firsts, lasting, lists[LIST_AGE, state]
    meta[x, NEXT], meta[x, BUCKET] = lists[ALIVE, state], -1
    lists[ALIVE, state] = x
    for k in range(groups.registers.shape[1]):
        groups.registers[x, k] = goals.registers[j, k]
    lists[SIZE, state] += 1
    if h >= 0:
        link(meta, groups.buckets, x, h)
    elif lists[SIZE, state] == FEW:
        while x >= 0:
            link(meta, groups.buckets, x, hashed(state, groups.registers, x))
            x = meta[x, NEXT]


@compiled.inlined
def store(
    rules: Rules, groups: Groups, sets: Sets, goals: Goals, written: Written, j: int, firsts: int, lasting: int, e: int
) -> None:
    """Goal j joins the group that is equal, or becomes one."""
    meta, lists, state, h = groups.meta, groups.lists, goals.states[j], -1
    if lists[SIZE, state] < FEW:
        x = lists[ALIVE, state]
        while x >= 0 and not same(groups.registers, x, goals.registers, j):
            x = meta[x, NEXT]
    else:
        h = hashed(state, goals.registers, j)
        x = lookup(meta, groups.registers, groups.buckets, h, state, lists[LIST_AGE, state], goals.registers, j)
    if x >= 0:
        _join(rules, groups, sets, goals, written, x, j, firsts, lasting, e)
    else:
        _add(groups, goals, j, firsts, lasting, h)
