"""Telling the processor what will be read soon."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Ranks
from trendlake.cep_core.trends.kernels.prefix_sums import SHIFT, WIDTH

LINE = 8
"""Numbers in a cache line."""


def _prefetch(context: Any, array: Any, index: Any) -> Any:
    """Bring the cache line of array[index] (one dimension, in order) near, to be written. No effect on results."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0"
        )
        builder.call(function, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.none(array, index), generate


prefetch: Any = intrinsic(_prefetch)


@compiled.part
def fetch_chain(
    seg_w: int,
    limit: int,
    seg_v: int,
    rank: int,
    roots: Int64s,
    height: Int64s,
    first_plane: Float64s,
    second_plane: Float64s,
) -> None:
    """Ask for what an event will read and write at the two lowest levels of a store whose nodes are two planes."""
    for level in range(2):
        if seg_w >= 0 and level < height[seg_w]:
            at = roots[seg_w, level] + (np.int64(limit) >> SHIFT * level)
            prefetch(first_plane, at)
            prefetch(second_plane, at)
        if seg_v >= 0 and level < height[seg_v]:
            first = roots[seg_v, level] + (np.int64(rank) >> SHIFT * (level + 1) << SHIFT)
            for line in range(WIDTH // LINE):
                prefetch(first_plane, first + line * LINE)
                prefetch(second_plane, first + line * LINE)


@compiled.part
def fetch(store: Int64s, x: int, ranks: Ranks, roots: Int64s, plane: Float64s) -> None:
    """Ask for what event x will read and write at the lowest level, where nearly all of a plane is."""
    rank, limit, seg_v, seg_w = borrowed(ranks)
    for s in range(store.shape[0]):
        layer = store[s, c.LAYER]
        if layer < 0:
            continue
        if seg_w[layer, x] >= 0:
            prefetch(plane, store[s, c.NODE] + roots[seg_w[layer, x], 0] + np.int64(limit[layer, x]))
        if seg_v[layer, x] >= 0:
            first = store[s, c.NODE] + roots[seg_v[layer, x], 0] + (np.int64(rank[layer, x]) >> SHIFT << SHIFT)
            for line in range(WIDTH // LINE):
                prefetch(plane, first + line * LINE)
