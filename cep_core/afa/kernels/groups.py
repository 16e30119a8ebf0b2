"""Groups of runs: rows of `meta` and `registers`, in a list for each state and in one hash table.

A row's columns: state, firsts (a set, see `firsts`), the event since when it is what it is, the next of its list, the
next of its hash chain, its hash, and the age of its state's list: groups of an earlier age are not met any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.afa.kernels.arcs import same
from cep_core.afa.kernels.firsts import EMPTY, compact

Array = Any

STATE, FIRSTS, SINCE, NEXT, CHAIN, BUCKET, AGE = range(7)


@njit(cache=True, nogil=True)
def hashed(state: int, registers: Array, i: int) -> int:
    """A hash of state and register."""
    h = np.uint64(state + 1) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(registers.shape[1]):
        h = (h ^ np.uint64(registers[i, k])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(1))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def lookup(meta: Array, registers: Array, buckets: Array, h: int, state: int, age: int, goal: Array, j: int) -> int:
    """The group of this state, age and register, or -1."""
    x = buckets[h & (buckets.shape[0] - 1)]
    while x >= 0 and not (meta[x, STATE] == state and meta[x, AGE] == age and same(registers, x, goal, j)):
        x = meta[x, CHAIN]
    return int(x)


@njit(cache=True, nogil=True)
def unlink(meta: Array, buckets: Array, g: int) -> None:
    """Take a group out of its hash chain."""
    b = meta[g, BUCKET] & (buckets.shape[0] - 1)
    if buckets[b] == g:
        buckets[b] = meta[g, CHAIN]
        return
    before = buckets[b]
    while meta[before, CHAIN] != g:
        before = meta[before, CHAIN]
    meta[before, CHAIN] = meta[g, CHAIN]


@njit(cache=True, nogil=True)
def rehash(meta: Array, buckets: Array, lists: Array) -> None:
    """Fill empty `buckets` with the groups of `lists` (lists, states)."""
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                b = meta[g, BUCKET] & (buckets.shape[0] - 1)
                meta[g, CHAIN] = buckets[b]
                buckets[b] = g
                g = meta[g, NEXT]


@njit(cache=True, nogil=True)
def tidy(nodes: Array, unions: int, meta: Array, lists: Array, groups: int, low: int) -> int:
    """Forget unions that no group needs; how many stay."""
    roots = np.full(groups, EMPTY, np.int64)
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                roots[g] = meta[g, FIRSTS]
                g = meta[g, NEXT]
    kept = compact(nodes, unions, roots, low)
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                meta[g, FIRSTS] = roots[g]
                g = meta[g, NEXT]
    return kept
