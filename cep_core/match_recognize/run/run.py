"""Running a plan of kind match_recognize over a table of events."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trendlake.cep_core.errors import SearchTooLongError, SkipFailedError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import Program
from trendlake.cep_core.match_recognize.compile.syntax import Part
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
    return _run(plan, Rows(plan, columns), windows)


def _run(plan: RowPatternPlan, rows: Rows, windows: range | None) -> pa.Table:
    until = plan.owned(windows)[2] if windows and plan.forward else None
    return result_of(plan, rows, any_matches(plan, rows, until), windows)


def any_matches(plan: RowPatternPlan, rows: Rows, until: int | None = None) -> Matches:
    """As `matches_of`; a forest, where that is faster."""
    return matches_as_forest(plan, rows) or matches_of(plan, rows, until)


def run_over_same_rows(
    plan: RowPatternPlan, others: Sequence[tuple[RowPatternPlan]], columns: Columns, windows: range | None
) -> list[pa.Table]:
    """Results of plans that differ in what they ask of the rows, not in which rows there are and their order (see
    `kind.same_rows`): the rows are ordered once, and each shift of a column is made once. Raises what
    `run_match_recognize` raises for any of them."""
    rows = Rows(plan, columns)
    programs: dict[Part, Program] = {}
    tables = []
    for (other,) in others:
        if other.pattern in programs:
            other.__dict__["program"] = programs[other.pattern]  # as the cached property would
        programs[other.pattern] = other.program
        tables.append(_run(other, rows, windows))
        rows.forget_unused()
    return tables


def matches_of(plan: RowPatternPlan, rows: Rows, until: int | None = None) -> Matches:
    """The matches, by the fastest way there is. `until`: as of `searched`. A match from such a row may have other rows,
    where those behind it were not read: that it cannot be skipped to its end, or that its search is too long, is no
    error. Raises SkipFailedError, SearchTooLongError, BadEventsError."""
    can = None
    try:
        matches = matches_by_passes(plan, rows)
        if matches is None:
            can = hopeful(plan, rows)
            matches = matches_by_search(plan, rows, can)
    except (SkipFailedError, SearchTooLongError):
        if until is None:
            raise
        matches = None
    return searched(plan, rows, can, until) if matches is None else matches
