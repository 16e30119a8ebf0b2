"""Ids of answers: 128 bits as 32 hex digits, of the query, both documents and the returned columns, the same in every
run. Texts are digested once each; rows are mixed of digests, column by column."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s, UInt64s
from trendlake.cep_core.xml_join.kernels.ids import write_ids


def digests(texts: Iterable[str]) -> UInt64s:
    """(n, 2) uint64, by BLAKE2b, the bytes of a digest in the order of the machine."""
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


def ids_of(state: UInt64s, take: Int64s, queries: UInt64s, query: Int64s) -> pa.Array:
    """The ids of rows, as text: of the answer `take[i]`, by its digests so far, and the query `query[i]`."""
    digits = np.empty(32 * len(take), np.uint8)
    write_ids(state, take, queries, query, digits)
    offsets = np.arange(len(take) + 1, dtype=np.int64) * 32
    texts = pa.LargeStringArray.from_buffers(len(take), pa.py_buffer(offsets), pa.py_buffer(digits))
    return texts.cast(pa.string())
