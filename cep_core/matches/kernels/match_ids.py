"""Names of matches: 128 bits from the set of (event, part) of each, whatever order it is read in.

A part's events are in total order, so that a match is a set of (event, part), and its name is the sum modulo 2^64, in
two lanes, of a digest of each member. Sums of what behaves like random numbers: two matches share a name by chance
only, 2^-128 a pair. A sum of a path is the sum of its beginning and one number more, so that matches that share
events share the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Int32s, Int64s, UInt8s, UInt64s

LANES = 2
HEX = 32
"""Digits of a name."""


@compiled.part
def mixed(z: Any) -> Any:
    """SplitMix64's finaliser (Steele et al. 2014), a bijection of 64 bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled.part
def salted(digest: Any, part: int) -> Any:
    """The number that an event adds to the name of a match as one of part `part`."""
    return mixed(digest + np.uint64(part + 1) * np.uint64(0xD1342543DE82EF95))


@compiled.entry
def of_numbers(values: AnyArray, digests: UInt64s) -> None:
    """digests (n, LANES) uint64 of int64 values."""
    for i in range(values.shape[0]):
        z = np.uint64(values[i])
        digests[i, 0] = mixed(mixed(z ^ np.uint64(0x9E3779B97F4A7C15)) + np.uint64(1))
        digests[i, 1] = mixed(mixed(z ^ np.uint64(0xC2B2AE3D27D4EB4F)) + np.uint64(2))


@compiled.entry
def of_texts(offsets: Int32s, data: UInt8s, digests: UInt64s) -> None:
    """digests of texts: `data[offsets[i] : offsets[i + 1]]`, bytes."""
    for i in range(offsets.shape[0] - 1):
        low, high = offsets[i], offsets[i + 1]
        a, b = np.uint64(high - low), np.uint64(high - low) ^ np.uint64(0x9E3779B97F4A7C15)
        at = low
        while at < high:
            word = np.uint64(0)
            for k in range(min(8, high - at)):
                word |= np.uint64(data[at + k]) << np.uint64(8 * k)
            a = mixed(a ^ word) + np.uint64(0xC2B2AE3D27D4EB4F)
            b = mixed(b + word) ^ np.uint64(0x165667B19E3779F9)
            at += 8
        digests[i, 0], digests[i, 1] = mixed(a), mixed(b)


@compiled.entry
def names(digests: UInt64s, events: Int32s, lengths: Int64s, ids: UInt64s) -> None:
    """ids[m] (LANES uint64) of each match, from its events, part by part."""
    step = 0
    for m in range(lengths.shape[0]):
        ids[m, 0], ids[m, 1] = np.uint64(0), np.uint64(0)
        for k in range(lengths.shape[1]):
            for _ in range(lengths[m, k]):
                for lane in range(LANES):
                    ids[m, lane] += salted(digests[events[step], lane], k)
                step += 1


@compiled.entry
def written(ids: UInt64s, digits: UInt8s) -> None:
    """digits[m] (HEX bytes): the name in hexadecimal."""
    for m in range(ids.shape[0]):
        for lane in range(LANES):
            word = ids[m, lane]
            for x in range(15, -1, -1):
                digit = word & np.uint64(15)
                digits[m, 16 * lane + x] = digit + np.uint64(48 if digit < np.uint64(10) else 87)
                word >>= np.uint64(4)
