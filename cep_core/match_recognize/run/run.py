"""Running a plan of kind match_recognize over a table of events."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.errors import SkipFailedError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.local import hopeful_places, matches_by_passes
from trendlake.cep_core.match_recognize.run.matches import Matches, searched
from trendlake.cep_core.match_recognize.run.results import result_of
from trendlake.cep_core.match_recognize.run.rows import Rows


def run_match_recognize(plan: RowPatternPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all partitions, in any order; of `windows` only, if
    given: their rows are those of all events. Raises BadEventsError, LimitError, SkipFailedError,
    SearchTooLongError."""
    rows = Rows(plan, columns)
    until = plan.owned(windows)[2] if windows and plan.forward else None
    return result_of(plan, rows, _matches(plan, rows, until), windows)


def _matches(plan: RowPatternPlan, rows: Rows, until: int | None) -> Matches:
    """`until`: as of `searched`. A match from such a row may have other rows, where those behind it were not read: that
    it cannot be skipped to its end is no error."""
    try:
        matches = matches_by_passes(plan, rows)
    except SkipFailedError:
        if until is None:
            raise
        matches = None
    return searched(plan, rows, hopeful_places(plan, rows), until) if matches is None else matches
