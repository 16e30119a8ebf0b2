"""Whether a pair of events satisfies its conditions: comparisons of codes, and small programs for what mixes both
events.

A program is postfix code on a stack of float64, NULL as NaN, booleans as 0 and 1, in SQL's three-valued logic.
Leaves are
one-sided subexpressions, computed once an event. Whole numbers are exact up to 2^53; past it `CHECK` raises the alarm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cep_core import compiled
from cep_core.events.array_types import Float64s, Int64s
from cep_core.expressions.pair_opcodes import (
    ABS,
    ADD,
    AND,
    CHECK,
    COALESCE,
    DAY_OF_WEEK,
    DIVIDE,
    EARLIER,
    EQ,
    GREATEST,
    GT,
    HOUR,
    IS_NULL,
    LATER,
    LE,
    LEAST,
    LT,
    MULTIPLY,
    NE,
    NEGATE,
    NOT,
    OR,
    REMAINDER,
    SUBTRACT,
)

EXACT = 2.0**53


@compiled.part
def compares(op: int, a: int, b: int) -> bool:
    """Codes of one order; -1 is NULL, with which nothing is true. Ops: 0 =, 1 !=, 2 <, 3 <=, 4 >, 5 >=."""
    if a < 0 or b < 0:
        return False
    if op == 0:
        return a == b
    if op == 1:
        return a != b
    if op == 2:
        return a < b
    if op == 3:
        return a <= b
    if op == 4:
        return a > b
    return a >= b


@compiled.part
def pair_true(predicates: Any, ranges: Int64s, v: int, w: int) -> bool:
    """Whether every comparison ranges[0]:ranges[1] and every program ranges[2]:ranges[3] is true of (v, w)."""
    ops, earlier, later, program_of, code, leaves, stack, alarm = predicates
    for c in range(ranges[0], ranges[1]):
        if not compares(ops[c], earlier[c, v], later[c, w]):
            return False
    for p in range(ranges[2], ranges[3]):
        if execute(program_of[p], program_of[p + 1], code, leaves, stack, alarm, v, w) != 1.0:
            return False
    return True


@compiled.part
def binary(op: int, a: float, b: float) -> float:
    """One operator on two values, neither NULL."""
    if op == ADD:
        return a + b
    if op == SUBTRACT:
        return a - b
    if op == MULTIPLY:
        return a * b
    if op == DIVIDE:
        return a / b if b != 0.0 else np.nan
    if op == REMAINDER:
        return np.fmod(a, b) if b != 0.0 else np.nan
    if op == EQ:
        return 1.0 if a == b else 0.0
    if op == NE:
        return 1.0 if a != b else 0.0
    if op == LT:
        return 1.0 if a < b else 0.0
    if op == LE:
        return 1.0 if a <= b else 0.0
    if op == GT:
        return 1.0 if a > b else 0.0
    return 1.0 if a >= b else 0.0


@compiled.part
def either(op: int, a: float, b: float) -> float:
    """Operators that have an answer though a side is NULL."""
    if op == AND:
        if a == 0.0 or b == 0.0:
            return 0.0
        return np.nan if np.isnan(a) or np.isnan(b) else 1.0
    if op == OR:
        if a == 1.0 or b == 1.0:
            return 1.0
        return np.nan if np.isnan(a) or np.isnan(b) else 0.0
    if np.isnan(a):
        return b
    if np.isnan(b) or op == COALESCE:
        return a
    return float(min(a, b) if op == LEAST else max(a, b))


@compiled.part
def unary(op: int, a: float) -> float:
    """One operator on one value."""
    if op == IS_NULL:
        return 1.0 if np.isnan(a) else 0.0
    if op == NEGATE:
        return -a
    if op == ABS:
        return abs(a)
    if op == NOT:
        return 1.0 - a
    if op == HOUR:
        return float(np.floor(a / 3.6e9) % 24.0)
    return float((np.floor(a / 8.64e10) + 4.0) % 7.0 + 1.0)


@compiled.entry
def execute(
    first: int, last: int, code: Int64s, leaves: Float64s, stack: Float64s, alarm: Int64s, v: int, w: int
) -> float:
    """The value of code[first:last] for the pair (v, w)."""
    top = -1
    for i in range(first, last):
        op = code[i, 0]
        if op == EARLIER:
            top += 1
            stack[top] = leaves[code[i, 1], v]
        elif op == LATER:
            top += 1
            stack[top] = leaves[code[i, 1], w]
        elif op == CHECK:
            if abs(stack[top]) >= EXACT:
                alarm[0] = 1
        elif op in (NEGATE, ABS, NOT, IS_NULL, HOUR, DAY_OF_WEEK):
            stack[top] = unary(op, stack[top])
        else:
            b = stack[top]
            top -= 1
            a = stack[top]
            if op in (AND, OR, LEAST, GREATEST, COALESCE):
                stack[top] = either(op, a, b)
            elif np.isnan(a) or np.isnan(b):
                stack[top] = np.nan
            else:
                stack[top] = binary(op, a, b)
    return float(stack[0])
