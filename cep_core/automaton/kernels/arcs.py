"""Arcs: which can fire at an event, whether one fires on a register, and what epsilon and `window_end` arcs add."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.automaton.kernels.arguments import (
    FINAL,
    FIRST,
    LAST,
    REGISTER,
    Events,
    Given,
    Goals,
    Sets,
    Tables,
    Verdicts,
    Written,
)
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.register_programs import (
    CONDITION,
    NO,
    OVERFLOW,
    RESTING,
    TARGET,
    YES,
    Programs,
    fires,
    same,
)
from trendlake.cep_core.kernels.uncounted_arrays import borrowed

DIES, RESTS, STEPS = range(3)
"""The effects of an event on a state."""

FULL, ALARM = -1, -2
"""A buffer is too small; a whole number overflows."""


@compiled.inlined
def holds(events: Events, e: int, condition: int) -> bool:
    """Whether a condition holds of event e."""
    return bool((events.bits[e, condition >> 6] >> np.uint64(condition & 63)) & np.uint64(1))


@compiled.part
def judge(tables: Tables, arcs: Int64s, live: int, events: Events, e: int, rests: bool, verdicts_: Verdicts) -> int:
    """The row of verdicts that says what event e does to each state, filled if it is not yet. `rests`: whether ignored
    events leave groups untouched.

    It depends on the set of arcs that live and on the conditions that hold. Where there is a row for each combination
    it is filled once; else an event and the next have a row each.
    """
    tables, arcs, events, verdicts_ = borrowed(tables), borrowed(arcs), borrowed(events), borrowed(verdicts_)
    at, listed, verdicts, judged = tables.taking.at, tables.taking.listed, verdicts_.verdicts, verdicts_.judged
    shared = verdicts.shape[0] > 2
    row = e & 1
    if shared:
        row = live * (verdicts.shape[0] // at.shape[0]) + np.int64(events.bits[e, 0] >> np.uint64(1))
        if judged[row]:
            return int(row)
    for q in range(verdicts.shape[1]):
        verdict = DIES
        for i in range(at[live, q], at[live, q + 1]):
            if holds(events, e, arcs[listed[i], CONDITION]):
                verdict = max(verdict, RESTS if rests and arcs[listed[i], RESTING] else STEPS)
        verdicts[row, q] = verdict
    judged[row] = True
    return int(row)


@compiled.part
def settle(
    tables: Tables,
    programs: Programs,
    live: int,
    registers: Int64s,
    states: Int64s,
    first: int,
    count: int,
    alarm: Int64s,
) -> int:
    """Add to the rows [first, count) of (register, state) all that epsilon arcs make of them; the new count, FULL, or
    ALARM with the arc in alarm[0]. Ends, since an epsilon cycle leaves the register alone."""
    tables, programs, alarm = borrowed(tables), borrowed(programs), borrowed(alarm)
    registers, states = borrowed(registers), borrowed(states)
    at, listed = tables.epsilon.at, tables.epsilon.listed
    j = first
    while j < count:
        if tables.loose[states[j]]:
            for i in range(at[live, states[j]], at[live, states[j] + 1]):
                if count == states.shape[0]:
                    return FULL
                fired = fires(programs, listed[i], registers, j, registers, count)
                if fired == OVERFLOW:
                    alarm[0] = listed[i]
                    return ALARM
                if fired == YES:
                    states[count] = programs.arcs[listed[i], TARGET]
                    new = True
                    for x in range(first, count):
                        if states[x] == states[count] and same(registers, x, registers, count):
                            new = False
                            break
                    count += int(new)
        j += 1
    return count


@compiled.part
def ended(
    given: Given,
    sets: Sets,
    goals: Goals,
    written: Written,
    count: int,
    last: int,
    state: int,
    registers: Int64s,
    g: int,
    used: int,
) -> int:
    """The windows of sets.members[:count] (first events of group g, whose last event is `last`) have ended: take the
    `window_end` arcs of its state, and epsilon arcs from there; each once a run.

    Appends (first, last, state, register) for final states; how many rows there are then, FULL, or ALARM with the arc
    and the first event in `alarm`.
    """
    tables, programs, events, rules = borrowed(given)
    sets, goals, rows, registers = borrowed(sets), borrowed(goals), borrowed(written).rows, borrowed(registers)
    at, listed = tables.ending.at, tables.ending.listed
    for x in range(count):
        first = sets.members[x]
        moment = events.time[first] + rules.within
        if moment > rules.watermark:
            continue
        live = tables.sets[np.searchsorted(tables.bounds, moment, side="right")]
        for i in range(at[live, state], at[live, state + 1]):
            goals.alarm[1] = first
            fired = fires(programs, listed[i], registers, g, goals.registers, 0)
            if fired == OVERFLOW:
                goals.alarm[0] = listed[i]
                return ALARM
            if fired == NO:
                continue
            goals.states[0] = programs.arcs[listed[i], TARGET]
            many = settle(tables, programs, live, goals.registers, goals.states, 0, 1, goals.alarm)
            if many < 0:
                return many
            for j in range(many):
                if tables.final[goals.states[j]]:
                    if used == rows.shape[0]:
                        return FULL
                    rows[used, FIRST], rows[used, LAST], rows[used, FINAL] = first, last, goals.states[j]
                    for k in range(goals.registers.shape[1]):
                        rows[used, REGISTER + k] = goals.registers[j, k]
                    used += 1
    return used
