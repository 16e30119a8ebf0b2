"""When the fast kernels apply, and their arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s, UInt64s
from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels import counting as counting_kernel
from trendlake.cep_core.trends.kernels import lanes as lanes_kernel
from trendlake.cep_core.trends.kernels import ordered as ordered_kernel
from trendlake.cep_core.trends.kernels import sliding as sliding_kernel
from trendlake.cep_core.trends.kernels import two_stacks as two_stacks_kernel
from trendlake.cep_core.trends.kernels.arguments import Blocks, Guards, Results, Steps, Tasks, Weights
from trendlake.cep_core.trends.kernels.prefix_sums import SHIFT, WIDTH
from trendlake.cep_core.trends.run.kernel_tables import Layout
from trendlake.cep_core.trends.run.ranks import Guarded, Layers
from trendlake.cep_core.trends.run.sorted_rows import Slice
from trendlake.cep_core.trends.run.window_tasks import WIDTH as WORDS
from trendlake.cep_core.trends.run.window_tasks import Sums, doubles, number_rows, pairs

LEVELS = 8
"""16^8 ranks are more than memory holds."""

ALIGNMENT = 8
"""Nodes in a cache line: large segments begin with one."""

LANES_BYTES = 1 << 28
"""Of the nodes of patterns that share a pass, at most: so many are lanes at a time."""

SLIDING_BYTES = 1 << 29
"""Vectors of all open windows larger than this are no faster than windows one by one."""


def applies(automaton: Automaton, layout: Layout, layers: Layers) -> bool:
    """Any match is selected, and every transition finds its predecessors in a store that is no range."""
    return not (
        layout.tried or layout.halves or len(layers.ranges.floor) or any(t.gap.fails for t in automaton.transitions)
    )


@dataclass(frozen=True)
class Trees:
    """The places of the blocks of each layer's segments (see `cep_core.trends.kernels.prefix_sums`). `nodes` is each
    layer's number of nodes."""

    blocks: Blocks
    nodes: tuple[int, ...]


