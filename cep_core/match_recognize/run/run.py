"""Running a plan of kind match_recognize over a table of events."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.local import hopeful_places, matches_by_passes
from trendlake.cep_core.match_recognize.run.matches import searched
from trendlake.cep_core.match_recognize.run.results import result_of
from trendlake.cep_core.match_recognize.run.rows import Rows


def run_match_recognize(plan: RowPatternPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all partitions, in any order; of `windows` only, if
    given: their rows are those of all events. Raises BadEventsError, LimitError, SkipFailedError,
    SearchTooLongError."""
    rows = Rows(plan, columns)
    matches = matches_by_passes(plan, rows)
    if matches is None:
        matches = searched(plan, rows, hopeful_places(plan, rows))
    return result_of(plan, rows, matches, windows)
