"""The machine that runs conditions on registers and makes new ones: three-address code over typed slots, in SQL's
three-valued logic.

A slot is 64 bits, read as int64 (whole numbers, times, codes of strings, booleans) or as float64 (`values` and `reals`
are one memory), and has a NULL flag. Whole numbers are checked: an overflow stops the program, it never wraps. A NULL
slot holds 0. Doubles follow IEEE 754; NaN reads as NULL, -0.0 as 0.0. PLUS and PLUS_F, of running sums, skip NULLs, and
PLUS_F keeps the NaN of infinities that cancel: adding zero reads it.
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.expressions import opcodes as m

LOWEST = -(2**63)
HIGHEST = 2**63 - 1
HOUR_US = 3_600_000_000
DAY_US = 86_400_000_000


@compiled.part
def fits(op: int, a: int, b: int) -> bool:
    """Whether a + b, a - b or a * b is an int64. Asked before: LLVM takes signed arithmetic never to overflow, and
    would take a check of the result away."""
    if op == m.ADD:
        return a <= HIGHEST - b if b > 0 else a >= LOWEST - b
    if op == m.SUBTRACT:
        return a >= LOWEST + b if b > 0 else a <= HIGHEST + b
    if a == 0 or b == 0:
        return True
    if a == LOWEST or b == LOWEST:
        return a == 1 or b == 1
    if (a < 0) == (b < 0):
        return abs(a) <= HIGHEST // abs(b)
    return abs(a) <= HIGHEST // abs(b) or (LOWEST % b == 0 and a == LOWEST // b)


@compiled.part
def whole(op: int, a: int, b: int) -> tuple[int, bool, bool]:
    """(value, whether it fits, whether it is NULL) of one operator on two whole numbers."""
    if op == m.ADD:
        return (a + b, True, False) if fits(op, a, b) else (0, False, False)
    if op == m.SUBTRACT:
        return (a - b, True, False) if fits(op, a, b) else (0, False, False)
    if op == m.EQ:
        return int(a == b), True, False
    if op == m.NE:
        return int(a != b), True, False
    if op == m.LT:
        return int(a < b), True, False
    if op == m.LE:
        return int(a <= b), True, False
    if op == m.GT:
        return int(a > b), True, False
    if op == m.GE:
        return int(a >= b), True, False
    if op == m.MULTIPLY:
        return (a * b, True, False) if fits(op, a, b) else (0, False, False)
    if b == 0:
        return 0, True, True
    if b == -1:
        return 0, True, False
    rest = a % b  # has the divisor's sign; SQL's has the dividend's
    if rest != 0 and (a < 0) != (b < 0):
        rest -= b
    return rest, True, False


@compiled.part
def real(op: int, a: float, b: float) -> float:
    """Arithmetic on two doubles; NaN where the result is NULL."""
    if op == m.ADD_F:
        return a + b
    if op == m.SUBTRACT_F:
        return a - b
    if op == m.MULTIPLY_F:
        return a * b
    if b == 0.0:
        return np.nan
    return a / b if op == m.DIVIDE_F else float(np.fmod(a, b))


@compiled.part
def compared(op: int, a: float, b: float) -> int:
    """A comparison of two doubles."""
    if op == m.EQ_F:
        return int(a == b)
    if op == m.NE_F:
        return int(a != b)
    if op == m.LT_F:
        return int(a < b)
    if op == m.LE_F:
        return int(a <= b)
    return int(a > b) if op == m.GT_F else int(a >= b)


@compiled.part
def mixed(op: int, a: int, b: float) -> int:
    """A comparison of a whole number with a double, exact: neither is rounded to the other's type."""
    if b >= 9223372036854775808.0:
        sign = -1
    elif b < -9223372036854775808.0:
        sign = 1
    else:
        below = np.floor(b)
        near = np.int64(below)
        sign = -1 if a < near or (a == near and below < b) else int(a > near)
    if op == m.EQ_M:
        return int(sign == 0)
    if op == m.NE_M:
        return int(sign != 0)
    if op == m.LT_M:
        return int(sign < 0)
    if op == m.LE_M:
        return int(sign <= 0)
    return int(sign > 0) if op == m.GT_M else int(sign >= 0)


@compiled.part
def byte_at(cases: Int64s, i: int) -> int:
    """Byte `i` of all strings, eight of them in each number of row 3."""
    byte: int = (cases[3, i >> 3] >> ((i & 7) << 3)) & 255
    return byte


