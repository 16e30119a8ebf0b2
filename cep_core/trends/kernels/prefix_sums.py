"""Prefix sums over ranks that grow: the store behind an ordered condition.

Ranks are kept in blocks; position x of level 0 holds the sum of the ranks *before* x in its block, and a position of
each level above does the same for the blocks below it. So the sum of the ranks before x is one number a level,
`tree0[x] + tree1[x >> 4] + tree2[x >> 8] + ...`, and adding to a rank adds to the rest of one block of 16 positions a
level, in vector registers: two cache lines, four with exponents. Against a Fenwick tree: a quarter of the levels, and
no number is read that was just written in another width.

Exact, as every rank before x is counted in one level only: the one where its block and x's first meet.

A segment's levels are stored one after the other; `roots[segment, level]` is where each begins, `width[segment, level]`
how wide its blocks are: the top level is one block as wide as it needs, so that a hash's total takes two positions. A
tree holds K numbers in planes: (K, nodes) of tier F, (K, 2, nodes) of tier U, (K, 3, nodes) of tier D. Extrema are kept
the same way, with the largest value for the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Blocks, Ranks
from trendlake.cep_core.trends.kernels.numbers import is_float
from trendlake.cep_core.trends.kernels.scaled import STEP_DOWN, d_add

SHIFT = 4
WIDTH = 1 << SHIFT


def pull(rows: AnyArray, row: int, k: int, tree: AnyArray, at: Int64s, levels: int) -> None:
    """rows[row][k] += the sum of the positions at[:levels] of plane k."""


def push(tree: AnyArray, k: int, first: int, index: int, width: int, rows: AnyArray, row: int) -> None:
    """Add rows[row][k] to the positions after `index` of the block of `width` that begins at `first`."""


@overload(pull)
def _pull(rows: AnyArray, row: int, k: int, tree: AnyArray, at: Int64s, levels: int) -> Callable[..., None]:
    if tree.ndim == 2:

        def flat(rows: AnyArray, row: int, k: int, tree: AnyArray, at: Int64s, levels: int) -> None:
            total = rows[row, k]
            for level in range(levels):
                total += tree[k, at[level]]
            rows[row, k] = total

        return flat
    if is_float(tree):

        def scaled(rows: AnyArray, row: int, k: int, tree: AnyArray, at: Int64s, levels: int) -> None:
            top, low, e = rows[row, k, 0], rows[row, k, 1], rows[row, k, 2]
            for level in range(levels):
                x = at[level]
                top, low, e = d_add(top, low, e, tree[k, 0, x], tree[k, 1, x], tree[k, 2, x])
            rows[row, k, 0], rows[row, k, 1], rows[row, k, 2] = top, low, e

        return scaled

    def wide(rows: AnyArray, row: int, k: int, tree: AnyArray, at: Int64s, levels: int) -> None:
        low, high = rows[row, k, 0], rows[row, k, 1]
        for level in range(levels):
            x = at[level]
            low += tree[k, 0, x]
            high += tree[k, 1, x] + (np.uint64(1) if low < tree[k, 0, x] else np.uint64(0))
        rows[row, k, 0], rows[row, k, 1] = low, high

    return wide


@overload(push)
def _push(tree: AnyArray, k: int, first: int, index: int, width: int, rows: AnyArray, row: int) -> Callable[..., None]:
    if tree.ndim == 2:

        def flat(tree: AnyArray, k: int, first: int, index: int, width: int, rows: AnyArray, row: int) -> None:
            block = tree[k, first : first + width]
            value = rows[row, k]
            for z in range(width):
                block[z] += value if z > index else 0.0

        return flat
    if is_float(tree):

        def scaled(tree: AnyArray, k: int, first: int, index: int, width: int, rows: AnyArray, row: int) -> None:
            top, low, e = rows[row, k, 0], rows[row, k, 1], rows[row, k, 2]
            for x in range(first + index + 1, first + width):
                tree[k, 0, x], tree[k, 1, x], tree[k, 2, x] = d_add(
                    tree[k, 0, x], tree[k, 1, x], tree[k, 2, x], top, low, e
                )

        return scaled

    def wide(tree: AnyArray, k: int, first: int, index: int, width: int, rows: AnyArray, row: int) -> None:
        low, high = rows[row, k, 0], rows[row, k, 1]
        lows, highs = tree[k, 0, first : first + width], tree[k, 1, first : first + width]
        for z in range(index + 1, width):
            total = lows[z] + low
            highs[z] += high + (np.uint64(1) if total < low else np.uint64(0))
            lows[z] = total

    return wide


@compiled.part
def raise_block(ms: Float64s, es: Float64s, index: int, m: float, e: float) -> None:
    """Add (m, e) of tier E to the positions after `index`, without a branch: eight at a time in a vector register.

    Mantissas are not brought back into their range: they grow by a factor of no more than the number of rows, 2^600 is
    far, and whoever reads them does it."""
    for z in range(ms.shape[0]):
        e2 = e if z > index else 0.0
        m2 = m if z > index else 0.0
        m0, e0 = ms[z], es[z]
        keep = 1.0 if e0 >= e2 else (STEP_DOWN if e0 + 1.0 == e2 else 0.0)
        take = 1.0 if e2 >= e0 else (STEP_DOWN if e2 + 1.0 == e0 else 0.0)
        ms[z] = m0 * keep + m2 * take
        es[z] = e0 if e0 >= e2 else e2


@compiled.part
def empty(store: Int64s, first: int, last: int, ranks: Ranks, blocks: Blocks, planes: AnyArray, nothing: float) -> None:
    """Set the blocks of a store (a row of `Nfa.store`) into which none but the events [first, last) were put to
    `nothing`, in each of `planes` (..., nodes)."""
    rank, _, seg_v, _ = borrowed(ranks)
    roots, height, width = borrowed(blocks)
    layer = store[c.LAYER]
    for x in range(first, last):
        segment = seg_v[layer, x]
        if segment < 0:
            continue
        place: Any = np.int64(rank[layer, x])
        levels = height[segment]
        for level in range(levels):
            wide = width[segment, level]
            index = place if level + 1 == levels else place & (wide - 1)
            base = store[c.NODE] + roots[segment, level] + place - index
            planes[..., base : base + wide] = nothing
            place >>= SHIFT
