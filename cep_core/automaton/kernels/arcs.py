"""Arcs: which can fire at an event, whether one fires on a register, and what epsilon and `window_end` arcs add.

`tables` is what `assembly` makes of a plan, `machine` the slots that programs run on (see `stream.Values`). Registers
are rows of int64: the fields, then a mask of those that are NULL. No function here or in `active_runs` gives an array
another name inside a loop: numba would count references to it at every turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.events.array_types import Bools, Int8s, Int64s, UInt64s
from cep_core.kernels.register_programs import CONDITION, NO, OVERFLOW, RESTING, TARGET, YES, fire, same

DIES, RESTS, STEPS = range(3)
"""What an event does to a state."""

FULL, ALARM = -1, -2
"""A buffer is too small; a whole number overflows."""


@njit(cache=True, nogil=True)
def judge(
    arcs: Int64s, at: Int64s, listed: Int64s, live: int, bits: UInt64s, e: int, rests: bool, verdicts: Int8s,
    judged: Bools,
) -> int:  # fmt: skip
    """The row of `verdicts` (rows, states) that says what event e does to each state, filled if it is not yet. `rests`:
    whether ignored events leave groups untouched.

    It depends on the set of arcs that live and on the conditions that hold. Where there is a row for each combination
    it is filled once; else an event and the next have a row each.
    """
    known = verdicts.shape[0] > 2
    row = (live * (verdicts.shape[0] // (at.shape[0])) + np.int64(bits[e, 0] >> np.uint64(1))) if known else e & 1
    if known and judged[row]:
        return int(row)
    for q in range(verdicts.shape[1]):
        verdict = DIES
        for i in range(at[live, q], at[live, q + 1]):
            arc = listed[i]
            c = arcs[arc, CONDITION]
            if (bits[e, c >> 6] >> np.uint64(c & 63)) & np.uint64(1):
                verdict = max(verdict, RESTS if rests and arcs[arc, RESTING] else STEPS)
        verdicts[row, q] = verdict
    judged[row] = True
    return int(row)


@njit(cache=True, nogil=True)
def settle(
    tables: Any, machine: Any, live: int, registers: Int64s, states: Int64s, first: int, count: int, alarm: Int64s
) -> int:
    """Add to the rows [first, count) of (register, state) all that epsilon arcs make of them; the new count, FULL, or
    ALARM with the arc in alarm[0]. Ends, since an epsilon cycle leaves the register alone."""
    arcs, moves, code, at, listed, loose = tables[0], tables[1], tables[2], tables[5], tables[6], tables[11]
    values, reals, null, cases = machine
    j = first
    while j < count:
        if loose[states[j]]:
            for i in range(at[live, states[j]], at[live, states[j] + 1]):
                if count == states.shape[0]:
                    return FULL
                fired = fire(arcs, moves, code, values, reals, null, cases, listed[i], registers, j, registers, count)
                if fired == OVERFLOW:
                    alarm[0] = listed[i]
                    return ALARM
                if fired == YES:
                    states[count] = arcs[listed[i], TARGET]
                    new = True
                    for x in range(first, count):
                        if states[x] == states[count] and same(registers, x, registers, count):
                            new = False
                            break
                    count += int(new)
        j += 1
    return count


@njit(cache=True, nogil=True)
def ended(
    tables: Any, machine: Any, time: Int64s, within: int, first_events: Int64s, count: int, last: int, state: int,
    registers: Int64s, g: int, rows: Int64s, used: int, watermark: int, goal: Int64s, goals: Int64s, alarm: Int64s,
) -> int:  # fmt: skip
    """The windows of first_events[:count] (first events of group g, whose last event is `last`) have ended: take the
    `window_end` arcs of its state, and epsilon arcs from there; each once a run.

    Appends (first, last, state, register) for final states; how many rows there are then, FULL, or ALARM with the arc
    and the first event in `alarm`.
    """
    arcs, moves, code = tables[0], tables[1], tables[2]
    at, listed, final, bounds, sets = tables[7], tables[8], tables[9], tables[12], tables[13]
    values, reals, null, cases = machine
    for x in range(count):
        moment = time[first_events[x]] + within
        if moment > watermark:
            continue
        live = sets[np.searchsorted(bounds, moment, side="right")]
        for i in range(at[live, state], at[live, state + 1]):
            alarm[1] = first_events[x]
            fired = fire(arcs, moves, code, values, reals, null, cases, listed[i], registers, g, goal, 0)
            if fired == OVERFLOW:
                alarm[0] = listed[i]
                return ALARM
            if fired == NO:
                continue
            goals[0] = arcs[listed[i], TARGET]
            many = settle(tables, machine, live, goal, goals, 0, 1, alarm)
            if many < 0:
                return many
            for j in range(many):
                if final[goals[j]]:
                    if used == rows.shape[0]:
                        return FULL
                    rows[used, 0], rows[used, 1], rows[used, 2] = first_events[x], last, goals[j]
                    for k in range(goal.shape[1]):
                        rows[used, 3 + k] = goal[j, k]
                    used += 1
    return used
