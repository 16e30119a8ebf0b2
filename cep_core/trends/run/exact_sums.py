"""Sums of one run by group and window, each in the numbers it needs.

Tier F answers first; what float64 may have rounded is asked again in 128 bits; what these do not hold is known by its
leading digits, which tiers F and E mostly know, and else tier D. Why that is exact: `evaluate`, and ADR 2.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Codes, Float64s, Int64s, UInt64s
from trendlake.cep_core.trends.kernels.arguments import Tasks
from trendlake.cep_core.trends.kernels.numbers import add_wide
from trendlake.cep_core.trends.kernels.rounding import nearest, show_counts
from trendlake.cep_core.trends.kernels.scaled import RADIX
from trendlake.cep_core.trends.run.aggregates import Carried, Contributions
from trendlake.cep_core.trends.run.exact_arithmetic import Number, count_log10
from trendlake.cep_core.trends.run.kernel_pass import Pass
from trendlake.cep_core.trends.run.longest import LongestTrends, longest_trends_of
from trendlake.cep_core.trends.run.maximal import maximal_tasks
from trendlake.cep_core.trends.run.negation import Guards
from trendlake.cep_core.trends.run.scoped_equivalence import Run
from trendlake.cep_core.trends.run.sorted_rows import by_window, make_slice
from trendlake.cep_core.trends.run.window_tasks import doubles, window_tasks

EXACT = 2.0**53
WIDE = 3e38
FEW = 2**94
"""Values that are added fewer times than this are added exactly: their parts, of 24 bits, do not leave 128."""

Numbers = dict[tuple[int, int], tuple[tuple[Number, ...], tuple[Any, ...]]]
"""(group code, window) -> (sums, extreme values)."""


class RunSums:
    """One run over all its partitions and windows."""

    def __init__(self, run: Run, groups: Codes, wanted: Carried, windows: range | None, turn: int = 0) -> None:
        plan = run.events.plan
        self.run, self.slice = run, make_slice(run.events, tuple(run.automaton.watched), run.partition)
        self.guards = Guards(run.events, run.automaton, run.open_scopes).at(self.slice)
        self.tasks = window_tasks(self.slice, plan.windows, windows)
        if plan.turns > 1:
            self.tasks = self.tasks.subset(self.tasks.window % plan.turns == turn)
        self.contributions = Contributions(self.slice, wanted, self.tasks)
        selects = plan.select != "skip_till_any_match"
        if plan.output == "maximal":
            self.tasks = maximal_tasks(self.slice, plan.automata[0], self.guards, self.tasks)
        self.group = groups[self.slice.rows[self.tasks.lo]] if len(self.tasks.lo) else np.zeros(0, np.int64)
        apart = plan.windows.overlap == 1 and len(self.tasks.lo) > 1 and not selects
        if apart and len(self.tasks.lo) > self.slice.partitions:
            self.slice = by_window(self.slice, self.tasks)
        self.kernel = Pass(self.slice, run.automaton, self.guards, selects=selects, whole=plan.output == "maximal")

    @property
    def within(self) -> int:
        return self.slice.events.plan.within

    def cells(self, whole: bool) -> Cells | None:
        """Sums by (group, window), where there is a trend; None when there is none. `whole`: they are all of a trend's
        group, not to be added to those of another run: numbers need then be known no better than they are shown."""
        if not len(self.tasks.lo):
            return None
        weights = self.contributions.weights
        tier = self.kernel.first_tier(weights)
        first = self.kernel.run(self.tasks, weights, tier)
        hit = np.flatnonzero(first.hit)
        if not len(hit):
            return None
        plain = doubles(first.sums) if tier == "E" else first.sums
        tasks = self.tasks.subset(hit)
        cells, cell = self._added(hit, plain, first.extremes)
        self._widen(cells, tasks, cell)
        scaled = first.sums if tier == "E" else first.scaled
        scaled = np.stack([plain, np.zeros_like(plain)], axis=-1) if scaled is None else scaled
        self._beyond(cells, tasks, cell, scaled[hit], None if first.fine is None else first.fine[hit], whole)
        if self.contributions.wanted.longest:
            cells.longest = longest_trends_of(self.run, self.slice, self.guards, self.kernel, tasks, cell)
        return cells

    def in_lanes(self, masks: UInt64s, lanes: int) -> list[Cells | None] | None:
        """The cells of each of several patterns that differ in the events their variables bind, see `Direct.in_lanes`;
        `masks` by event. Of a pattern that has no trend None. None for all where they have no lanes in this pass."""
        if not len(self.tasks.lo):
            return [None] * lanes
        weights = self.contributions.weights
        sums = self.kernel.in_lanes(self.tasks, weights, np.ascontiguousarray(masks[:, self.slice.rows]), lanes)
        if sums is None:
            return None
        none = np.zeros((len(sums), 0))
        hits = (np.flatnonzero(sums[:, lane, 0]) for lane in range(lanes))
        return [self._added(hit, sums[:, lane], none)[0] if len(hit) else None for lane, hit in enumerate(hits)]

    def _added(self, hit: Int64s, sums: Float64s, extremes: Float64s) -> tuple[Cells, Int64s]:
        """The tasks `hit`, of all `sums` (T, K) and `extremes` (T, M), added by cell, and which cell each is of."""
        keys, cell = _distinct(self.group[hit], self.tasks.window[hit])
        added = np.zeros((len(keys), sums.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(added, cell, sums[hit])
        largest = np.full((len(keys), extremes.shape[1]), -np.inf)
        np.maximum.at(largest, cell, extremes[hit])
        return Cells(self.contributions, keys, added, largest), cell

    def _widen(self, cells: Cells, tasks: Tasks, cell: Int64s) -> None:
        """The sums that float64 may have rounded, modulo 2^128."""
        rows = list(self.contributions.row_of.values())
        asked = ~cells.plain & (cells.sums[:, rows] < WIDE).any(axis=1)
        if not asked.any():
            return
        chosen = np.flatnonzero(asked[cell])
        sums = self.kernel.run(tasks.subset(chosen), self.contributions.weights.without_extremes(), "U").sums
        number = np.cumsum(asked) - 1
        added = np.zeros((int(asked.sum()), *sums.shape[1:]), np.uint64)
        add_wide(sums, number[cell[chosen]], added)
        cells.wide, cells.wide_of = added, np.where(asked, number, -1)

    def _beyond(
        self, cells: Cells, tasks: Tasks, cell: Int64s, scaled: Float64s, fine: Float64s | None, whole: bool
    ) -> None:
        """Numbers that 128 bits do not hold. `scaled`: the numbers of each task by the first pass, in tier E; `fine`:
        in tier D, where it has them."""
        contributions, kernel = self.contributions, self.kernel
        beyond = np.flatnonzero(~cells.plain & cells.missing)
        if len(beyond) and whole and contributions.wanted.counts_alone:
            some, at, owner = _of_cells(beyond, tasks, cell)
            sums = scaled[at]
            if not np.isfinite(sums).all():
                sums = kernel.run(some, contributions.weights.without_extremes(), "E").sums
            unit = 2.0**-53 if sums.shape[-1] == 2 else 2.0**-103
            error = unit * (kernel.roundings(some) + len(at))
            if len(owner) == len(beyond) and sums.shape[-1] == 2:
                cells.leading[owner], cells.error[owner] = sums, error
            else:
                _put(cells, owner, sums, error, contributions.row_of, self.within)
            left = beyond[~cells.counted[beyond]].tolist()
            beyond = np.array([c for c in left if not cells.sure(c)], np.int64)
        if len(beyond):
            some, at, owner = _of_cells(beyond, tasks, cell)
            counts = fine is not None and len(contributions.row_of) == len(contributions.wanted.sums)
            sums = fine[at] if fine is not None and counts else kernel.run(some, contributions.reals, "D").sums
            error = 2.0**-103 * (kernel.roundings(some) + len(at))
            _put(cells, owner, sums, error, {k: k for k in range(len(contributions.wanted.sums))}, self.within)


def _of_cells(cells: Int64s, tasks: Tasks, cell: Int64s) -> tuple[Tasks, Int64s, Int64s]:
    """The tasks of some cells, their places, and which cell each is of."""
    asked = np.zeros(int(cell.max()) + 1, np.bool_)
    asked[cells] = True
    at = np.flatnonzero(asked[cell])
    return tasks.subset(at), at, cell[at]


def _put(cells: Cells, owner: Int64s, sums: Float64s, error: Float64s, rows: dict[int, int], within: int) -> None:
    """Add sums of tier E or D up by cell, the sum `k` from row `rows[k]`; after the sums come those of magnitudes, of
    each that is of values. The magnitude of a trend's duration is `within`."""
    wanted = cells.contributions.wanted
    sizes = {k: len(wanted.sums) + i for i, k in enumerate(wanted.values)}
    numbers: dict[tuple[int, int], Number] = {}
    for c, row, off in zip(owner.tolist(), sums.tolist(), error.tolist(), strict=True):
        for k, r in rows.items():
            number = _scaled(row[r], off)
            if k in sizes:
                number = Number(number.whole, number.power, off, _scaled(row[sizes[k]], off))
            elif wanted.sums[k].what == "span":
                trends = _scaled(row[rows[0]], off)
                number = Number(number.whole, number.power, off, Number(trends.whole * within, trends.power, off))
            numbers[c, k] = numbers[c, k] + number if (c, k) in numbers else number
    cells.beyond.update(numbers)


