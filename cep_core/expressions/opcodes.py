"""The operations of the machine that runs compiled expressions (`cep_core.kernels.vm`), as numbers.

The machine tells groups of operations apart by their ranges.
"""

from __future__ import annotations

ADD, SUBTRACT, MULTIPLY, REMAINDER = range(4)
NEGATE, ABS = range(4, 6)
EQ, NE, LT, LE, GT, GE = range(6, 12)
LEAST, GREATEST = range(12, 14)

ADD_F, SUBTRACT_F, MULTIPLY_F, DIVIDE_F, REMAINDER_F = range(14, 19)
NEGATE_F, ABS_F = range(19, 21)
EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F = range(21, 27)
LEAST_F, GREATEST_F, TO_REAL = range(27, 30)

AND, OR, NOT, IS_NULL, COALESCE = range(30, 35)
HOUR, DAY_OF_WEEK, LOWER, UPPER = range(35, 39)
PLUS, PLUS_F, CONTAINS = range(39, 42)
CLOCK, DATE = range(42, 44)
EQ_M, NE_M, LT_M, LE_M, GT_M, GE_M = range(44, 50)
"""Comparisons of a whole number with a double."""

REAL = ADD_F - ADD
"""`ADD + REAL` is ADD_F; likewise SUBTRACT and MULTIPLY."""

MOST_FIELDS = 62
"""Fields of a register, whose NULLs are bits of one int64."""
