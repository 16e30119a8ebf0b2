"""Heights of what is below one another: near to what each is wished to have, and never closer than it may be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def settled(wishes: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """The heights, in pixels, with the least squares from `wishes` by `weights`, in this order. `distances`: how far
    each but the first is at least below the one before. Neighbours that would come closer share one offset (PAVA)."""
    shifts = list(accumulate(distances, initial=0.0))
    pools: list[tuple[float, float, int]] = []
    for wish, shift, weight in zip(wishes, shifts, weights, strict=False):
        value, count = wish - shift, 1
        while pools and pools[-1][0] > value:
            other, heavy, many = pools.pop()
            value = (value * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + many
        pools.append((value, weight, count))
    offsets = [value for value, _, count in pools for _ in range(count)]
    return [value + shift for value, shift in zip(offsets, shifts, strict=False)]
