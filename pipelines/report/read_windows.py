"""The results of a run, and of the time before it, from Delta. The database selects; `summary` does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment, shifted
from trendlake.cep_core.sharing.family import row_hash
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.table import During, Table
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.database import WAS_THERE, Column, Database
from trendlake.pipelines.report.facts import PatternFacts, ResultFacts, RunFacts, Window
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.read_rows import Matches, Span, as_text, lists_of, micros, read_counted, times_of
from trendlake.pipelines.report.shape import Shape
from trendlake.pipelines.report.summary import Columns, ResultRow, result_row, summarise
from trendlake.pipelines.results.provenance import PLAN_HASH
from trendlake.pipelines.results.reuse import row_hashes

ENOUGH_WINDOWS = 24
"""An interval with as many windows makes a picture by itself; a shorter one is shown with what came before it."""
SPAN_WINDOWS = 60
"""About how many windows of history put a short interval in context."""


def read_results(
    lake: Lake, path: str, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None = None, folder: Path | None = None
) -> ResultFacts:
    """The results of the run's interval, as of the version it published (the newest, where it has published none).

    `plan`: the run's, where it is known: says which rows are the interval's. Rows of another state of the pattern
    (another plan hash) are not compared with these: they are counted only. `folder`: as of `Database`.
    """
    table = Table.at(lake, path, run.results_version)
    with Database(folder) as database:
        layout = Layout.of(table.names if plan is None else plan.result_schema.names, pattern.kind)
        if layout.windows:
            return _windows(database, table, pattern, run, plan)
        return _counted(database, table, pattern, layout, run, plan)


def _windows(
    database: Database, table: Table, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None
) -> ResultFacts:
    """Of kind trends: windows that end in the span."""
    cells = Cells.of(plan, lists_of(table.schema))
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns)).read_as(cells)
    low, high = (None if at is None else micros(at) + 1 for at in (_span_from(run), run.interval_to))
    current = None if run.plan_hash is None else [_row_hash(run, plan)]
    older = _load(database, table, shape.columns(), During("window_end", low, high), current)
    columns = Columns(shape.groups, shape.measures, shape.measure)
    rows = _Rows(database, table, shape, cells, run.interval_from, pattern.time_zone)
    facts = summarise(rows, columns, older_rows=older, version=run.results_version)
    return replace(facts, ids=cells.ids(shape.measures))


def _load(
    database: Database, table: Table, columns: Mapping[str, Column], during: During, current: Sequence[str] | None
) -> int:
    """Loads the rows that have one of the plan hashes `current` (None: all); how many there are of others."""
    if current is None or PLAN_HASH not in table.names:
        database.load(table, columns, during)
        return 0
    database.load(table, {**columns, "h": Column(PLAN_HASH)}, during)
    (older,) = database.one(f"SELECT count(*) FROM rows WHERE NOT {WAS_THERE}", current)
    if older:
        database.run(f"DELETE FROM rows WHERE NOT {WAS_THERE}", current)
    return int(older)


def _counted(
    database: Database, table: Table, pattern: PatternFacts, layout: Layout, run: RunFacts, plan: AnyPlan | None
) -> ResultFacts:
    """Of a kind without windows in its rows."""
    owner, span = _span(layout, run, plan)
    loaded = Matches.of(table.schema, pattern, layout, owner, plan)
    during = During(owner, micros(span.low), micros(span.high))
    older = _load(database, table, loaded.columns, during, _current_forms(run, plan, span))
    facts = read_counted(database, loaded, span, None if plan is None else plan.result_shape.lifetime)
    return replace(facts, older_rows=older, version=run.results_version)


def _span(layout: Layout, run: RunFacts, plan: AnyPlan | None) -> tuple[str, Span]:
    """The column that says which interval a row is of, and what the picture shows."""
    owner, since, until = _owned(layout, run, plan)
    span = _span_from(run)
    begin = since if span is None or run.interval_from is None else shifted(since, span - run.interval_from)
    return owner, Span(begin, since, until)


def _current_forms(run: RunFacts, plan: AnyPlan | None, span: Span) -> list[str] | None:
    """The plan hashes of the rows that are compared; None where that is not known."""
    if run.plan_hash is None:
        return None
    low, high = micros(span.low), micros(span.high)
    windows = None if plan is None else plan.windows.ending_in(low, high + plan.windows.longest)
    if plan is None or not windows:
        return [_row_hash(run, plan)]
    return sorted(row_hashes(plan, windows))


def _row_hash(run: RunFacts, plan: AnyPlan | None) -> str:
    """The hash of the rows of the run; `plan`: the one that it has used, if the file still has it."""
    return str(run.plan_hash) if plan is None else row_hash(plan)


def _owned(layout: Layout, run: RunFacts, plan: AnyPlan | None) -> tuple[str, datetime, datetime]:
    """The column that says which interval a row is of, and the run's range of it."""
    since, until = run.interval_from or moment(0), run.interval_to or moment(0)
    if plan is not None:
        windows = plan.windows.ending_in(micros(since), micros(until))
        if windows:
            owner, low, high = plan.owned(windows)
            return owner, moment(low), moment(high)
        return plan.owned(range(1))[0], since, until
    return layout.owner, since, until


class _Rows:
    """The rows of kind trends, as often as they are asked for: kept when they are few."""

    def __init__(
        self, database: Database, table: Table, shape: Shape, cells: Cells, since: datetime | None, zone: str | None
    ) -> None:
        self._database, self._shape, self._cells, self._since, self._zone = database, shape, cells, since, zone
        self._times = times_of(table.schema)
        (count,) = database.one("SELECT count(*) FROM rows")
        self._in_memory = [*self._read()] if count <= limits.PAGE_ROWS else None

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self._in_memory) if self._in_memory is not None else self._read()

    def _read(self) -> Iterator[ResultRow]:
        shape, columns = self._shape, self._shape.columns()
        groups, measures = len(shape.groups), range(len(shape.measures))
        asked = [f"g{i}" for i in range(groups)] + ["ws", "we"] + [f"v{i}" for i in measures]
        asked += [f"l{i}" if f"l{i}" in columns else "NULL" for i in measures]
        for row in self._database.each(f"SELECT {', '.join(asked)} FROM rows"):
            ws, we, *rest = row[groups:]
            values = tuple(
                (
                    name,
                    self._cells.amount(
                        name, as_text(rest[i], name in self._times, self._zone), rest[len(measures) + i]
                    ),
                )
                for i, name in enumerate(shape.measures)
            )
            amount = dict(values).get(shape.measure.name, Amount(1, 0.0))
            if not isinstance(amount, Amount):
                raise TypeError(f"{shape.measure.name} is no number")
            counted = amount if shape.measure.is_count else Amount(amount.exact, None, amount.unit)
            yield result_row(row[:groups], Window(moment(ws), moment(we)), counted, values, self._since)


def _span_from(run: RunFacts) -> datetime | None:
    """Where the picture starts: so many intervals back that about SPAN_WINDOWS windows are seen."""
    if run.interval_from is None or run.interval_to is None:
        return run.interval_from
    windows = run.windows or 1
    intervals = 1 if windows >= ENOUGH_WINDOWS else SPAN_WINDOWS // windows
    return shifted(run.interval_to, intervals * (run.interval_from - run.interval_to))
