"""The keys of a pattern file of kind matches."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, FamilyPattern, Identifier, Selection

Output = Literal["all", "non_overlap", "compressed"]

RESERVED_COLUMNS = PROVENANCE_COLUMNS | {"match_id", "start", "end"}
"""Columns every results table of kind matches has: no variable or measure may take their names."""


class MatchesPattern(FamilyPattern):
    """One pattern of kind matches, as an analyst wrote it."""

    kind: Literal["matches"] = "matches"
    pattern: str
    """Types, SEQ, OR, ?, *, +, {n,m} and NOTs: SEQ(A a?, B b{2,5}, (C c OR D d))."""
    where: tuple[str, ...] = ()
    """Conditions that must all hold: a[1].x, a[i].x > a[i-1].x, [company] ..."""
    returns: dict[Identifier, str] = Field(alias="return", default_factory=dict)
    """Measures of a match: a[1].price, COUNT(a), AVG(a.price)."""
    select: Selection = "skip_till_next_match"
    """Which events a run may ignore."""
    output: Output = "all"
    """A row a match, those that do not overlap, or one row for all that end with one event."""
    limit_per_partition: Annotated[int | None, Field(ge=1)] = None
    """So many matches of one partition, in a stretch of time as long as `within` (a day at most), are an error."""

    @property
    def groups(self) -> tuple[str, ...]:
        return self.parameter_names

    def mistakes(self) -> list[TrendlakeError]:
        """Columns that would share a name."""
        columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind matches")
        errors = super().mistakes()
        for name in self.returns:
            if taken := columns.take(name, "a measure already"):
                place = self.document.place(("return", name), key=True)
                errors.append(BadValueError(f"'{name}' is {taken}", place=place))
        return errors
