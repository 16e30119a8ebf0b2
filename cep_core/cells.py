"""Sums of one run by group and window, each in the numbers it needs.

Tier F answers first; what float64 may have rounded is asked again in 128 bits, what it cannot hold in tier E. Why that
is exact: `evaluate`, and ADR 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cep_core.aggregates import Carried, Contributions, Number
from cep_core.guards import Guards
from cep_core.kernels.numbers import e_add
from cep_core.passes import Pass
from cep_core.scopes import Run
from cep_core.slices import make_slice
from cep_core.tasks import Tasks, doubles, window_tasks

Array = Any

EXACT = 2.0**53
WIDE = 3e38

Found = dict[tuple[int, int], tuple[tuple[Number, ...], tuple[Any, ...]]]
"""(group code, window) -> (sums, extreme values)."""


class RunSums:
    """One run over all its partitions and windows."""

    def __init__(self, run: Run, groups: Array, wanted: Carried, windows: range | None) -> None:
        plan = run.events.plan
        self.slice = make_slice(run.events, tuple(run.automaton.watched), run.partition)
        guards = Guards(run.events, run.automaton, run.open_scopes).at(self.slice)
        self.tasks = window_tasks(self.slice, plan.windows, windows)
        self.contributions = Contributions(self.slice, wanted)
        self.group = groups[self.slice.rows[self.tasks.lo]] if len(self.tasks.lo) else np.zeros(0, np.int64)
        self.kernel = Pass(self.slice, run.automaton, guards, selects=plan.select != "skip_till_any_match")

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
