"""The reference's expressions, value by value: SQL as language.md and Spark have it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.trends.values import OutsideLanguageError, Value, evaluate
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_condition

EVENT: dict[str, Value] = {"i": 7, "z": 0, "f": 2.5, "t": "Ab", "nil": None, "at": 1_359_622_800_000_000}
"""`at` is Thursday 2013-01-31T09:00:00Z."""


def value(text: str) -> Value:
    condition = parse_condition(text)
    assert not isinstance(condition, s.Equivalence)
    return evaluate(condition, lambda read: EVENT[read.name])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e.i / 2", 3.5),
        ("e.i / e.z", None),
        ("e.i % e.z", None),
        ("-e.i % 3", -1),
        ("e.i % -3", 1),
        ("-e.f % 2", -0.5),
        ("e.i + e.nil", None),
        ("- e.nil", None),
        ("e.i - 2 * 3", 1),
        ("abs(-e.i)", 7),
        ("least(e.i, e.nil, 3)", 3),
        ("greatest(e.nil, e.nil)", None),
        ("coalesce(e.nil, e.i)", 7),
        ("lower(e.t)", "ab"),
        ("upper(e.t)", "AB"),
        ("hour(e.at)", 9),
        ("hour(e.at - 10 hours)", 23),
        ("dayofweek(e.at)", 5),
        ("dayofweek(e.at + 3 days)", 1),
        ("e.at = TIMESTAMP '2013-01-31T09:00:00Z'", True),
        ("e.at - TIMESTAMP '2013-01-31T08:55:00Z' = INTERVAL '5' MINUTE", True),
    ],
)
def test_value(text: str, expected: Value) -> None:
    """Arithmetic, functions and times."""
    assert (value(text), type(value(text))) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e.nil = e.nil", None),
        ("NOT e.nil = 1", None),
        ("e.nil IS NULL", True),
        ("e.i IS NOT NULL", True),
        ("e.nil = 1 OR e.i = 7", True),
        ("e.nil = 1 AND e.i = 0", False),
        ("e.nil = 1 OR e.i = 0", None),
        ("e.nil = 1 AND e.i = 7", None),
        ("e.i IN (1, 7)", True),
        ("e.i IN (1, NULL)", None),
        ("e.i NOT IN (1, NULL)", None),
        ("e.i NOT IN (1, 2)", True),
        ("e.i BETWEEN 7 AND e.nil", None),
        ("e.i BETWEEN 8 AND e.nil", False),
        ("e.i NOT BETWEEN 8 AND 9", True),
        ("e.t < 'B'", True),
        ("e.i != 7.0", False),
    ],
)
def test_three_valued_logic(text: str, expected: Any) -> None:
    """A comparison with NULL is not true; AND and OR are Kleene's."""
    assert value(text) is expected


@pytest.mark.parametrize(
    "text", ["e.t < 1", "e.t = 1", "e.i AND TRUE", "e.t + 1", "abs(e.t)", "hour(e.t)", "sqrt(e.i)", "abs(1, 2)"]
)
def test_refused(text: str) -> None:
    """What has no meaning is refused, never guessed."""
    with pytest.raises(OutsideLanguageError):
        value(text)
