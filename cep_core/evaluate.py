"""Running a plan over events: passes in the cheapest tier that is exact, summed by group and window, as an Arrow table.

Why the tiers are right. Rows only ever grow by additions of what is not negative (for trends, events and present), so a
float64 sum below 2^53 was made of whole numbers below 2^53 and is exact; a rounding error can first occur in a sum that
is 2^53 or more, and so shows. Otherwise, while the float64 sum (within 1e-9 of the truth) is below 3e38 < 2^128, the
sum
modulo 2^128 *is* the sum. Beyond, a count is NULL and its logarithm is asked for, which float64 gives while it is
finite, and mantissa and exponent at any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.aggregates import LOG10_STEP, Carried, Contributions, Number, carried
from cep_core.automaton import Automaton
from cep_core.buffers import arrow, numbers
from cep_core.columns import Events
from cep_core.errors import BadEventsError
from cep_core.guards import Guards
from cep_core.kernels.numbers import e_add
from cep_core.passes import Pass
from cep_core.plan import Plan
from cep_core.results import Row, plain_table, result_table
from cep_core.scopes import Run, runs
from cep_core.slices import make_slice
from cep_core.tasks import Tasks, doubles, window_tasks

Array = Any

EXACT = 2.0**53
WIDE = 3e38


def run_plan(plan: Plan, events: pa.Table, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over `events`, of all keys, in any order; of `windows` only, if
    given."""
    if windows is not None:
        events = _within(plan, events, windows) if len(windows) else events.slice(0, 0)
    if events.num_rows == 0:
        return plan.result_schema.empty_table()
    if plan.window_by_window and (windows is None or len(windows) > 1):
        return pa.concat_tables(run_plan(plan, events, range(j, j + 1)) for j in _windows_of(plan, events, windows))
    return _Answer(plan, Events(plan, events), windows).table()


class _Answer:
    """What a plan says of events: cells of one run as columns where float64 tells all, the rest row by row."""

    def __init__(self, plan: Plan, events: Events, windows: range | None) -> None:
        self.plan, self.events, self.windows = plan, events, windows
        self.groups = events.codes(plan.group_by)
        self.wanted = carried(plan.measures)

    def table(self) -> pa.Table:
        plan = self.plan
        found = [self._cells(automaton) for automaton in plan.automata]
        if len(found) == 1 and len(found[0]) == 1 and not plan.empty_windows:
            (cells,) = found[0]
            plain = cells.plain()
            told = plain_table(plan, self._group_columns(cells.keys[plain, 0]), *cells.columns(plain))
            return told if plain.all() else pa.concat_tables([told, self._rows(cells.found(np.flatnonzero(~plain)))])
        totals = [self._total(runs) for runs in found]
        rows = totals[0] if len(totals) == 1 else _pairs_of_trends(*totals)
        if plan.empty_windows:
            rows = _with_empty(plan, self.events, self.groups, rows, self.wanted, self.windows)
        return self._rows(rows)

    def _cells(self, automaton: Automaton) -> list[Cells]:
        """Of each of the runs that make up an automaton's trends and have any."""
        found = []
        for run in runs(self.events, automaton, self.plan.scoped):
            cells = _Run(run, automaton, self.groups, self.wanted, self.windows).cells()
            if cells is not None:
                found.append(cells)
        return found

    def _total(self, parts: list[Cells]) -> Found:
        """Sums of several runs, by (group, window)."""
        total: Found = {}
        for cells in parts:
            for key, (sums, extremes) in cells.found(np.arange(len(cells.keys))).items():
                if key in total:
                    before, best = total[key]
                    extremes = tuple(
                        _extreme(function, a, b)
                        for (function, _, _), a, b in zip(self.wanted.extremes, best, extremes, strict=True)
                    )
                    sums = tuple(a + b for a, b in zip(before, sums, strict=True))
                total[key] = (sums, extremes)
        return total

    @cached_property
    def _first(self) -> Array:
        """A row of each group, by code."""
        first = np.zeros(int(self.groups.max()) + 1, np.int64)
        first[self.groups[::-1]] = np.arange(self.events.length)[::-1]
        return first

    def _group_columns(self, codes: Array) -> list[Array]:
        if not self.plan.group_by:
            return []
        rows = arrow(self._first[codes])
        return [_one_chunk(self.events.group_value(name).take(rows)) for name in self.plan.group_by]

    def _rows(self, found: Found) -> pa.Table:
        keys = sorted(found)
        groups = self._group_columns(np.array([g for g, _ in keys], np.int64))
        return result_table(self.plan, groups, [Row(j, *found[g, j]) for g, j in keys])


def _within(plan: Plan, table: pa.Table, windows: range) -> pa.Table:
    """Only events that lie in one of `windows`."""
    from cep_core.values import normalise

    start, end = plan.windows.span(windows)
    if plan.schema.event_time not in table.column_names:
        raise BadEventsError(f"the events have no column '{plan.schema.event_time}'")
    time = normalise(table.column(plan.schema.event_time))
    values = numbers(time, start)
    inside = (values >= start) & (values < end)
    return table if inside.all() else table.filter(arrow(inside))


