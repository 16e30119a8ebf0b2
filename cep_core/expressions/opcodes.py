"""The operations of the machine that runs compiled expressions (`cep_core.kernels.vm`), as numbers."""

from __future__ import annotations

(
    ADD, SUBTRACT, MULTIPLY, REMAINDER, NEGATE, ABS, EQ, NE, LT, LE, GT, GE, LEAST, GREATEST,
    ADD_F, SUBTRACT_F, MULTIPLY_F, DIVIDE_F, REMAINDER_F, NEGATE_F, ABS_F, EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F,
    LEAST_F, GREATEST_F, TO_REAL, AND, OR, NOT, IS_NULL, COALESCE, HOUR, DAY_OF_WEEK, LOWER, UPPER, PLUS, PLUS_F,
    CONTAINS,
) = range(42)  # fmt: skip

REAL = ADD_F - ADD
"""`ADD + REAL` is ADD_F; likewise SUBTRACT and MULTIPLY."""

MOST_FIELDS = 62
"""Fields of a register, whose NULLs are bits of one int64."""
