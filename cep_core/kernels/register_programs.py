"""Registers, and what fires on them: programs of `machine` that test a register and make the next.

A register is a row of int64: the fields, then a mask of those that are NULL (0 then). A row of `arcs` says where its
programs are: `when`, whose value decides, and `set`, with the moves that store what it computed.
READS has a bit for each field that these read.
No function here gives an array another name inside a loop: numba would count references to it at every turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute

SOURCE, TARGET, CONDITION, WHEN_LOW, WHEN_HIGH, WHEN_SLOT, SET_LOW, SET_HIGH, MOVE_LOW, MOVE_HIGH = range(10)
READS, IGNORES, RESTING = range(10, 13)
"""With the line above, columns of `Programs.arcs`."""
FIELD, SLOT, BITS = range(3)
"""Columns of `Programs.moves`."""

NO, YES, OVERFLOW = range(3)


class Programs(NamedTuple):
    """`arcs` (arcs, 13), `moves` (moves, 3) and `code` (instructions, 4); and the slots that the code runs on: `values`
    and `reals`, one memory, `null`; `cases` as `cep_core.kernels.vm.execute` takes them."""

    arcs: Int64s
    moves: Int64s
    code: Int64s
    values: Int64s
    reals: Float64s
    null: Bools
    cases: Int64s


class Leaves(NamedTuple):
    """The values of events that programs read: (n, leaves) `values` and `null`, and the slot of each leaf."""

    values: Int64s
    null: Bools
    slots: Int64s


@compiled.inlined
def load(leaves: Leaves, programs: Programs, e: int) -> None:
    """Put the leaves of event e into their slots."""
    for x in range(leaves.slots.shape[0]):
        programs.values[leaves.slots[x]], programs.null[leaves.slots[x]] = leaves.values[e, x], leaves.null[e, x]


@compiled.part
def fires(programs: Programs, arc: int, source: Int64s, s: int, target: Int64s, t: int) -> int:
    """Whether the arc fires on the register in row s of `source`; the new register goes to row t of `target`."""
    arcs, moves, code, values, reals, null, cases = borrowed(programs)
    source, target = borrowed(source), borrowed(target)
    fields = source.shape[1] - 1
    slot = arcs[arc, WHEN_SLOT]
    move_low, move_high = arcs[arc, MOVE_LOW], arcs[arc, MOVE_HIGH]
    reads, k = arcs[arc, READS], 0
    while reads:
        if reads & 1:
            values[k] = source[s, k]
            null[k] = (source[s, fields] >> k) & 1
        reads, k = reads >> 1, k + 1
    if slot >= 0:
        if not execute(code, arcs[arc, WHEN_LOW], arcs[arc, WHEN_HIGH], values, reals, null, cases):
            return OVERFLOW
        if null[slot] or values[slot] == 0:
            return NO
    for k in range(fields + 1):
        target[t, k] = source[s, k]
    if move_low < move_high:
        low, high = arcs[arc, SET_LOW], arcs[arc, SET_HIGH]
        if low < high and not execute(code, low, high, values, reals, null, cases):
            return OVERFLOW
        for m in range(move_low, move_high):
            field, slot, bits = moves[m, FIELD], moves[m, SLOT], moves[m, BITS]
            if null[slot]:
                target[t, field] = 0
                target[t, fields] |= 1 << field
                continue
            value = values[slot]
            if 0 < bits < 64 and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                return OVERFLOW
            target[t, field] = value
            target[t, fields] &= ~(1 << field)
    return YES


@compiled.part
def same(a: Int64s, i: int, b: Int64s, j: int) -> bool:
    """Whether two registers are equal, NULL being equal to NULL."""
    for k in range(a.shape[1]):  # noqa: SIM110 - numba compiles loops
        if a[i, k] != b[j, k]:
            return False
    return True


@compiled.part
def hashed(state: int, registers: Int64s, i: int) -> int:
    """A hash of state and register."""
    h = np.uint64(state + 1) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(registers.shape[1]):
        h = (h ^ np.uint64(registers[i, k])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(1))  # type: ignore[return-value]
