"""Running a plan over events: passes in the cheapest tier that is exact, summed by group and window, as an Arrow table.

Why the tiers are right. A pass adds whole numbers only: a count, or a part of a value
(`cep_core.trends.kernels.rounding`). Rows of counts only ever grow by additions of what is not negative, so a float64
sum below 2^53 was made of whole numbers below 2^53 and is exact; a rounding error can first occur in a sum that is 2^53
or more, and so shows. An intermediate sum of parts is at most the number of values added times the largest part.
Otherwise, while the float64 sum (within 1e-9 of the truth) is below 3e38 < 2^128, the sum modulo 2^128 *is* the sum.
Beyond, a count is NULL and ten digits of its logarithm are asked for, which float64 mostly gives for sure, and tier D
else.

So a result is a function of the true sums: the order of rows, and what else is computed with them, does not show.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Bools, Float64s, Int32s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.trends.compile.check_return import Lengths
from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.run.aggregates import TREND, Carried, carried
from trendlake.cep_core.trends.run.events import Events
from trendlake.cep_core.trends.run.exact_arithmetic import Number
from trendlake.cep_core.trends.run.exact_sums import Cells, Numbers, RunSums
from trendlake.cep_core.trends.run.results import Row, counts_table, plain_table, result_table
from trendlake.cep_core.trends.run.scoped_equivalence import runs


def run_plan(plan: Plan, columns: Columns, windows: range | None = None, may: UInt64s | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all keys, in any order; of `windows` only, if given.
    `may`: as of `Events`."""
    if windows is not None:
        if not len(windows):
            return plan.result_schema.empty_table()
        columns, may = _within(plan, columns, windows, may)
    if columns.length == 0:
        return plan.result_schema.empty_table()
    if plan.window_by_window and (windows is None or len(windows) > 1):
        tables = [run_plan(plan, columns, range(j, j + 1), may) for j in _windows_of(plan, columns, windows)]
        return pa.concat_tables([plan.result_schema.empty_table(), *tables])
    if plan.turns == 1:
        return _Answer(plan, Events(plan, columns, may), windows).table()
    turns = range(plan.turns) if windows is None else sorted({j % plan.turns for j in windows[: plan.turns]})
    events = Events(plan, columns, may)
    return pa.concat_tables([_Answer(plan, events, windows, turn).table() for turn in turns])


def run_lanes(form: Plan, columns: Columns, masks: UInt64s, lanes: int, windows: range | None) -> list[pa.Table | None]:
    """Results of several plans that are of one form but for the events that their variables may bind: bit l of
    masks[v] (n of `columns`, uint64) where variable v of plan l may. None for a plan that is to be run alone."""
    bound = masks != 0
    may = np.zeros(columns.length, np.uint64)
    for v in range(len(masks)):
        may |= bound[v].astype(np.uint64) << np.uint64(v)
    rows = np.flatnonzero(may)
    if windows is not None:
        start, end = form.windows.span(windows)
        time = numbers(columns.column(form.schema.event_time), start)[rows]
        rows = rows[(time >= start) & (time < end)]
    if len(rows) < columns.length:
        columns, masks, may = columns.chosen(rows), masks[:, rows], may[rows]
    if not len(rows):
        return [form.result_schema.empty_table()] * lanes
    tables = _Answer(form, Events(form, columns, may), windows).lanes(masks, lanes)
    return [None] * lanes if tables is None else tables


_TRENDS = Carried((TREND,), ())
"""The sums of a pass over trends of some lengths."""


