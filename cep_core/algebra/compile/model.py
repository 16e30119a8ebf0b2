"""The keys of a pattern file of kind algebra."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trendlake.cep_core.algebra.compile.parse import parse_cel
from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, FamilyPattern, Identifier

RESERVED_COLUMNS = PROVENANCE_COLUMNS | {"start", "end"}
"""Columns every results table of kind algebra has: no attribute or partition may take their names."""

Rows = Annotated[int, Field(ge=1)]


class AlgebraPattern(FamilyPattern):
    """One pattern of kind algebra, as an analyst wrote it."""

    kind: Literal["algebra"] = "algebra"
    pattern: str
    """CEL: SELECT, FROM, FILTER, NEXT, FOLD, UNION and PUBLISH."""
    partition_by: tuple[Identifier, ...] = ()
    """Columns that part the stream: the query is evaluated for each partition by itself."""
    interval_start: Identifier | None = None
    """The column with the time at which an event starts; without it, events are points in time."""
    limit_per_partition: Rows = 1_000_000
    """So many rows of one partition, in a stretch of time as long as `within` (a day at most), are an error."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.parameter_names, *self.partition_by)

    def parameters_in_pattern(self) -> list[s.Parameter]:
        return list(s.parameters_in(parse_cel(self.pattern)))

    def mistakes(self) -> list[TrendlakeError]:
        """Partition columns that would share a name."""
        errors = super().mistakes()
        columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind algebra")
        for i, name in enumerate(self.partition_by):
            if taken := columns.take(name, "a partition column already"):
                errors.append(BadValueError(f"'{name}' is {taken}", place=self.document.place(("partition_by", i))))
        return errors
