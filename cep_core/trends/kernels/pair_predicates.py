"""Whether a pair of events satisfies its conditions: comparisons of codes, and programs of `cep_core.kernels.vm` for
what mixes both events. Leaves of programs are one-sided subexpressions, computed once an event."""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int32s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute
from trendlake.cep_core.trends.kernels import columns as c

EQ, NE, LT, LE, GT, GE = range(6)
"""Comparisons of codes."""


class Predicates(NamedTuple):
    """Comparisons: `ops` and codes of one order, (comparisons, n) of the earlier and the later event; -1: NULL.
    `programs`: see `columns.CODE`; the machine's `code` to `cases`. Leaves: their slots, whether they are of the later
    event, and (n, leaves) their words and which are NULL. `alarm[0]` becomes 1 where whole numbers leave 64 bits."""

    ops: Int64s
    earlier: Int32s
    later: Int32s
    programs: Int64s
    code: Int64s
    values: Int64s
    reals: Float64s
    null: Bools
    cases: Int64s
    slots: Int64s
    of_later: Bools
    words: Int64s
    missing: Bools
    alarm: Int64s


@compiled.part
def compares(op: int, a: int, b: int) -> bool:
    """Codes of one order; -1 is NULL, with which nothing is true."""
    if a < 0 or b < 0:
        return False
    if op == EQ:
        return a == b
    if op == NE:
        return a != b
    if op == LT:
        return a < b
    if op == LE:
        return a <= b
    if op == GT:
        return a > b
    return a >= b


@compiled.part
def pair_true(predicates: Predicates, ranges: Int64s, v: int, w: int) -> bool:
    """Whether every comparison and every program in `ranges` (see `columns.COMPARISONS`) is true of (v, w)."""
    ops, earlier, later, programs, code, values, reals, null, cases, slots, of_later, words, missing, alarm = borrowed(
        predicates
    )
    for x in range(ranges[c.COMPARISONS], ranges[c.COMPARISONS_END]):
        if not compares(ops[x], earlier[x, v], later[x, w]):
            return False
    for p in range(ranges[c.PROGRAMS], ranges[c.PROGRAMS_END]):
        for x in range(programs[p, c.LEAF], programs[p, c.LEAF_END]):
            e = w if of_later[x] else v
            values[slots[x]], null[slots[x]] = words[e, x], missing[e, x]
        if not execute(code, programs[p, c.CODE], programs[p, c.CODE_END], values, reals, null, cases):
            alarm[0] = 1
            return False
        slot = programs[p, c.SLOT]
        if null[slot] or values[slot] == 0:
            return False
    return True
