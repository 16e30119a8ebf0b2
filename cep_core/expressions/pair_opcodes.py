"""The operations of conditions on pairs of events (`cep_core.trends.kernels.pair_predicates`), as numbers."""

from __future__ import annotations

(
    EARLIER, LATER, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, NEGATE, ABS, EQ, NE, LT, LE, GT, GE,
    AND, OR, NOT, IS_NULL, LEAST, GREATEST, COALESCE, HOUR, DAY_OF_WEEK, CHECK,
) = range(25)  # fmt: skip

STACK = 64
"""Depth of the stack: programs that need more are refused when compiled."""
