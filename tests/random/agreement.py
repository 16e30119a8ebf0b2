"""Do the kernels give what the reference gives? With a tally of what was compared and what could not be."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import assume

from tests.random.strategies import COLUMNS, Question
from tests.reference.trends import TooManyTrendsError, reference
from tests.support.engines import differences, kernels
from trendlake.cep_core import PatternErrors, PatternWarning
from trendlake.cep_core.errors import NotSupportedError

LIMIT = 20_000
"""Derivations of one part in one window: some 50 ms of enumeration."""


@dataclass
class Tally:
    """How many questions of a theme were compared, and why the others were not."""

    compared: int = 0
    with_trends: int = 0
    unsupported: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    too_many: int = 0

    def lines(self) -> list[str]:
        """The tally as text: the shares, then the refusals by frequency."""
        unsupported, refused = self.unsupported.total(), self.refused.total()
        asked = self.compared + unsupported + refused + self.too_many
        first = (
            f"{self.compared} compared ({self.with_trends} with trends), {unsupported} not supported yet "
            f"({unsupported / max(asked, 1):.1%}), {refused} refused, {self.too_many} too large to enumerate"
        )
        return [first] + [
            f"  {count} x {message}" for message, count in (self.unsupported + self.refused).most_common(12)
        ]


TALLIES: dict[str, Any] = {}


def disagreement(question: Question, tally: Tally) -> list[str]:
    """How the kernels' answer differs from the reference's; what the engine refuses is only counted."""
    query, rows = question
    try:
        expected = reference(query, rows, limit=LIMIT)
    except TooManyTrendsError:
        tally.too_many += 1
        assume(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)  # a pair that is never adjacent is no mistake here
        try:
            actual = kernels(query, rows, COLUMNS)
        except (PatternErrors, NotSupportedError) as refusal:
            count_refusal(refusal, tally)
            assume(False)
    tally.compared += 1
    tally.with_trends += any(row["trends"] != 0 for row in expected)
    return differences(expected, actual, query.get("group_by", ()))


def count_refusal(refusal: Any, tally: Tally) -> None:
    """Why the engine did not answer."""
    errors = getattr(refusal, "errors", (refusal,))
    kinds = {isinstance(error, NotSupportedError) for error in errors}
    counter = tally.unsupported if kinds == {True} else tally.refused
    counter[f"[{errors[0].code}] {errors[0].message}"] += 1
