"""Sliding over a group's windows gives what looking back from each of them anew gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from statistics import median

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core.patterns.expectations import ExpectationModel
from trendlake.pipelines.history_checks.evaluate import ZERO, Judged, Number, Row, judge

pytestmark = pytest.mark.random

DIGITS = 38
Value = Fraction | None


def obvious(
    one: ExpectationModel, values: Mapping[int, Value], judged: list[int], missing: Value
) -> dict[int, tuple[str, float]]:
    """By window the word, and how far from a bound it is (0: at it), as the page says it: nothing is remembered from
    window to window, and every number is known in full."""
    expected_outcomes = {}
    for window in judged:
        past = range(window - one.of_last, window)
        there = [k for k in past if k in values]
        if window not in values and not there:
            continue
        if one.groups:
            if len(there) == one.of_last:
                expected_outcomes[window] = ("kept" if window in values else "broken", math.inf)
            continue
        had = [values.get(k, missing) for k in past]
        numbers = [value for value in had if value is not None]
        value = values.get(window, missing)
        usual = median(numbers) if numbers else None
        if value is None or not usual:
            expected_outcomes[window] = ("unjudged", math.inf)
            continue
        assert one.between is not None
        low, high = one.between
        ratio = value / usual
        broken = (low is not None and ratio < low) or (high is not None and ratio > high)
        gap = min(
            abs(float(ratio / bound) - 1) if bound else float(abs(ratio)) for bound in one.between if bound is not None
        )
        expected_outcomes[window] = ("broken" if broken else "kept", gap)
    return expected_outcomes


def as_number(value: Value) -> Number | None:
    """As a results table holds it: of a count that has too many digits the logarithm."""
    if value is None:
        return None
    if value >= 10**DIGITS:
        return Number(True, math.log10(value.numerator) - math.log10(value.denominator))
    return Number(False, value)


bounds = st.tuples(st.sampled_from([None, 0, 0.1, 0.5, 1, 1.5]), st.sampled_from([None, 1.5, 2, 10**6])).filter(
    lambda pair: pair != (None, None)
)
expectations = st.one_of(
    st.builds(
        lambda between, n: ExpectationModel(measure="m", between=list(between), of_last=f"{n} windows"),
        bounds,
        st.integers(1, 6),
    ),
    st.builds(lambda n: ExpectationModel(groups="none_vanish", of_last=f"{n} windows"), st.integers(1, 4)),
)
counts = st.one_of(st.integers(0, 12), st.sampled_from([10**37, 10**38, 3 * 10**38, 10**60])).map(Fraction)
doubles = st.none() | st.sampled_from([-3.5, -2.0, 0.0, 0.1, 1.0, 2.0, 1e300]).map(Fraction)
measures = st.sampled_from([(counts, Fraction(0)), (doubles, None)])
windows = st.integers(-12, 24)


@examples(500)
@given(st.data(), expectations, measures, st.lists(windows, unique=True).map(sorted))
def test_sliding_is_looking_back(
    data: st.DataObject, one: ExpectationModel, measure: tuple[st.SearchStrategy[Value], Value], judged: list[int]
) -> None:
    """Whatever windows are there, are judged, and are missing."""
    kind, missing = measure
    values = data.draw(st.dictionaries(windows, kind, max_size=20))
    wanted = obvious(one, values, judged, missing)
    if any(value is not None and value >= 10**DIGITS for value in values.values()) and missing is not None:
        assume(all(gap > 1e-6 for _, gap in wanted.values()))  # a logarithm does not tell a bound from what is at it
    rows = [Row(window, _held(value, missing)) for window, value in sorted(values.items())]
    actual = judge(one, rows, Judged(tuple((j, j) for j in judged)), ZERO if missing is not None else None)
    assert [(outcome.window, outcome.word) for outcome in actual] == [(j, word) for j, (word, _) in wanted.items()]


def _held(value: Value, missing: Value) -> Number | None:
    """Doubles are what they are, however large."""
    return as_number(value) if missing is not None or value is None else Number(False, value)
