"""Ids of answers: 128 bits as 32 hex digits, of the query, both documents and the returned columns, the same in every
run. Texts are digested once each; rows are mixed of digests, column by column."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from cep_core.events.array_types import UInt64s

_HEX = np.frombuffer(b"".join(f"{byte:02x}".encode() for byte in range(256)), np.uint16)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_ADDED = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))


def digests(texts: Iterable[str]) -> UInt64s:
    """(n, 2) uint64."""
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


def mixed(state: UInt64s, digest: UInt64s) -> UInt64s:
    """(rows, 2): the state after one more column; the order of columns matters."""
    lanes = [state[:, 0] ^ digest[:, 0], state[:, 1] ^ digest[:, 1]]
    for turn in range(2):
        for lane in range(2):
            value = lanes[lane] + _ADDED[lane] + (lanes[1 - lane] << np.uint64(1))
            value ^= value >> np.uint64(33)
            value *= _FACTORS[(lane + turn) % 2]
            value ^= value >> np.uint64(29)
            lanes[lane] = value
    return np.stack(lanes, axis=1)


def as_text(state: UInt64s) -> pa.Array:
    """(rows, 2) as 32 hex digits each."""
    count = len(state)
    digits = _HEX[np.ascontiguousarray(state).view(np.uint8)]
    offsets = np.arange(count + 1, dtype=np.int64) * 32
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits)).cast(pa.string())