def trees(layers: Layers) -> Trees:
    """Place the levels of each segment one after the other. A segment of r ranks has positions 0..r."""
    segments = len(layers.fenwick.size)
    top = layers.fenwick.size.astype(np.int64)
    height = np.ones(segments, np.int64)
    levels = max(1, -(-int(top.max(initial=0)).bit_length() // SHIFT))
    roots, width = np.zeros((segments, levels), np.int64), np.zeros((segments, levels), np.int64)
    size = np.zeros(segments, np.int64)
    for level in range(levels):
        above, filled = top >= WIDTH, height == level + 1
        roots[:, level] = size
        width[filled, level] = np.where(above, WIDTH, top + 1)[filled]
        size[filled] += np.where(above, ((top >> SHIFT) + 1) * WIDTH, top + 1)[filled]
        height[filled & above] += 1
        top = top >> SHIFT
    room = np.where(height > 1, -(-size // ALIGNMENT) * ALIGNMENT, size)
    nodes, base, first = [], np.zeros(segments, np.int64), 0
    for count in layers.segments:
        mine = slice(first, first + count)
        order = np.argsort(height[mine] == 1, kind="stable")  # those that are aligned come first
        ends = np.cumsum(room[mine][order])
        base[first + order] = ends - room[mine][order]
        nodes.append(-(-int(ends[-1]) // ALIGNMENT) * ALIGNMENT if count else 0)
        first += count
    roots += base[:, None]
    return Trees(Blocks(roots, height, width), tuple(nodes))


class Direct:
    """Arrays of the fast kernels for one automaton over one slice. `guards`: (G, n) each, see `negation`."""

    def __init__(self, slice_: Slice, automaton: Automaton, layout: Layout, layers: Layers, guards: Guarded) -> None:
        self.slice, self.layout, self.layers, self.guards = slice_, layout, layers, guards
        states = len(layout.nfa.variable)
        order = np.argsort(layout.nfa.variable, kind="stable")
        variables = len(slice_.events.plan.variables)
        self.states = order.astype(np.int64)
        self.states_of = np.searchsorted(layout.nfa.variable[order], np.arange(variables + 1)).astype(np.int64)
        self.begins = np.diff(layout.nfa.start_of) > 0
        self.ends = np.diff(layout.nfa.accept_of) > 0
        self.count = states
        self.overlap = slice_.events.plan.windows.overlap
        self.free = not any(t.gap.holds for t in automaton.starts) and not any(
            option for state in automaton.states for option in state.accepts
        )
        self.store_of = np.searchsorted([store[0] for store in layout.stores], np.arange(states + 1)).astype(np.int64)
        self.trees = trees(layers)
        rows, nodes, totals = [], 0, 0
        for _, layer in layout.stores:
            rows.append((layer, totals if layer < 0 else nodes))
            if layer < 0:
                totals += 1
            else:
                nodes += self.trees.nodes[layer]
        self.store = np.array(rows, np.int64).reshape(len(rows), 2)
        self.nodes, self.totals = nodes, totals

    def bytes(self, tier: str, weights: Weights) -> int:
        """Work memory of a pass."""
        return self.nodes * 8 * (WORDS[tier] * len(weights.variable) + len(weights.extreme))

    def counting(self, widest: int, weights: Weights) -> bool:
        """Whether `cep_core.trends.kernels.counting` does it in tiers F and E."""
        return self.free and widest <= 1 and len(weights.variable) == 1 and not len(weights.extreme)

    def linear(self, widest: int, weights: Weights) -> bool:
        """Whether `kernels.counting.linear` does it, in tier E."""
        return self.counting(widest, weights) and not self.layout.layers and self.overlap < 2

    def shared(self, weights: Weights) -> bool:
        """Whether `cep_core.trends.kernels.two_stacks` does it, in tiers E and U: windows overlap, and no event asks
        for another, nor an aggregate which is a trend's first or last."""
        return self.free and not self.layout.layers and self.overlap > 1 and not weights.spans

    def run(
        self,
        tasks: Tasks,
        widest: int,
        weights: Weights,
        tier: str,
        emit: Float64s | None,
        reach: Float64s | None = None,
    ) -> Sums:
        """One pass in a tier. Tasks that tier F gives up, as a count on the way is too large for it, are done in E:
        what ends there may be little, or nothing. Where no kernel does E, D is the answer to it."""
        if tier == "E" and (emit is not None or not (self.shared(weights) or self.counting(widest, weights))):
            tier = "D"
        results = results_of(tier, len(tasks.lo), weights, emit, reach)
        if tier in ("U", "E") and emit is None and self.shared(weights):
            self._two_stacks(tasks, weights, results)
            return Sums(results.sums, results.extremes, results.hit)
        planes = _planes(tier, len(weights.variable), self.nodes)
        if tier in ("F", "E") and emit is None and self.counting(widest, weights):
            self._count(tasks, tier == "E" and self.linear(widest, weights), planes, results)
        else:
            self._sum(tasks, widest, weights, tier, planes, results)
        del planes
        return completed(results, lambda large: self.run(tasks.subset(large), widest, weights, "E", emit))

    def _two_stacks(self, tasks: Tasks, weights: Weights, results: Results) -> None:
        numbers, extrema, wide = len(weights.variable), len(weights.extreme), self.count + 1

        def work(rows: int) -> tuple[AnyArray, Float64s]:
            return np.zeros((2, rows, numbers), results.sums.dtype), np.full((rows, extrema), -np.inf)

        front, front_ext = work((self.overlap + 1) * wide)
        way, way_ext = work(wide * wide)
        two_stacks_kernel.two_stacks(
            tasks,
            self.slice.in_kernels,
            self._edges(),
            weights,
            two_stacks_kernel.Ways(front, front_ext, way, way_ext, *work(wide * wide)),
            results,
        )

    def _edges(self) -> two_stacks_kernel.Edges:
        """By variable, which running totals its events lead from and to: 0 is the beginning, q + 1 state q."""
        into_of, sources = self.layout.nfa.into_of, self.layout.nfa.into[:, c.SOURCE]
        edges = [
            (int(self.layout.nfa.variable[q]), p, q + 1)
            for q in range(self.count)
            for p in (*([0] if self.begins[q] else []), *(int(p) + 1 for p in sources[into_of[q] : into_of[q + 1]]))
        ]
        table = np.array(sorted(edges), np.int64).reshape(len(edges), 3)
        variables = len(self.slice.events.plan.variables)
        ranges = np.searchsorted(table[:, 0], np.arange(variables + 1)).astype(np.int64)
        return two_stacks_kernel.Edges(ranges, table[:, 1:].copy(), self.ends)

    def _steps(self, column: int, store_of: Int64s, store: Int64s) -> Steps:
        nfa, before = self.layout.nfa, np.ascontiguousarray(self.layout.nfa.into[:, column])
        return Steps(self.states_of, self.states, self.begins, self.ends, nfa.into_of, before, store_of, store)

    def steps(self, store_of: Int64s, store: Int64s) -> Steps:
        """The steps of events, with stores of another table than the blocks'."""
        return self._steps(c.STORE, store_of, store)

    def _count(self, tasks: Tasks, linear: bool, planes: AnyArray, results: Results) -> None:
        layers, trees = self.layers, self.trees
        out, hit, large = results.sums, results.hit, results.large
        events = self.slice.in_kernels
        steps = self._steps(c.SOURCE if linear else c.STORE, self.store_of, self.store)
        if linear:
            counting_kernel.linear(tasks, events, steps, out, hit)
            return
        ranks, blocks, total = layers.ranks, trees.blocks, np.zeros(self.totals)
        if out.ndim == 2:
            counting_kernel.plain(tasks, events, steps, ranks, blocks, total, planes[0], out, hit, large)
        else:
            both = (total, total.copy()), (planes[0, 0], planes[0, 1])
            counting_kernel.scaled(tasks, events, steps, ranks, blocks, *both, out, hit)

    def _sum(self, tasks: Tasks, widest: int, weights: Weights, tier: str, planes: AnyArray, results: Results) -> None:
        numbers, extrema = len(weights.variable), len(weights.extreme)
        rows, totals = max(1, widest * self.count), max(1, self.totals)
        bounds, _, after = self.guards
        work = ordered_kernel.Work(
            rows=number_rows(tier, rows, numbers),
            ext=np.zeros((rows, extrema)),
            total=number_rows(tier, totals, numbers),
            total_ext=np.zeros((totals, extrema)),
            tree=planes,
            tree_ext=np.full((extrema, self.nodes), -np.inf),
            at=np.zeros(LEVELS, np.int64),
        )
        ordered_kernel.ordered(
            tasks,
            self.slice.in_kernels,
            self.states_of,
            self.states,
            self.layout.nfa._replace(store_of=self.store_of, store=self.store),
            Guards(self.layout.guards, bounds, after),
            self.layers.ranks,
            self.trees.blocks,
            weights,
            work,
            results,
        )

    def lanes(self, numbers: int, fenwick_nodes: int) -> int:
        """Lanes for the windows that are open at a time, a multiple of 8; 0 where another kernel is better: they hardly
        overlap, the vectors would be too large, or there is no condition between events."""
        lanes = -(-(self.overlap + 1) // 8) * 8
        if not (self.free and self.layout.layers and self.overlap > 1):
            return 0
        return lanes if fenwick_nodes * lanes * numbers * 16 <= SLIDING_BYTES else 0

    def slide(
        self,
        tasks: Tasks,
        ends_of: Int64s,
        widest: int,
        lanes: int,
        store: tuple[Int64s, Int64s, int],
        weights: Weights,
        tier: str,
    ) -> Sums:
        """Sums, in tier F or U, of overlapping windows, and whether each has a trend."""
        store_of, store_t, nodes = store
        rows, width, layers = max(1, widest * self.count), len(weights.variable) * lanes, self.layers
        results = results_of(tier, len(tasks.lo), weights)
        sliding_kernel.sliding(
            tasks,
            ends_of,
            self.slice.in_kernels,
            self.steps(store_of, store_t),
            layers.ranks,
            layers.fenwick,
            weights,
            sliding_kernel.Lanes(
                _lanes(tier, rows, width), np.zeros(rows, np.bool_), _lanes(tier, nodes, width), _lanes(tier, 1, width)
            ),
            lanes,
            results,
        )
        return Sums(results.sums, results.extremes, results.hit)

    def in_lanes(
        self, tasks: Tasks, widest: int, masks: UInt64s, lanes: int, store: tuple[Int64s, Int64s, int], weights: Weights
    ) -> Float64s:
        """Sums (T, lanes, K) in tier F of patterns that differ in the events that variables bind: `masks` (V, n), bit l
        of each where pattern l does. For counts, of windows that do not overlap."""
        store_of, store_t, nodes = store
        numbers, layers = len(weights.variable), self.layers
        width = max(1, min(lanes, LANES_BYTES // (8 * nodes * numbers)))
        steps = self.steps(store_of, store_t)
        parts = []
        for low in range(0, lanes, width):
            count = min(width, lanes - low)
            chosen = masks if count == lanes else (masks >> np.uint64(low)) & np.uint64((1 << count) - 1)
            heights = max(1, widest * self.count), nodes, len(tasks.lo)
            vectors = lanes_kernel.Vectors(*(np.zeros((height, numbers * count)) for height in heights))
            lanes_kernel.in_lanes(
                tasks, self.slice.in_kernels, chosen, steps, layers.ranks, layers.fenwick, weights, count, vectors
            )
            parts.append(vectors.out.reshape(len(tasks.lo), numbers, count).swapaxes(1, 2))
        return np.concatenate(parts, axis=1)


def results_of(
    tier: str, count: int, weights: Weights, emit: Float64s | None = None, reach: Float64s | None = None
) -> Results:
    """Of `count` tasks without a trend yet."""
    return Results(
        sums=number_rows(tier, count, len(weights.variable)),
        extremes=np.full((count, len(weights.extreme)), -np.inf),
        hit=np.zeros(count, np.bool_),
        large=np.zeros(count, np.bool_),
        emit=np.zeros(0) if emit is None else emit,
        reach=np.zeros((0, 0)) if reach is None else reach,
    )


def completed(results: Results, again: Callable[[Bools], Sums]) -> Sums:
    """The sums of a pass; where tier F gave a task up, those that `again` gives in tier E or D."""
    out, extremes, hit, large = results.sums, results.extremes, results.hit, results.large
    if not large.any():
        return Sums(out, extremes, hit)
    more = again(large)
    scaled = np.stack([out, np.zeros_like(out)], axis=-1)
    scaled[large], out[large] = pairs(more.sums), doubles(more.sums)
    extremes[large], hit[large] = more.extremes, more.hit
    if more.sums.shape[-1] < 3 or (hit & ~large).any():
        return Sums(out, extremes, hit, scaled)
    fine = np.zeros((*out.shape, 3))
    fine[large] = more.sums
    return Sums(out, extremes, hit, scaled, fine)


def _lanes(tier: str, rows: int, width: int) -> AnyArray:
    return np.zeros((rows, width)) if tier == "F" else np.zeros((rows, 2, width), np.uint64)


def _planes(tier: str, numbers: int, nodes: int) -> AnyArray:
    """Zeros, (K, nodes) of tier F or (K, words of a number, nodes), that begin with a cache line."""
    shape = (numbers, nodes) if tier == "F" else (numbers, WORDS[tier], nodes)
    size = int(np.prod(shape))
    room = np.zeros(size + ALIGNMENT, np.uint64 if tier == "U" else np.float64)
    skip = (-room.ctypes.data // 8) % ALIGNMENT
    planes: AnyArray = room[skip : skip + size].reshape(shape)
    return planes
