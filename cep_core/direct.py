"""When the fast kernels apply, and their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cep_core.automaton import Automaton
from cep_core.kernels import direct as kernel
from cep_core.kernels import sliding as sliding_kernel
from cep_core.layout import Layout
from cep_core.slices import Layers, Slice

Array = Any

LEVELS = 7
"""32^7 ranks are more than memory holds."""

SLIDING_BYTES = 1 << 29
"""Vectors of all open windows larger than this are no faster than windows one by one."""


def applies(layout: Layout, automaton: Automaton, extrema: int, linked: bool) -> bool:
    """No NOT, no extrema, any match, and every transition finds its predecessors in a store."""
    return not (linked or layout.tried or extrema or automaton.guards)


class Direct:
    """Arrays of `kernels.direct` for one automaton over one slice."""

    def __init__(self, slice_: Slice, automaton: Automaton, layout: Layout, layers: Layers) -> None:
        self.slice, self.layout, self.layers = slice_, layout, layers
        states = len(layout.variable)
        order = np.argsort(layout.variable, kind="stable")
        variables = len(slice_.events.plan.variables)
        self.states = order.astype(np.int64)
        self.states_of = np.searchsorted(layout.variable[order], np.arange(variables + 1)).astype(np.int64)
        self.begins = np.diff(layout.start_of) > 0
        self.ends = np.diff(layout.accept_of) > 0
        self.sources = np.ascontiguousarray(layout.into_t[:, 0])
        self.into = np.ascontiguousarray(layout.into_t[:, :2])
        self.linear = not layout.layers
        self.count = states
        self.store_of = np.searchsorted([s for s, _, _ in layout.stores], np.arange(states + 1)).astype(np.int64)
        if not self.linear:
            self._trees()

    def _trees(self) -> None:
        """Lay the levels of each segment's tree one after another, whole blocks each."""
        size = self.layers.seg_size
        segments = len(size)
        self.roots = np.zeros((segments, LEVELS), np.int64)
        self.height = np.ones(segments, np.int64)
        layer_of = np.repeat(np.arange(len(self.layers.segments)), self.layers.segments)
        offset = np.zeros(segments, np.int64)
        width = size.copy()
        for level in range(LEVELS):
            self.roots[:, level] = offset
            blocks = np.maximum(-(-width // kernel.WIDTH), 1)
            needed = (self.height > level) * blocks * kernel.WIDTH
            offset = offset + needed
            self.height += (self.height == level + 1) & (blocks > 1)
            width = blocks
        ends = np.cumsum(offset)
        base = ends - offset
        first = {layer: int(base[layer_of == layer][0]) for layer in dict.fromkeys(layer_of.tolist())}
        nodes_of = {layer: int(offset[layer_of == layer].sum()) for layer in first}
        start_of_layer = (
            np.array([first[int(layer)] for layer in layer_of], np.int64) if segments else np.zeros(0, np.int64)
        )
        self.roots += (base - start_of_layer)[:, None]
        rows, total, totals = [], 0, 0
        for _, layer, _ in self.layout.stores:
            rows.append((layer, totals if layer < 0 else total))
            total, totals = (total, totals + 1) if layer < 0 else (total + nodes_of.get(layer, 0), totals)
        self.store = np.array(rows, np.int64).reshape(len(rows), 2)
        self.nodes, self.totals = max(total, kernel.WIDTH), totals

    @property
    def bytes_per_number(self) -> int:
        """Work memory of a sum."""
        return 0 if self.linear else self.nodes * 16

    def run(self, lo: Array, hi: Array, widest: int, weight_variable: Array, weights: Array) -> tuple[Array, Array]:
        """Sums (T, K, 2) in tier E, and whether each task has a trend."""
        numbers = len(weight_variable)
        out = np.zeros((len(lo), numbers, 2))
        hit = np.zeros(len(lo), np.bool_)
        common = (self.slice.time, self.slice.ok, self.states_of, self.states, self.begins, self.layout.into_of)
        if self.linear and numbers == 1 and widest <= 1:
            kernel.linear_count(lo, hi, *common, self.sources, self.ends, out, hit)
            return out, hit
        if self.linear:
            kernel.linear(
                lo, hi, *common, self.sources, self.ends, weight_variable, weights, self.layout.variable, out, hit
            )
            return out, hit
        longest = int((hi - lo).max(initial=0))
        marks = min(self.nodes, longest * max(1, len(self.store)) * int(self.height.max(initial=1)))
        if numbers == 1 and widest <= 1:
            kernel.ordered_count(
                lo, hi, *common, self.into, self.ends, self.store_of, self.store,
                self.layers.rank, self.layers.limit, self.layers.seg_v, self.layers.seg_w, self.roots, self.height,
                np.zeros(self.nodes), np.zeros(self.nodes), np.zeros(self.nodes // kernel.WIDTH),
                np.zeros(marks if len(lo) > 1 else 0, np.int32),
                np.zeros((max(1, self.totals), 1)), np.zeros((max(1, self.totals), 1)), out, hit,
            )  # fmt: skip
            return out, hit
        rows = widest * self.count
        kernel.ordered(
            lo, hi, *common, self.into, self.ends, self.store_of, self.store,
            self.layers.rank, self.layers.limit, self.layers.seg_v, self.layers.seg_w, self.roots, self.height,
            weight_variable, weights, self.layout.variable,
            np.zeros((rows, numbers)), np.zeros((rows, numbers)), np.zeros(rows, np.bool_),
            self.nodes, np.zeros(self.nodes * numbers), np.zeros(self.nodes * numbers),
            np.zeros(self.nodes * numbers // kernel.WIDTH),
            np.zeros(marks if len(lo) > 1 else 0, np.int32),
            np.zeros((max(1, self.totals), numbers)), np.zeros((max(1, self.totals), numbers)),
            np.zeros(max(1, self.totals), np.bool_),
            out, hit,
        )  # fmt: skip
        return out, hit

    def lanes(self, overlap: int, numbers: int, fenwick_nodes: int) -> int:
        """Lanes for windows of which `overlap` are open at a time, a multiple of 8; 0 where windows are better computed
        one by one: they hardly overlap, or the vectors would be too large."""
        lanes = -(-(overlap + 1) // 8) * 8
        if overlap < 2 or fenwick_nodes * lanes * numbers * 8 > SLIDING_BYTES:
            return 0
        return lanes

    def slide(
        self, tasks: tuple[Array, Array, Array, Array], ends_of: Array, widest: int, lanes: int,
        store: tuple[Array, Array, int], weight_variable: Array, weights: Array,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Sums (T, K) in tier F of overlapping windows, and whether each has a trend."""
        numbers, count = len(weight_variable), len(tasks[0])
        out, hit = np.zeros((count, numbers)), np.zeros(count, np.bool_)
        store_of, store_t, nodes = store
        rows = max(1, widest * self.count)
        sliding_kernel.sliding(
            *tasks, ends_of, self.slice.time, self.slice.ok,
            self.states_of, self.states, self.begins, self.layout.into_of, self.into, self.ends, store_of, store_t,
            self.layers.rank, self.layers.limit, self.layers.seg_v, self.layers.seg_w,
            self.layers.seg_base, self.layers.seg_size, weight_variable, weights, lanes,
            np.zeros((rows, numbers * lanes)), np.zeros(rows, np.bool_),
            np.zeros((nodes, numbers * lanes)), np.zeros((1, numbers * lanes)), out, hit,
        )  # fmt: skip
        return out, hit