def _windows_of(plan: Plan, table: pa.Table, wanted: range | None) -> list[int]:
    """The windows that hold an event."""
    moments = np.unique(Events(plan, table).time)
    return sorted({j for time in moments for j in plan.windows.holding(int(time)) if wanted is None or j in wanted})


Found = dict[tuple[int, int], tuple[tuple[Number, ...], tuple[Any, ...]]]
"""(group code, window) -> (sums, extreme values)."""


def _extreme(function: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b) if function == "min" else max(a, b)


class _Run:
    """One run over all its partitions and windows. `whole`: the automaton the run is a part of."""

    def __init__(self, run: Run, whole: Automaton, groups: Array, wanted: Carried, windows: range | None) -> None:
        plan = run.events.plan
        self.slice = make_slice(run.events, whole.variables, run.partition)
        guards = Guards(run.events, run.automaton, run.open_scopes).at(self.slice)
        self.tasks = window_tasks(self.slice, plan.windows, windows)
        self.contributions = Contributions(self.slice, wanted)
        self.group = groups[self.slice.rows[self.tasks.lo]] if len(self.tasks.lo) else np.zeros(0, np.int64)
        self.kernel = Pass(self.slice, run.automaton, guards, whole.follows)

    def cells(self) -> Cells | None:
        """Sums by (group, window), where there is a trend; None when there is none."""
        if not len(self.tasks.lo):
            return None
        weights = self.contributions.weights
        tier = self.kernel.first_tier(weights)
        first = self.kernel.run(self.tasks, weights, tier)
        plain = doubles(first.sums) if tier == "E" else first.sums
        known = first.sums if tier == "E" else first.scaled
        hit = np.flatnonzero(first.hit)
        if not len(hit):
            return None
        tasks, group = self.tasks.subset(hit), self.group[hit]
        keys, cell = _distinct(group, tasks.window)
        sums = np.zeros((len(keys), plain.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(sums, cell, plain[hit])
        extremes = np.full((len(keys), first.extremes.shape[1]), -np.inf)
        np.maximum.at(extremes, cell, first.extremes[hit])
        size = np.where(np.isfinite(sums), np.abs(sums), np.inf).max(axis=1)
        wide = self._wide(tasks, cell, (size >= EXACT) & self._some_below(sums))
        large: Array = ~np.isfinite(sums).all(axis=1)
        chosen = np.flatnonzero(large[cell])
        if known is not None and np.isfinite(known[hit][chosen]).all():
            scaled = _by_cell(known[hit][chosen], cell[chosen])
        else:
            scaled = self._scaled(tasks, cell, large)
        return Cells(self.contributions, keys, sums, extremes, wide, scaled)

    def _some_below(self, sums: Array) -> Array:
        """Rows with a sum that float64 may have rounded and 128 bits hold."""
        size = np.abs(sums)
        result: Array = ((size >= EXACT) & (size < WIDE)).any(axis=1) | self._magnitudes(sums)
        return result

    def _magnitudes(self, sums: Array) -> Array:
        """Rows where a sum of values of both signs is small and its magnitudes are not: the sum may have lost
        digits."""
        doubtful = np.zeros(len(sums), dtype=bool)
        for k, (what, _, _) in enumerate(self.contributions.wanted.sums):
            if what == "magnitude":
                doubtful |= (sums[:, k] >= EXACT) & (sums[:, k] < WIDE)
        return doubtful

    def _chosen(self, tasks: Tasks, cell: Array, cells: Array) -> tuple[Tasks, Array]:
        chosen = np.flatnonzero(cells[cell])
        return tasks.subset(chosen), cell[chosen]

    def _wide(self, tasks: Tasks, cell: Array, cells: Array) -> dict[tuple[int, int], int]:
        """Sums modulo 2^128 of some cells, by (cell, k)."""
        if not cells.any():
            return {}
        chosen, owner = self._chosen(tasks, cell, cells)
        sums = self.kernel.run(chosen, self.contributions.weights.without_extremes(), "U").sums
        found: dict[tuple[int, int], int] = {}
        for t, c in enumerate(owner):
            for k in range(sums.shape[1]):
                value = (int(sums[t, k, 1]) << 64) | int(sums[t, k, 0])
                found[int(c), k] = (found.get((int(c), k), 0) + value) % (1 << 128)
        return found

    def _scaled(self, tasks: Tasks, cell: Array, cells: Array) -> dict[tuple[int, int], tuple[float, float]]:
        """Mantissa and exponent of the sums of some cells, by (cell, k)."""
        if not cells.any():
            return {}
        chosen, owner = self._chosen(tasks, cell, cells)
        sums = self.kernel.run(chosen, self.contributions.weights.without_extremes(), "E").sums
        return _by_cell(sums, owner)


def _distinct(group: Array, window: Array) -> tuple[Array, Array]:
    """The (group, window) there are, (C, 2), and which of them each is."""
    low = int(window.min())
    span = int(window.max()) - low + 1
    keys, cell = np.unique(group.astype(np.int64) * span + (window - low), return_inverse=True)
    return np.stack([keys // span, keys % span + low], axis=1), cell.reshape(-1)


@dataclass(frozen=True)
class Cells:
    """Sums of a run by (group, window): `keys` (C, 2); `sums` (C, K) as float64, infinite beyond; codes of `extremes`
    (C, M); and by (cell, k) the sums modulo 2^128 and as mantissa and exponent, where they are asked for."""

    contributions: Contributions
    keys: Array
    sums: Array
    extremes: Array
    wide: dict[tuple[int, int], int]
    scaled: dict[tuple[int, int], tuple[float, float]]

    def plain(self) -> Array:
        """Which cells float64 tells all about: every whole sum is exact, every other one is finite."""
        told = np.isfinite(self.sums).all(axis=1)
        for k, (what, _, _) in enumerate(self.contributions.wanted.sums):
            if what != "value" and (what != "magnitude" or self.contributions.whole):
                told &= self.sums[:, k] < EXACT
        return told

    def columns(self, chosen: Array) -> tuple[Array, Array, list[Array]]:
        """Windows, sums and extreme values of some cells."""
        values = [self.contributions.extreme_values(m, self.extremes[chosen, m]) for m in range(self.extremes.shape[1])]
        return self.keys[chosen, 1], self.sums[chosen], values

    def found(self, chosen: Array) -> Found:
        """Some cells as numbers of any size."""
        found: Found = {}
        for c in chosen.tolist():
            row = tuple(self._number(c, k) for k in range(self.sums.shape[1]))
            values = tuple(self.contributions.extreme_value(m, x) for m, x in enumerate(self.extremes[c]))
            found[int(self.keys[c, 0]), int(self.keys[c, 1])] = (row, values)
        return found

    def _number(self, c: int, k: int) -> Number:
        sums, wide = self.sums[c], self.wide
        value = float(sums[k])
        what, variable, attribute = self.contributions.wanted.sums[k]
        size = value
        if what == "value":
            size = float(sums[self.contributions.wanted.index("magnitude", variable, attribute)])
        whole = self.contributions.whole or what in ("trend", "events", "present")
        if whole and size < EXACT:
            return Number(value, 0.0, int(value))
        if whole and size < WIDE / 4 and (c, k) in wide:
            exact = wide[c, k]
            return Number(value, 0.0, exact - (1 << 128) if what == "value" and exact >> 127 else exact)
        if whole and what != "value" and size < WIDE and (c, k) in wide:
            return Number(value, 0.0, wide[c, k])
        if math.isfinite(value):
            return Number(value)
        return Number(*self.scaled[c, k])


def _by_cell(sums: Array, owner: Array) -> dict[tuple[int, int], tuple[float, float]]:
    """Sums (T, K, 2) of tier E added up by cell: (cell, k) -> mantissa and exponent."""
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for t, c in enumerate(owner):
        for k in range(sums.shape[1]):
            m, e = found.get((int(c), k), (0.0, 0.0))
            found[int(c), k] = e_add(m, e, float(sums[t, k, 0]), float(sums[t, k, 1]))
    return found


def _pairs_of_trends(left: Found, right: Found, both: Found) -> Found:
    """`P AND Q`: |P||Q| pairs, less those of a trend with itself, less one of each two-way pair of trends of both."""
    found: Found = {}
    for key in left.keys() & right.keys():
        p, q = left[key][0][0], right[key][0][0]
        i = both[key][0][0] if key in both else Number(0.0, 0.0, 0)
        if p.whole is not None and q.whole is not None and i.whole is not None:
            count = p.whole * q.whole - i.whole - i.whole * (i.whole - 1) // 2
            if count > 0:
                found[key] = ((Number(float("nan"), 0.0, count),), ())
            continue
        shared = 0.0 if i.is_zero else i.ratio(p) * i.ratio(q) / 2
        logarithm = (p.log10() or 0.0) + (q.log10() or 0.0) + math.log10(1.0 - shared)
        e = round(logarithm / LOG10_STEP)
        found[key] = ((Number(10.0 ** (logarithm - e * LOG10_STEP), float(e)),), ())
    return found


def _with_empty(
    plan: Plan, events: Events, groups: Array, rows: Found, wanted: Carried, windows: range | None
) -> Found:
    """Rows of nothing for the groups that have an event in a window and no trend."""
    zero = Number(0.0, 0.0, 0)
    filled = dict(rows)
    for g, time in zip(groups, events.time, strict=True):
        for j in plan.windows.holding(int(time)):
            if (windows is None or j in windows) and (int(g), j) not in filled:
                filled[int(g), j] = ((zero,) * len(wanted.sums), (None,) * len(wanted.extremes))
    return filled


def _one_chunk(column: Any) -> Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