class _Answer:
    """The answer of a plan to events: cells of one run as columns where float64 is exact or only
    counts are asked for, the rest row by row."""

    def __init__(self, plan: Plan, events: Events, windows: range | None, turn: int = 0) -> None:
        self.plan, self.events, self.windows, self.turn = plan, events, windows, turn
        self.groups = events.codes(plan.group_by)
        self.wanted = carried(plan.measures)

    def table(self) -> pa.Table:
        plan = self.plan
        alone = len(plan.automata) == 1 and not plan.scoped
        cells_of = [self._cells(automaton, alone, self.wanted) for automaton in plan.automata]
        of_lengths = [self._cells(plan.automata[0], alone, _TRENDS, one.lengths) for one in self.wanted.filtered]
        if len(cells_of) == 1 and len(cells_of[0]) == 1 and not plan.empty_windows:
            (cells,) = cells_of[0]
            tables = []
            plain, more = _filtered(cells, of_lengths)
            if plain.any():
                windows, counts, sums, extremes = cells.columns(plain)
                counts |= {k: more[i][plain] for i, k in enumerate(range(len(self.wanted.sums), self.wanted.size))}
                groups = self._group_columns(cells.keys[plain, 0])
                tables.append(plain_table(plan, groups, windows, counts, sums, extremes))
            if not plain.all():
                counted = cells.counted if not of_lengths else np.zeros(len(plain), np.bool_)
                if counted.any():
                    groups = self._group_columns(cells.keys[counted, 0])
                    tables.append(counts_table(plan, groups, *cells.counts(counted)))
                rest = np.flatnonzero(~(plain | counted))
                if len(rest):
                    tables.append(self._rows(self._with_filtered(cells.numbers(rest), of_lengths)))
            return pa.concat_tables(tables)
        totals = [self._total(runs, self.wanted) for runs in cells_of]
        rows = totals[0] if len(totals) == 1 else _pairs_of_trends(*totals)
        rows = self._with_filtered(rows, of_lengths)
        if plan.empty_windows:
            rows = _with_empty(plan, self.events, self.groups, rows, self.wanted, self.windows, self.turn)
        return self._rows(rows)

    def _with_filtered(self, rows: Numbers, of_lengths: list[list[Cells]]) -> Numbers:
        """Rows with the counts of trends of some lengths after their sums."""
        if not of_lengths:
            return rows
        counts = [self._total(parts, _TRENDS) for parts in of_lengths]
        none = ((Number(0),), ())
        return {
            key: ((*sums, *(count.get(key, none)[0][0] for count in counts)), extremes)
            for key, (sums, extremes) in rows.items()
        }

    def lanes(self, masks: UInt64s, count: int) -> list[pa.Table | None] | None:
        """See `run_lanes`; None where the plans have no lanes."""
        (run,) = runs(self.events, self.plan.automata[0], ())
        cells_of = RunSums(run, self.groups, self.wanted, self.windows).in_lanes(masks, count)
        return None if cells_of is None else [self._lane(cells) for cells in cells_of]

    def _lane(self, cells: Cells | None) -> pa.Table | None:
        """None where float64 does not tell all."""
        if cells is None:
            return self.plan.result_schema.empty_table()
        if not cells.plain.all():
            return None
        return plain_table(self.plan, self._group_columns(cells.keys[:, 0]), *cells.columns(cells.plain))

    def _cells(self, automaton: Automaton, alone: bool, wanted: Carried, lengths: Lengths | None = None) -> list[Cells]:
        """Of each of the runs that make up an automaton's trends and have any, or any of such `lengths`. `alone`: one
        run is all there is."""
        sums = []
        for run in runs(self.events, automaton, self.plan.scoped):
            cells = RunSums(run, self.groups, wanted, self.windows, self.turn, lengths).cells(alone)
            if cells is not None:
                sums.append(cells)
        return sums

    def _total(self, parts: list[Cells], wanted: Carried) -> Numbers:
        """Sums of several runs, by (group, window)."""
        total: Numbers = {}
        functions = [*(one.function for one in wanted.extremes), *["longest"] * wanted.longest]
        for cells in parts:
            for key, (sums, extremes) in cells.numbers(np.arange(len(cells.keys))).items():
                if key in total:
                    before, best = total[key]
                    extremes = tuple(
                        _extreme(function, a, b) for function, a, b in zip(functions, best, extremes, strict=True)
                    )
                    sums = tuple(a + b for a, b in zip(before, sums, strict=True))
                total[key] = (sums, extremes)
        return total

    @cached_property
    def _first(self) -> Int64s:
        """A row of each group, by code."""
        first = np.zeros(int(self.groups.max()) + 1, np.int64)
        first[self.groups[::-1]] = np.arange(self.events.length)[::-1]
        return first

    def _group_columns(self, codes: Int64s) -> list[pa.Array]:
        if not self.plan.group_by:
            return []
        rows = arrow(self._first[codes])
        return [_one_chunk(self.events.group_value(name).take(rows)) for name in self.plan.group_by]

    def _rows(self, numbers: Numbers) -> pa.Table:
        keys = sorted(numbers)
        groups = self._group_columns(np.array([g for g, _ in keys], np.int64))
        return result_table(self.plan, groups, [Row(j, *numbers[g, j]) for g, j in keys])


