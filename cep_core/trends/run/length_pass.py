"""The pass of COUNT(*) FILTER (WHERE LENGTH(...)): one number a length next to another where that can be, else states
of their own for each length."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Float64s
from trendlake.cep_core.trends.compile.check_return import Lengths
from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.compile.plan import filtered
from trendlake.cep_core.trends.kernels import lengths as kernel
from trendlake.cep_core.trends.kernels.arguments import Tasks, Weights
from trendlake.cep_core.trends.run.fast_path import Direct
from trendlake.cep_core.trends.run.kernel_pass import Pass
from trendlake.cep_core.trends.run.ranks import Guarded
from trendlake.cep_core.trends.run.sorted_rows import Slice
from trendlake.cep_core.trends.run.window_tasks import Sums

MAX_BYTES = 1 << 31
"""Nodes that need more are no faster than states of their own."""
MAX_POWER = 800
"""Float64 holds numbers below 2^MAX_POWER, and sums of as many of them as there are events."""


class LengthPass(Pass):
    """The pass of the trends of `automaton` that have such `lengths`. Tier E has a number of its own for each length in
    the stores of the automaton; the other tiers, and patterns with ranges or NOTs, are left to `apart`."""

    def __init__(
        self,
        slice_: Slice,
        automaton: Automaton,
        guards: Guarded,
        lengths: Lengths,
        *,
        selects: bool,
        whole: bool = False,
    ) -> None:
        super().__init__(slice_, automaton, guards, selects=selects, whole=whole)
        self._apart = filtered(automaton, lengths), guards, selects, whole
        most, first = lengths.low if lengths.high is None else lengths.high, int(lengths.variable is None)
        names = slice_.events.plan.variables
        counted: Bools = np.array([lengths.variable in (None, name) for name in names], np.bool_)
        shown = max(lengths.low - first, 0)
        self.places = kernel.Places(most + 1 - first, first, lengths.high is None, shown, counted)
        self.shared = self.direct if self._fits else None

    @property
    def _fits(self) -> bool:
        if self.direct is None or not self.direct.free:
            return False
        trends = self.places.width * np.log2(max(2, self.direct.count * len(self.slice.time)))
        return bool(trends < MAX_POWER and 8 * (self.places.width + 1) * self.nodes <= MAX_BYTES)

    @cached_property
    def apart(self) -> Pass:
        """The pass of an automaton whose states know how many events there were."""
        automaton, guards, selects, whole = self._apart
        return Pass(self.slice, automaton, guards, selects=selects, whole=whole)

    def first_tier(self, weights: Weights) -> str:
        return "E" if self.shared is not None else self.apart.first_tier(weights)

    def roundings(self, tasks: Tasks) -> Float64s:
        """That of `apart`, which has more states, is the larger one."""
        return self.apart.roundings(tasks) if "apart" in vars(self) else super().roundings(tasks)

    def run(
        self, tasks: Tasks, weights: Weights, tier: str, emit: Float64s | None = None, reach: Float64s | None = None
    ) -> Sums:
        if tier != "E" or self.shared is None:
            return self.apart.run(tasks, weights, tier, emit, reach)
        return self._shared(tasks, self.shared)

    def _shared(self, tasks: Tasks, direct: Direct) -> Sums:
        rows, width = self.widest * direct.count, self.places.width + 1
        vectors = kernel.Vectors(*(np.zeros(max(1, count) * width) for count in (rows, self.nodes, 1)))
        sums, hit = np.zeros((len(tasks.lo), 1, 2)), np.zeros(len(tasks.lo), np.bool_)
        steps = direct.steps(self.store_of, self.store_t)
        ranks, fenwick = self.layers.ranks, self.layers.fenwick
        kernel.of_lengths(tasks, self.slice.in_kernels, steps, ranks, fenwick, self.places, vectors, sums, hit)
        return Sums(sums, np.zeros((len(tasks.lo), 0)), hit)
