"""Loops over hashes of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int32s, UInt8s, UInt64s

_FNV_START = np.uint64(0xCBF29CE484222325)


_FNV_PRIME = np.uint64(0x100000001B3)


@compiled.entry
def text_hashes(ends: Int32s, data: UInt8s, hashes: UInt64s) -> None:
    """FNV-1a of each text, mixed."""
    for i in range(hashes.shape[0]):
        x = _FNV_START
        for at in range(ends[i], ends[i + 1]):
            x = (x ^ np.uint64(data[at])) * _FNV_PRIME
        hashes[i] = _mixed(x)


@compiled.entry
def fold(hashes: UInt64s, values: UInt64s) -> None:
    for i in range(hashes.shape[0]):
        hashes[i] = _mixed((hashes[i] ^ values[i]) + np.uint64(0x9E3779B97F4A7C15))


@compiled.part
def _mixed(x: Any) -> Any:
    """The last steps of splitmix64: every bit of x tells on every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
