"""Columns that every stream has, made without a loop over its events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TIME = pa.timestamp("us", tz="UTC")


def event_ids(prefix: str, count: int) -> pa.Array:
    """`prefix` and a number from 0 in nine digits: in the order of the alphabet as in that of the stream."""
    numbers = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(prefix, numbers, "")


def event_times(seconds: NDArray[np.float64], start_us: int) -> pa.Array:
    """Seconds from the start as times of whole seconds, as the paper's time stamps are. Many events share one."""
    whole = np.floor(seconds).astype(np.int64) * 1_000_000 + start_us
    return pa.array(whole).cast(pa.timestamp("us")).cast(TIME)


def named(names: Sequence[str], codes: NDArray[np.integer]) -> pa.Array:
    """The name of each code."""
    return pa.array(names, pa.string()).take(pa.array(codes))


def arrivals(chance: np.random.Generator, events: int, rate: float) -> NDArray[np.float64]:
    """Ascending seconds of a Poisson process of `rate` events a second, given that `events` came in `events / rate`."""
    return np.sort(chance.random(events)) * (events / rate)


def run_starts(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first counts."""
    first = np.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    return first
