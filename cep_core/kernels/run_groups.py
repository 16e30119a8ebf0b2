"""Groups of runs: rows of `meta` and `registers`, in a list for each state and in one hash table.

A row's columns: state, two that the kind uses (kind automaton: firsts, a set, and the event since when it is what it
is; kind matches: a link of the buffer, and the newest start behind it), the next of its list, the next of its hash
chain, its hash (-1: it is in no chain), and the age of its list: groups of another age are not met.
"""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.register_programs import same

STATE, FIRSTS, SINCE, NEXT, CHAIN, BUCKET, AGE = range(7)


@compiled.part
def lookup(meta: Int64s, registers: Int64s, buckets: Int64s, h: int, state: int, age: int, goal: Int64s, j: int) -> int:
    """The group of this state, age and register, or -1."""
    x = buckets[h & (buckets.shape[0] - 1)]
    while x >= 0 and not (meta[x, STATE] == state and meta[x, AGE] == age and same(registers, x, goal, j)):
        x = meta[x, CHAIN]
    return int(x)


@compiled.part
def link(meta: Int64s, buckets: Int64s, g: int, h: int) -> None:
    """Put a group into the hash chain of its hash."""
    b = h & (buckets.shape[0] - 1)
    meta[g, BUCKET], meta[g, CHAIN] = h, buckets[b]
    buckets[b] = g


@compiled.part
def unlink(meta: Int64s, buckets: Int64s, g: int) -> None:
    """Take a group out of its hash chain, if it is in one."""
    if meta[g, BUCKET] < 0:
        return
    b = meta[g, BUCKET] & (buckets.shape[0] - 1)
    if buckets[b] == g:
        buckets[b] = meta[g, CHAIN]
        return
    before = buckets[b]
    while meta[before, CHAIN] != g:
        before = meta[before, CHAIN]
    meta[before, CHAIN] = meta[g, CHAIN]


@compiled.entry
def rehash(meta: Int64s, buckets: Int64s, lists: Int64s) -> None:
    """Fill empty `buckets` with the groups of `lists` (lists, states)."""
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                if meta[g, BUCKET] >= 0:
                    link(meta, buckets, g, meta[g, BUCKET])
                g = meta[g, NEXT]
