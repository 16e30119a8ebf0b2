"""Running a plan of kind match_recognize over a table of events."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.forest import matches_as_forest
from trendlake.cep_core.match_recognize.run.forward import matches_by_search
from trendlake.cep_core.match_recognize.run.local import hopeful, matches_by_passes
from trendlake.cep_core.match_recognize.run.matches import Matches, searched
from trendlake.cep_core.match_recognize.run.results import result_of
from trendlake.cep_core.match_recognize.run.rows import Rows


def run_match_recognize(plan: RowPatternPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all partitions, in any order; of `windows` only, if
    given: their rows are those of all events. Raises BadEventsError, LimitError, SkipFailedError,
    SearchTooLongError."""
    rows = Rows(plan, columns)
    matches = matches_as_forest(plan, rows) or matches_of(plan, rows)
    return result_of(plan, rows, matches, windows)


def matches_of(plan: RowPatternPlan, rows: Rows) -> Matches:
    """The matches, by the fastest way there is. Raises SkipFailedError, SearchTooLongError, BadEventsError."""
    matches = matches_by_passes(plan, rows)
    if matches is not None:
        return matches
    can = hopeful(plan, rows)
    matches = matches_by_search(plan, rows, can)
    return searched(plan, rows, can) if matches is None else matches
