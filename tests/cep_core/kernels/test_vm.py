"""The machine's whole numbers: exact, or an overflow; never wrapped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core.expressions import opcodes as m
from trendlake.cep_core.kernels.vm import execute

EDGES = st.sampled_from([0, 1, -1, 2, -2, 3, 2**31, 2**32, 2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1])
WHOLE = st.one_of(EDGES, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**32), 2**32))


def executed(op: int, a: int, b: int) -> int | None:
    """The value of one operation; None where it overflows."""
    values = np.array([a, b, 0], np.int64)
    null, cases = np.zeros(3, np.bool_), np.zeros((2, 0), np.int64)
    code = np.array([[op, 2, 0, 1]], np.int64)
    fine = execute(code, 0, 1, values, values.view(np.float64), null, cases)
    return int(values[2]) if fine else None


@examples(1000)
@given(st.sampled_from([m.ADD, m.SUBTRACT, m.MULTIPLY, m.NEGATE, m.ABS]), WHOLE, WHOLE)
@example(m.MULTIPLY, 2, 2**62)
@example(m.MULTIPLY, -2, 2**62)
@example(m.MULTIPLY, -(2**63), -1)
@example(m.MULTIPLY, 3, -(2**63) // 3)
def test_whole_numbers_are_exact_or_refused(op: int, a: int, b: int) -> None:
    """As Python's own, where the result fits 64 bits."""
    true = {m.ADD: a + b, m.SUBTRACT: a - b, m.MULTIPLY: a * b, m.NEGATE: -a, m.ABS: abs(a)}[op]
    assert executed(op, a, b) == (true if -(2**63) <= true < 2**63 else None)


@pytest.mark.parametrize(("a", "b", "rest"), [(7, 3, 1), (-7, 3, -1), (7, -3, 1), (-7, -3, -1), (-(2**63), -1, 0)])
def test_remainders_have_the_dividends_sign(a: int, b: int, rest: int) -> None:
    assert executed(m.REMAINDER, a, b) == rest