def _scaled(number: list[float], error: float) -> Number:
    """A number of tier E or D."""
    low = number[1] if len(number) == 3 else 0.0
    return Number.of(number[0], low, number[-1], error)


def _distinct(group: Codes, window: Int64s) -> tuple[Int64s, Int64s]:
    """The (group, window) there are, (C, 2), and which of them each is."""
    low = int(window.min())
    span = int(window.max()) - low + 1
    keys, cell = np.unique(group.astype(np.int64) * span + (window - low), return_inverse=True)
    return np.stack([keys // span, keys % span + low], axis=1), cell.reshape(-1)


class Cells:
    """Sums of a run by (group, window): `keys` (C, 2); `sums` (C, rows of the pass) as float64, infinite beyond; codes
    of `extremes` (C, M). `plain` (C): every row of the pass is a whole number below 2^53, and exact. Of the others,
    `wide`: the rows modulo 2^128, (W, rows, 2), `wide_of` (C) being a cell's place there (-1: none). Larger ones are
    in `leading`, the rows in tier E (C, rows, 2) within `error` (C; 0: not known), where counts alone are asked for and
    a cell has one task; or in `beyond`, by (cell, sum)."""

    def __init__(self, contributions: Contributions, keys: Int64s, sums: Float64s, extremes: Float64s) -> None:
        self.contributions, self.keys, self.sums, self.extremes = contributions, keys, sums, extremes
        self.wide = np.zeros((0, sums.shape[1], 2), np.uint64)
        self.wide_of: Int64s = np.full(len(keys), -1)
        self.leading: Float64s = np.zeros((*sums.shape, 2))
        self.error: Float64s = np.zeros(len(keys))
        self.beyond: dict[tuple[int, int], Number] = {}
        self.longest: LongestTrends | None = None
        wanted, row_of = contributions.wanted, contributions.row_of
        self.plain: Bools = np.all(sums[:, list(row_of.values())] < EXACT, axis=1)
        for k, values in contributions.values_of.items():
            present = sums[:, row_of[wanted.number_of(k)]]
            self.plain &= present < EXACT / values.largest.max(initial=1.0)
            if wanted.sums[k].whole:
                added = sums[:, list(values.rows)] @ np.ldexp(1.0, values.place + values.bit)
                self.plain &= added < EXACT / 2

    def places(self, keys: Int64s) -> Int64s:
        """The cells of these keys, which are all among them."""
        low = int(self.keys[:, 1].min())
        span = int(self.keys[:, 1].max()) - low + 1
        mine, asked = (one[:, 0] * span + (one[:, 1] - low) for one in (self.keys, keys))
        return np.searchsorted(mine, asked)

    def columns(
        self, chosen: Bools
    ) -> tuple[Int64s, dict[int, Float64s], dict[int, tuple[Float64s, Int64s]], list[pa.Array]]:
        """Of some plain cells: windows, counts and sums of values (mantissas and exponents) by sum, extreme values."""
        counts = {k: self.sums[chosen, row] for k, row in self.contributions.row_of.items()}
        sums = {}
        for k, values in self.contributions.values_of.items():
            parts = self.sums[chosen][:, list(values.rows)].astype(np.int64)
            m, e = np.zeros(len(parts)), np.zeros(len(parts), np.int64)
            nearest(parts, values.place, values.bit, m, e)
            sums[k] = m, e
        return self.keys[chosen, 1], counts, sums, self._extremes(chosen)

    def _extremes(self, chosen: Bools) -> list[pa.Array]:
        """Extreme values of some cells."""
        shown = [self.contributions.extreme_values(m, self.extremes[chosen, m]) for m in range(self.extremes.shape[1])]
        return shown if self.longest is None else [*shown, self.longest.ids(np.flatnonzero(chosen))]

    def numbers(self, chosen: Int64s) -> Numbers:
        """Some cells as numbers of any size."""
        numbers: Numbers = {}
        for c in chosen.tolist():
            row = tuple(self._number(c, k) for k in range(len(self.contributions.wanted.sums)))
            values = tuple(self.contributions.extreme_value(m, x) for m, x in enumerate(self.extremes[c]))
            if self.longest is not None:
                values = (*values, self.longest.of(c))
            numbers[int(self.keys[c, 0]), int(self.keys[c, 1])] = (row, values)
        return numbers

    @property
    def missing(self) -> Bools:
        """Where 128 bits do not hold all of a cell."""
        if not self.contributions.values_of:
            beyond: Bools = np.any(~(self.sums < WIDE), axis=1)
            return beyond
        missing = np.zeros(len(self.keys), np.bool_)
        for c in np.flatnonzero(~self.plain).tolist():
            missing[c] = any(self._exact(c, k) is None for k in range(len(self.contributions.wanted.sums)))
        return missing

    @cached_property
    def _shown(self) -> tuple[Float64s, Bools, Bools]:
        """Of each row of each cell that is not plain (C, rows): the logarithm; whether DECIMAL(38,0) holds the count;
        whether the digits are sure."""
        exact: Bools = (self.sums < WIDE) & (self.wide_of >= 0)[:, None]
        certain = exact | (self.error > 0.0)[:, None]
        logarithms, fits, sure = np.zeros(exact.size), np.zeros(exact.size, np.bool_), np.zeros(exact.size, np.bool_)
        chosen = np.flatnonzero(certain & ~self.plain[:, None])
        results = np.zeros(len(chosen)), np.zeros(len(chosen), np.bool_), np.zeros(len(chosen), np.bool_)
        words, leading = self._words.reshape(-1, 2)[chosen], self.leading.reshape(-1, 2)[chosen]
        error = np.repeat(self.error, exact.shape[1])[chosen]
        show_counts(words, exact.reshape(-1)[chosen], leading, RADIX, error, *results)
        logarithms[chosen], fits[chosen], sure[chosen] = results
        return logarithms.reshape(exact.shape), fits.reshape(exact.shape), sure.reshape(exact.shape)

    @property
    def _words(self) -> UInt64s:
        """The rows modulo 2^128 by cell (C, rows, 2), 0 where not known."""
        words = np.zeros((*self.sums.shape, 2), np.uint64)
        words[self.wide_of >= 0] = self.wide[self.wide_of[self.wide_of >= 0]]
        return words

    @property
    def counted(self) -> Bools:
        """Cells that are not plain, and whose numbers are counts that `counts` tells."""
        if not self.contributions.wanted.counts_alone:
            return np.zeros(len(self.keys), np.bool_)
        sure: Bools = np.all(self._shown[2], axis=1)
        return sure & ~self.plain

    def counts(self, chosen: Bools) -> tuple[Int64s, dict[int, tuple[UInt64s, Bools, Float64s]], list[pa.Array]]:
        """Of some `counted` cells: windows; by sum, words, which of them DECIMAL(38,0) holds, and logarithms; extreme
        values."""
        (logarithms, fits, _), words = self._shown, self._words
        counts = {
            k: (np.where(fits[chosen, row, None], words[chosen, row], 0), fits[chosen, row], logarithms[chosen, row])
            for k, row in self.contributions.row_of.items()
        }
        return self.keys[chosen, 1], counts, self._extremes(chosen)

    def sure(self, c: int) -> bool:
        """Whether all digits that are shown of a cell's counts are known."""
        return all(
            one.what == "present" or count_log10(number) is not None
            for k, one in enumerate(self.contributions.wanted.sums)
            if not (number := self._number(c, k)).is_zero
        )

    def _number(self, c: int, k: int) -> Number:
        exact = self._exact(c, k)
        if exact is not None:
            return exact
        if (c, k) in self.beyond:
            return self.beyond[c, k]
        return _scaled(self.leading[c, self.contributions.row_of[k]].tolist(), float(self.error[c]))

    @cached_property
    def _wide_rows(self) -> list[list[list[int]]]:
        rows: list[list[list[int]]] = self.wide.tolist()
        return rows

    def _exact(self, c: int, k: int) -> Number | None:
        """A sum, where 128 bits are known to hold it: that follows from its size, not from how it was computed."""
        contributions = self.contributions
        values = contributions.values_of.get(k)
        if values is None:
            size = self.sums[c, contributions.row_of[k]]
            if self.plain[c]:
                return Number(int(size))
            if self.wide_of[c] < 0 or not size < WIDE:
                return None
            low, high = self._wide_rows[self.wide_of[c]][contributions.row_of[k]]
            return Number((high << 64) | low)
        present = self._exact(c, contributions.wanted.number_of(k))
        if present is None or present.whole >= FEW:
            return None
        whole = 0
        for place, row in zip(values.place.tolist(), values.rows, strict=True):
            if self.plain[c]:
                number = int(self.sums[c, row])
            else:
                low, high = self._wide_rows[self.wide_of[c]][row]
                number = ((high << 64) | low) - ((1 << 128) if high >> 63 else 0)
            whole += number << place
        return Number(whole, values.bit)
