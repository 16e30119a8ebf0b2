"""Match ids: 32 hex digits from the ids of the events and their parts, the same in every run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int32s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.matches.kernels import match_ids as k


class Digests:
    """A digest of the id of each of `length` events, computed when a run that the event is in is first read: most
    events are in none. `ids`: the ids of events by their numbers."""

    def __init__(self, length: int, ids: Callable[[Int64s], pa.Array]) -> None:
        self.ids = ids
        self.values = np.zeros((length, k.LANES), np.uint64)
        self.has_digest = np.zeros(length, np.bool_)

    def of(self, events: Int32s | Int64s) -> UInt64s:
        """(length, LANES): by event, of `events` at least."""
        new = np.asarray(events[~self.has_digest[events]], np.int64)
        if len(new):
            self.values[new] = digests_of(self.ids(new))
            self.has_digest[new] = True
        return self.values


def digests_of(array: pa.Array) -> UInt64s:
    """(n, LANES) uint64: a digest of each event's id, whatever the column's width: equal ids have equal ones."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    digests = np.empty((len(array), k.LANES), np.uint64)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        k.of_numbers(numbers(array.cast(pa.int64())), digests)
        return digests
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        array = pa.array([str(one) for one in array.to_pylist()], pa.large_string())
    texts = array.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else [0]
    k.of_texts(np.array(bounds, np.int64), np.frombuffer(data or b"", np.uint8), digests)
    return digests


def as_text(names: UInt64s) -> pa.Array:
    """Names (M, LANES) as strings."""
    digits = np.empty((len(names), k.HEX), np.uint8)
    k.written(names, digits)
    offsets = np.arange(len(names) + 1, dtype=np.int64) * k.HEX
    return pa.LargeStringArray.from_buffers(len(names), pa.py_buffer(offsets), pa.py_buffer(digits)).cast(pa.string())
