"""What a contract says of the types of the rows that keep it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Limit, Rule

THERE = Rule("there", "not_null", ("kind",))
KNOWN = Rule("known", "in_set", ("kind",), values=("A", "B"))
ROLES = {"event_id": "id", "event_time": "at", "event_type": "kind"}


def contract(*rules: Rule, constant: str | None = None) -> Contract:
    return Contract("t", "1", (), rules, ("id",), ROLES, constant_type=constant)


@pytest.mark.parametrize(
    ("rules", "types", "assured"),
    [
        ((THERE, KNOWN), ("A", "B"), True),
        ((THERE, KNOWN), ("B", "C", "A"), True),
        ((THERE, KNOWN), ("A",), False),
        ((KNOWN,), ("A", "B"), False),  # a NULL keeps it
        ((THERE,), ("A", "B"), False),
        ((THERE, replace(KNOWN, columns=("other",))), ("A", "B"), False),
        ((THERE, replace(KNOWN, warning=True)), ("A", "B"), False),
        ((replace(THERE, limit=Limit("must_be_less_than", 5, 5)), KNOWN), ("A", "B"), False),
        ((THERE, replace(KNOWN, values=("A", None))), ("A", "B"), False),
    ],
)
def test_types_of_good_rows(rules: tuple[Rule, ...], types: tuple[str, ...], assured: bool) -> None:
    """Only rules that set rows apart assure anything, and only of the values they list."""
    assert contract(*rules).assures(types) is assured


def test_a_constant_type() -> None:
    """Every event is of it."""
    assert contract(constant="A").assures(("A", "B"))
    assert not contract(THERE, KNOWN, constant="C").assures(("A", "B"))