@compiled.part
def occurs(cases: Int64s, whole: int, part: int) -> int:
    """Whether the string of code `part` is in that of code `whole`: 1 or 0."""
    low, high = cases[2, whole], cases[2, whole + 1]
    first, size = cases[2, part], cases[2, part + 1] - cases[2, part]
    for i in range(low, high - size + 1):
        k = 0
        while k < size and byte_at(cases, i + k) == byte_at(cases, first + k):
            k += 1
        if k == size:
            return 1
    return 0


@compiled.part
def clock(cases: Int64s, moment: int) -> int:
    """The reading of the clock at a moment: rows 4 and 5 are its `cep_core.events.zones.Clock`."""
    low, high = 0, cases.shape[1]
    while high - low > 1:
        middle = (low + high) // 2
        if cases[4, middle] <= moment:
            low = middle
        else:
            high = middle
    shown: int = moment + cases[5, low]
    return shown


@compiled.entry
def execute(code: Int64s, low: int, high: int, values: Int64s, reals: Float64s, null: Bools, cases: Int64s) -> bool:
    """Run code[low:high], rows of (operation, target, a, b). False when a whole number overflows.

    `cases`: what is known of strings by their codes, and of a clock (`cep_core.expressions.operands.machine_table`).
    """
    for i in range(low, high):
        op, to, a, b = code[i, 0], code[i, 1], code[i, 2], code[i, 3]
        if op <= m.REMAINDER or m.EQ <= op <= m.GE:
            if null[a] or null[b]:
                null[to], values[to] = True, 0
                continue
            result, known, nothing = whole(op, values[a], values[b])
            if not known:
                return False
            null[to], values[to] = nothing, result
        elif m.ADD_F <= op <= m.REMAINDER_F:
            number = np.nan if null[a] or null[b] else real(op, reals[a], reals[b])
            null[to] = np.isnan(number)
            reals[to] = 0.0 if null[to] else number + 0.0
        elif m.EQ_F <= op <= m.GE_F:
            null[to] = null[a] or null[b]
            values[to] = 0 if null[to] else compared(op, reals[a], reals[b])
        elif m.EQ_M <= op <= m.GE_M:
            null[to] = null[a] or null[b]
            values[to] = 0 if null[to] else mixed(op, values[a], reals[b])
        elif op in (m.AND, m.OR):
            decisive = int(op == m.OR)
            sure = (not null[a] and values[a] == decisive) or (not null[b] and values[b] == decisive)
            null[to] = not sure and (null[a] or null[b])
            values[to] = 0 if null[to] else decisive if sure else 1 - decisive
        elif op == m.CONTAINS:
            null[to] = null[a] or null[b]
            values[to] = 0 if null[to] else occurs(cases, values[a], values[b])
        elif op == m.IS_NULL:
            result = int(null[a])
            null[to], values[to] = False, result
        elif op == m.COALESCE:
            chosen = b if null[a] else a
            null[to], values[to] = null[chosen], values[chosen]
        elif op in (m.LEAST, m.GREATEST, m.LEAST_F, m.GREATEST_F):
            if null[a] or null[b]:
                chosen = b if null[a] else a
            elif op in (m.LEAST, m.GREATEST):
                chosen = a if (values[a] <= values[b]) == (op == m.LEAST) else b
            else:
                chosen = a if (reals[a] <= reals[b]) == (op == m.LEAST_F) else b
            null[to], values[to] = null[chosen], values[chosen]
        elif op in (m.PLUS, m.PLUS_F):
            if null[a] or null[b]:
                chosen = b if null[a] else a
                null[to], values[to] = null[chosen], values[chosen]
                continue
            null[to] = False
            if op == m.PLUS_F:
                reals[to] = reals[a] + reals[b]
            elif fits(m.ADD, values[a], values[b]):
                values[to] = values[a] + values[b]
            else:
                return False
        elif null[a]:
            null[to], values[to] = True, 0
        else:
            null[to] = False
            if op == m.NOT:
                values[to] = 1 - values[a]
            elif op == m.TO_REAL:
                reals[to] = float(values[a])
            elif op in (m.NEGATE, m.ABS):
                if values[a] == LOWEST:
                    return False
                values[to] = -values[a] if op == m.NEGATE or values[a] < 0 else values[a]
            elif op == m.NEGATE_F:
                reals[to] = -reals[a] + 0.0
            elif op == m.ABS_F:
                reals[to] = abs(reals[a])
            elif op == m.HOUR:
                values[to] = (values[a] // HOUR_US) % 24
            elif op == m.DAY_OF_WEEK:
                values[to] = (values[a] // DAY_US + 4) % 7 + 1
            elif op == m.DATE:
                values[to] = values[a] // DAY_US * DAY_US
            elif op == m.CLOCK:
                values[to] = clock(cases, values[a])
            else:
                values[to] = cases[int(op == m.UPPER), values[a]]
    return True