def _within(plan: Plan, columns: Columns, windows: range, may: UInt64s | None) -> tuple[Columns, UInt64s | None]:
    """Only events in one of `windows`."""
    start, end = plan.windows.span(windows)
    name = plan.schema.event_time
    if not columns.has(name):
        raise BadEventsError(f"the events have no column '{name}'")
    if may is None:
        return columns.within(name, start, end), None
    values = numbers(columns.column(name), start)
    inside = np.flatnonzero((values >= start) & (values < end))
    return (columns, may) if len(inside) == len(values) else (columns.chosen(inside), may[inside])


def _windows_of(plan: Plan, columns: Columns, wanted: range | None) -> list[int]:
    """The windows that hold an event."""
    columns.check(plan.schema, plan.columns, ("event_time", "event_type"))
    first, last = plan.windows.held(np.unique(numbers(columns.column(plan.schema.event_time))))
    held = {j for low, high in zip(first.tolist(), last.tolist(), strict=True) for j in range(low, high + 1)}
    return sorted(j for j in held if wanted is None or j in wanted)


def _extreme(function: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b) if function in ("min", "longest") else max(a, b)


def _filtered(cells: Cells, of_lengths: list[list[Cells]]) -> tuple[Bools, list[Float64s]]:
    """Where all numbers of a cell are plain, those of the filtered counts too; and these counts, by cell."""
    plain, counts = cells.plain, []
    for parts in of_lengths:
        count = np.zeros(len(plain))
        for some in parts:
            at = cells.places(some.keys)
            count[at] += some.sums[:, 0]
            plain = plain.copy()
            plain[at] &= some.plain & (len(parts) == 1)
        counts.append(count)
    return plain, counts


def _pairs_of_trends(left: Numbers, right: Numbers, both: Numbers) -> Numbers:
    """`P AND Q`: |P||Q| pairs, less those of a trend with itself, less one of each two-way pair of trends of both."""
    numbers: Numbers = {}
    for key in left.keys() & right.keys():
        p, q = left[key][0][0], right[key][0][0]
        i = both[key][0][0] if key in both else Number(0)
        # twice the count: no more than half of it is taken off again, so that its error is little more than theirs
        doubled = _product(p, q, 2) + _product(i, i, -1) + Number(-i.whole, i.power)
        if doubled.whole > 0:
            error = 8.0 * max(p.error, q.error, i.error)
            count = Number(doubled.whole, doubled.power - 1, error) if error else Number(doubled.whole // 2)
            numbers[key] = ((count,), ())
    return numbers


def _product(a: Number, b: Number, times: int) -> Number:
    return Number(a.whole * b.whole * times, a.power + b.power)


def _with_empty(
    plan: Plan, events: Events, groups: Int32s, rows: Numbers, wanted: Carried, windows: range | None, turn: int
) -> Numbers:
    """Rows of nothing for the groups that have an event in a window and no trend."""
    zero = Number(0)
    filled = dict(rows)
    none = (zero,) * wanted.size, (None,) * (len(wanted.extremes) + wanted.longest)
    first, last = plan.windows.held(events.time)
    for g, low, high in zip(groups.tolist(), first.tolist(), last.tolist(), strict=True):
        for j in range(low, high + 1):
            mine = (windows is None or j in windows) and j % plan.turns == turn
            if mine and (g, j) not in filled and plan.windows.exists(j):
                filled[g, j] = none
    return filled


def _one_chunk(column: Any) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
