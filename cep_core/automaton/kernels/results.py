"""The rows that runs give: those of the runs in a final state, of those whose window is over, and of those that the
last event of their partition leaves."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.automaton.kernels.alive_groups import (
    ALIVE,
    BEFORE,
    DONE,
    LOGGED,
    LOW,
    MARK,
    MORE_LOG,
    MORE_ROWS,
    OVERFLOWED,
    USED,
    G,
    Q,
    note,
)
from trendlake.cep_core.automaton.kernels.arcs import ALARM, ended
from trendlake.cep_core.automaton.kernels.arguments import (
    FINAL,
    FIRST,
    LAST,
    REGISTER,
    Given,
    Goals,
    Groups,
    Sets,
    Tables,
    Written,
)
from trendlake.cep_core.automaton.kernels.start_sets import members
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.run_groups import FIRSTS, NEXT, SINCE
from trendlake.cep_core.kernels.uncounted_arrays import borrowed


@compiled.part
def _end(
    given: Given,
    groups: Groups,
    sets: Sets,
    goals: Goals,
    written: Written,
    q: int,
    g: int,
    low: int,
    high: int,
    last: int,
) -> int:
    """The windows of those runs of group g that began in [low, high) are over, with event `last` as the last."""
    groups, sets = borrowed(groups), borrowed(sets)
    memory = groups.memory
    memory[MARK] += 1
    firsts = groups.meta[g, FIRSTS]
    count = members(sets.nodes, firsts, low, high, memory[MARK], sets.marks, sets.stack, sets.members)
    many = ended(given, sets, goals, written, count, last, q, groups.registers, g, memory[USED])
    if many < 0:
        return OVERFLOWED if many == ALARM else MORE_ROWS
    memory[USED] = many
    return DONE


@compiled.inlined
def end_windows(given: Given, groups: Groups, sets: Sets, goals: Goals, written: Written, e: int) -> int:
    """Windows that ended since the event before, whose `window_end` arcs fire with that event as the last."""
    tables = given.tables
    memory = groups.memory
    states = groups.lists.shape[1]
    while memory[BEFORE] < memory[LOW] and memory[Q] < states:
        q, g = memory[Q], memory[G]
        if not tables.ends[q] or g < 0:
            memory[Q] = q + 1
            memory[G] = groups.lists[ALIVE, q + 1] if q + 1 < states else -1
            continue
        reason = _end(given, groups, sets, goals, written, q, g, memory[BEFORE], memory[LOW], e - 1)
        if reason != DONE:
            return reason
        memory[G] = groups.meta[g, NEXT]
    return DONE


@compiled.inlined
def emit(tables: Tables, groups: Groups, sets: Sets, rows: Int64s, e: int) -> int:
    """The rows of the runs that are in a final state after event e."""
    memory, finals = groups.memory, tables.finals
    while True:
        q, g = memory[Q], memory[G]
        while g < 0 and q + 1 < finals.shape[0]:
            q += 1
            g = groups.lists[ALIVE, finals[q]]
        memory[Q], memory[G] = q, g
        if g < 0:
            return DONE
        memory[MARK] += 1
        count = members(
            sets.nodes, groups.meta[g, FIRSTS], memory[LOW], e + 1, memory[MARK], sets.marks, sets.stack, sets.members
        )
        used = memory[USED]
        if used + count > rows.shape[0]:
            return MORE_ROWS
        for x in range(count):
            rows[used + x, FIRST], rows[used + x, LAST], rows[used + x, FINAL] = sets.members[x], e, finals[q]
            for k in range(groups.registers.shape[1]):
                rows[used + x, REGISTER + k] = groups.registers[g, k]
        memory[USED] += count
        memory[G] = groups.meta[g, NEXT]


@compiled.inlined
def leave(given: Given, groups: Groups, sets: Sets, goals: Goals, written: Written, e: int) -> int:
    """The partition is over: windows that end by the watermark; what is still there goes to the log."""
    tables, rules = given.tables, given.rules
    memory, meta = groups.memory, groups.meta
    states = groups.lists.shape[1]
    while memory[Q] < states:
        q, g = memory[Q], memory[G]
        if g < 0:
            memory[Q] = q + 1
            memory[G] = groups.lists[ALIVE, q + 1] if q + 1 < states else -1
            continue
        if rules.keep and memory[LOGGED] == written.log.shape[0]:
            return MORE_LOG
        if tables.ends[q]:
            reason = _end(given, groups, sets, goals, written, q, g, memory[LOW], e + 1, e)
            if reason != DONE:
                return reason
        if rules.keep:
            note(written.log, memory, q, meta[g, FIRSTS], meta[g, SINCE], e, groups.registers, g)
        memory[G] = meta[g, NEXT]
    return DONE
