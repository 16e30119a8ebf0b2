"""The rows that `trendlake show` prints, for the pattern's page: the same ones, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.facts import PatternFacts, RowResult, Window
from trendlake.pipelines.report.layout import Layout, present
from trendlake.pipelines.report.on_clock import local
from trendlake.pipelines.results.columns import Reading, rank_of, ranking_of
from trendlake.pipelines.results.read import Rows, Selection, read_rows
from trendlake.pipelines.results.spark_order import texts_here
from trendlake.pipelines.site.facts import NewestFacts, ShownFacts

ROWS_SHOWN = 10
NEWEST_SHOWN = 100
NEWEST_WRITTEN = 1000
"""The newest rows that a page shows, and those that the files next to it have."""


def read_shown(
    lake: Lake, path: str, pattern: PatternFacts, plan: AnyPlan | None
) -> tuple[ShownFacts, NewestFacts] | None:
    """The first rows of the results at `path`, and the newest; None where the pattern does not compile, or the rows are
    of a form that it does not have now."""
    if plan is None:
        return None
    try:
        newest = read_rows(lake, path, plan, Selection(limit=NEWEST_WRITTEN, latest=True))
        first = newest if ranking_of(plan) == "latest" else read_rows(lake, path, plan, Selection(limit=ROWS_SHOWN))
    except ProjectError:
        return None
    shown = _shown(replace(first, table=first.table.slice(0, ROWS_SHOWN)), pattern, plan)
    of_page = _shown(replace(newest, table=newest.table.slice(0, NEWEST_SHOWN)), pattern, plan)
    return shown, NewestFacts(of_page, newest.table)


def _shown(rows: Rows, pattern: PatternFacts, plan: AnyPlan) -> ShownFacts:
    layout, names = Layout.of(plan.result_schema.names, pattern.kind), plan.result_schema.names
    groups = present(pattern.group_by, names)
    hidden = {*layout.hidden, *groups, "window_start", "window_end"}
    cells = Cells.of(plan, ())
    measures = tuple(name for name in Reading.of(plan).chosen(names) if name not in hidden)
    shown = _rows(rows.table, layout, groups, measures, cells, plan, pattern.time_zone)
    ranked = rank_of(plan).removesuffix("_log10")
    return ShownFacts(ranking_of(plan), rows.total, rows.stale, groups, measures, shown, cells.ids(measures), ranked)


def _rows(
    table: pa.Table,
    layout: Layout,
    groups: Sequence[str],
    measures: Sequence[str],
    cells: Cells,
    plan: AnyPlan,
    zone: str | None,
) -> tuple[RowResult, ...]:
    keys = list(zip(*[_texts(table[name]) for name in groups], strict=True)) or [()] * table.num_rows
    return tuple(
        RowResult(key, _window(row, layout, plan), tuple((name, _value(row, name, cells, zone)) for name in measures))
        for key, row in zip(keys, table.to_pylist(), strict=True)
    )


def _texts(values: pa.ChunkedArray) -> list[str | None]:
    """As a run's page has them; of the types whose text only Spark knows, Python's."""
    texts = texts_here(values)
    if isinstance(texts, NotHere):
        return [None if value is None else str(value) for value in values.to_pylist()]
    return list(texts.to_pylist())


def _value(row: dict[str, Any], name: str, cells: Cells, zone: str | None) -> Amount | str:
    if isinstance(row[name], datetime):
        return str(local(row[name], zone))
    return cells.amount(name, row[name], row.get(f"{name}_log10"))


def _window(row: dict[str, Any], layout: Layout, plan: AnyPlan) -> Window:
    """Of a found pattern the time from its first event to its last, as a run's page says it."""
    if layout.windows:
        return Window(row["window_start"], row["window_end"])
    first, last = (row[name] for name in layout.times)
    if not layout.lifetimes:
        return Window(first, last)
    lifetime = plan.result_shape.lifetime
    begin: datetime = first if lifetime is None else last - timedelta(microseconds=lifetime)
    return Window(begin, first)
