"""The rules of a contract as data: every constraint of an ODCS file becomes one `Rule` with a name (`read_rules`).

A rule that speaks of single rows and allows none to break it decides the quarantine; a rule with another
bound, or of severity `warning` or `info`, is judged and reported only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from trendlake.cep_core.errors import Place
from trendlake.cep_core.language.syntax import Expr

Kind = Literal[
    "not_null",
    "not_missing",
    "in_set",
    "pattern",
    "range",
    "length",
    "multiple",
    "row",
    "unique",
    "row_count",
    "items",
    "distinct_items",
    "xml",
]
Scalar = str | int | float | bool | datetime | date | None


@dataclass(frozen=True)
class Limit:
    """How many rows may break a rule (or, for row_count, how many there must be): `operator` as in
    `odcs.OPERATORS`."""

    operator: str = "must_be"
    low: float = 0.0
    high: float = 0.0
    percent: bool = False

    @property
    def none_allowed(self) -> bool:
        return self.operator == "must_be" and self.low == 0

    def holds(self, value: float) -> bool:
        """Whether `value` (rows, or percent of rows) is within the limit."""
        low, high = self.low, self.high
        return {
            "must_be": value == low,
            "must_not_be": value != low,
            "must_be_greater_than": value > low,
            "must_be_greater_or_equal_to": value >= low,
            "must_be_less_than": value < low,
            "must_be_less_or_equal_to": value <= low,
            "must_be_between": low <= value <= high,
            "must_not_be_between": not low <= value <= high,
        }[self.operator]


@dataclass(frozen=True)
class Rule:
    """`values`: of in_set and not_missing; `low`/`high` with their strictness: of range, length and items (`high`
    also the divisor of multiple); `text`: the regular expression of pattern, the condition a good
    row meets of row, whose tree is `condition`, of xml the rule of documents (`cep_core.documents.document.RULES`).
    Of unique: `compared`, the columns in which rows of one key may differ (all of the contract's), and `sequence`, the
    column that says which of them counts."""

    name: str
    kind: Kind
    columns: tuple[str, ...]
    values: tuple[Scalar, ...] = ()
    low: Scalar = None
    high: Scalar = None
    low_strict: bool = False
    high_strict: bool = False
    text: str = ""
    condition: Expr | None = None
    limit: Limit = Limit()
    warning: bool = False
    description: str = ""
    place: Place | None = field(default=None, compare=False, repr=False)
    # not in the text of a rule, which identifies contracts in stored data: columns and roles are there anyway
    compared: tuple[str, ...] = field(default=(), repr=False)
    sequence: str | None = field(default=None, repr=False)

    @property
    def quarantines(self) -> bool:
        """Whether a row that breaks it is quarantined."""
        return self.kind != "row_count" and self.limit.none_allowed and not self.warning


def unique_rules(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of uniqueness that quarantine rows; of several for one key the first: it leaves the others nothing."""
    unique = [rule for rule in rules if rule.kind == "unique" and rule.quarantines]
    return list({rule.columns: rule for rule in reversed(unique)}.values())[::-1]
