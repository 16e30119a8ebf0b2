"""The keys of a pattern file of kind match_recognize."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.parse import parse_query
from trendlake.cep_core.match_recognize.compile.parse_expression import inside
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, FamilyPattern, MaybeDuration

RESERVED_COLUMNS = PROVENANCE_COLUMNS | {"start", "end", "match_id"}
"""Columns every results table of the kind has: no measure or partition may take their names."""

Count = Annotated[int, Field(ge=1)]


class MatchRecognizePattern(FamilyPattern):
    """One pattern of kind match_recognize, as an analyst wrote it."""

    kind: Literal["match_recognize"] = "match_recognize"
    pattern: str
    """SQL: SELECT ... FROM source MATCH_RECOGNIZE (...) WHERE ..., or the clause alone."""
    within: MaybeDuration = None  # type: ignore[assignment]
    """Matches whose last row comes so long after their first, or later, are none; without it they may be of any
    length."""
    limit_per_partition: Count = 1_000_000
    """More rows of the result of one partition, in a stretch of time as long as `within` (a day at most), are an
    error."""
    limit_per_start: Count = 1_000_000
    """So many steps of the search for a match from one row are an error, where conditions read more than rows."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.parameter_names, *(one.text for one in parse_query(self.pattern).query.partition_by))

    def parameters_in_pattern(self) -> list[s.Parameter]:
        query = parse_query(self.pattern).query
        around = [item.value for item in (*(query.items or ()), *query.measures)]
        before = [item.value for item in (query.input.items or ())] if query.input else []
        conditions = [query.condition, query.input.condition if query.input else None]
        result: list[s.Parameter] = []
        for node in (*around, *before, *conditions, *(value for _, value in query.defines)):
            left = [] if node is None else [node]
            while left:
                one = left.pop()
                result += [one] if isinstance(one, s.Parameter) else []
                left += inside(one)
        return result
