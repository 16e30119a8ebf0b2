"""What runs say: rows of the runs in a final state, of those whose window is over, and of those that the last event of
their partition leaves."""

from __future__ import annotations

from cep_core import compiled
from cep_core.automaton.kernels.alive_groups import (
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
from cep_core.automaton.kernels.arcs import ALARM, ended
from cep_core.automaton.kernels.arguments import Events, Goals, Groups, Rules, Sets, Tables, Written
from cep_core.automaton.kernels.start_sets import members
from cep_core.events.array_types import Int64s
from cep_core.kernels.register_programs import Programs
from cep_core.kernels.run_groups import FIRSTS, NEXT, SINCE
from cep_core.kernels.uncounted_arrays import borrowed


@compiled.part
def _end(
    tables: Tables, programs: Programs, events: Events, rules: Rules, groups: Groups, sets: Sets, goals: Goals,
    written: Written, q: int, g: int, low: int, high: int, last: int,
) -> int:  # fmt: skip
    """The windows of those runs of group g that began in [low, high) are over, with event `last` as the last."""
    groups, sets = borrowed(groups), borrowed(sets)
    memory = groups.memory
    memory[MARK] += 1
    firsts = groups.meta[g, FIRSTS]
    count = members(sets.nodes, firsts, low, high, memory[MARK], sets.marks, sets.stack, sets.members)
    many = ended(
        tables, programs, events, rules, sets, goals, written, count, last, q, groups.registers, g, memory[USED]
    )
    if many < 0:
        return OVERFLOWED if many == ALARM else MORE_ROWS
    memory[USED] = many
    return DONE


@compiled.inlined
def end_windows(
    tables: Tables, programs: Programs, events: Events, rules: Rules, groups: Groups, sets: Sets, goals: Goals,
    written: Written, e: int,
) -> int:  # fmt: skip
    """Windows that ended since the event before, whose `window_end` arcs fire with that event as the last."""
    memory = groups.memory
    states = groups.lists.shape[1]
    while memory[BEFORE] < memory[LOW] and memory[Q] < states:
        q, g = memory[Q], memory[G]
        if not tables.ends[q] or g < 0:
            memory[Q] = q + 1
            memory[G] = groups.lists[ALIVE, q + 1] if q + 1 < states else -1
            continue
        reason = _end(
            tables, programs, events, rules, groups, sets, goals, written, q, g, memory[BEFORE], memory[LOW], e - 1
        )
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
            rows[used + x, 0], rows[used + x, 1], rows[used + x, 2] = sets.members[x], e, finals[q]
            for k in range(groups.registers.shape[1]):
                rows[used + x, 3 + k] = groups.registers[g, k]
        memory[USED] += count
        memory[G] = groups.meta[g, NEXT]


@compiled.inlined
def leave(
    tables: Tables, programs: Programs, events: Events, rules: Rules, groups: Groups, sets: Sets, goals: Goals,
    written: Written, e: int,
) -> int:  # fmt: skip
    """The partition is over: windows that end by the watermark; what is still there goes to the log."""
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
            reason = _end(
                tables, programs, events, rules, groups, sets, goals, written, q, g, memory[LOW], e + 1, e
            )  # fmt: skip
            if reason != DONE:
                return reason
        if rules.keep:
            note(written.log, memory, q, meta[g, FIRSTS], meta[g, SINCE], e, groups.registers, g)
        memory[G] = meta[g, NEXT]
    return DONE
