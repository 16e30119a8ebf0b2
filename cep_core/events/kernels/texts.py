"""Loops over ids of events of several tables: `orders:17` from the number of the table and a whole number."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int32s, Int64s, UInt8s

MINUS, ZERO = np.uint8(ord("-")), np.uint64(ord("0"))


@compiled.entry
def ends_of(codes: Int32s, ids: Int64s, heads: Int64s, offsets: Int64s) -> None:
    """Where each text begins, and the last one ends. `heads`: where the bytes before the id begin, by table."""
    offsets[0] = 0
    for i in range(codes.shape[0]):
        rest = np.uint64(-ids[i]) if ids[i] < 0 else np.uint64(ids[i])
        size = 2 if ids[i] < 0 else 1
        while rest >= np.uint64(10):
            rest //= np.uint64(10)
            size += 1
        offsets[i + 1] = offsets[i] + size + heads[codes[i] + 1] - heads[codes[i]]


@compiled.entry
def write_ids(codes: Int32s, ids: Int64s, heads: Int64s, head: UInt8s, offsets: Int64s, data: UInt8s) -> None:
    """The bytes of the texts. `head`: those before the ids, of all tables."""
    for i in range(codes.shape[0]):
        at = offsets[i]
        for k in range(heads[codes[i]], heads[codes[i] + 1]):
            data[at] = head[k]
            at += 1
        rest = np.uint64(-ids[i]) if ids[i] < 0 else np.uint64(ids[i])
        if ids[i] < 0:
            data[at] = MINUS
        at = offsets[i + 1] - 1
        while rest >= np.uint64(10):
            digit = rest % np.uint64(10)
            data[at] = np.uint8(digit + ZERO)
            rest //= np.uint64(10)
            at -= 1
        data[at] = np.uint8(rest + ZERO)
