"""Where kernel `general` finds the rows that an event goes on with, and where it puts the event's own.

Predecessors of a transition are found in one of four ways, which its plan chooses: in a store (a total; the prefix of
an ordered segment: a Fenwick tree; a range of it: a segment tree), by a divide of the window, by links to the one event
that may follow, or by trying pair after pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import (
    Divides,
    Fenwick,
    Guards,
    Halves,
    Links,
    Nfa,
    Ranges,
    Ranks,
    Work,
)
from trendlake.cep_core.trends.kernels.divide_and_conquer import holds
from trendlake.cep_core.trends.kernels.numbers import add
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates, pair_true
from trendlake.cep_core.trends.kernels.ranges import meet, ranged


@compiled.inlined
def _add_row(work: Work, row: int, h: int) -> None:
    """Add row h to another."""
    add(work.values, row, work.values, h)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = max(work.ext[row, m], work.ext[h, m])


@compiled.inlined
def _in_bounds(nfa: Nfa, guards: Guards, time: Int64s, t: int, v: int, e: int) -> bool:
    """Whether event v is before the bound of each guard of transition t that is to fail."""
    may = True
    for g in range(nfa.into[t, c.FAILS], nfa.into[t, c.FAILS_END]):
        may = may and time[v] < guards.bounds[guards.lists[g], e]
    return may


@compiled.inlined
def linked(
    nfa: Nfa,
    guards: Guards,
    links: Links,
    predicates: Predicates,
    time: Int64s,
    work: Work,
    first: int,
    target: int,
    t: int,
    e: int,
    row: int,
    low: int,
) -> bool:
    """Add the predecessors that are linked to `target`; whether there are any."""
    states, slots, into, touched = nfa.variable.shape[0], work.link.shape[1], nfa.into, False
    lead = links.lists[into[t, c.LINKS_TO]]
    entry = work.head[target - first]
    while entry >= 0:
        h = entry // slots
        v, source = h // states + first, h % states
        if source == into[t, c.SOURCE] and time[v] >= low and links.link[links.link_of[source] + entry % slots] == lead:
            may = True
            for g in range(into[t, c.LINKS_TO] + 1, into[t, c.LINKS_TO_END]):
                may = may and links.following[links.lists[g], v] == target
            for g in range(into[t, c.LINKS_PAST], into[t, c.LINKS_PAST_END]):
                may = may and links.following[links.lists[g], v] != target
            may = may and _in_bounds(nfa, guards, time, t, v, e)
            if may and pair_true(predicates, nfa.conditions[t], v, e):
                touched = True
                _add_row(work, row, h)
        entry = work.link[h, entry % slots]
    return touched


@compiled.inlined
def halved(
    nfa: Nfa, halves: Halves, divides: Divides, work: Work, first: int, block: int, t: int, e: int, row: int
) -> bool:
    """Add the predecessors of a divide: pairs of the block that begins at `block`, and what `conquer` has put aside;
    whether there are any."""
    states, p, half, touched = nfa.variable.shape[0], nfa.into[t, c.SOURCE], nfa.into[t, c.HALF], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if v < block:
            break
        if holds(divides, halves.halves[half, c.DIVIDE], v, e):
            touched = True
            _add_row(work, row, (v - first) * states + p)
    x = (e - first) * halves.halves.shape[0] + half
    if halves.waiting[x]:
        touched = True
        add(work.values, row, halves.pending, x)
        for m in range(work.ext.shape[1]):
            work.ext[row, m] = max(work.ext[row, m], halves.pending_ext[x, m])
    return touched


@compiled.inlined
def tried(
    nfa: Nfa,
    guards: Guards,
    predicates: Predicates,
    time: Int64s,
    work: Work,
    first: int,
    t: int,
    e: int,
    row: int,
    low: int,
) -> bool:
    """Add the predecessors among all earlier events from `low` on, pair by pair; whether there are any."""
    states, p, touched = nfa.variable.shape[0], nfa.into[t, c.SOURCE], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if time[v] < low:
            break
        if _in_bounds(nfa, guards, time, t, v, e) and pair_true(predicates, nfa.conditions[t], v, e):
            touched = True
            _add_row(work, row, (v - first) * states + p)
    return touched


@compiled.inlined
def stored(
    nfa: Nfa, ranks: Ranks, ranges: Ranges, fenwick: Fenwick, work: Work, epoch: int, store: int, e: int, row: int
) -> bool:
    """Add the prefix or range of a store, or its total; whether there is any."""
    layer, at, touched = nfa.store[store, c.LAYER], nfa.store[store, c.NODE], False
    k: Any = np.int64(1)
    if layer >= 0:
        segment = ranks.seg_w[layer, e]
        if segment < 0:
            return False
        if ranges.row[layer] >= 0:
            return ranged(ranks, ranges, fenwick, work, epoch, layer, at, segment, e, row, False)
        at += fenwick.base[segment]
        k = np.int64(ranks.limit[layer, e])
    while k > 0:
        x = at + k - 1
        touched |= meet(work, x, row, False, epoch)
        k &= k - 1
    return touched


@compiled.inlined
def insert(
    nfa: Nfa, ranks: Ranks, ranges: Ranges, fenwick: Fenwick, work: Work, epoch: int, v: int, q: int, row: int
) -> None:
    """Add a row of event v to the stores of its state."""
    for store in range(nfa.store_of[q], nfa.store_of[q + 1]):
        layer, at = nfa.store[store, c.LAYER], nfa.store[store, c.NODE]
        k: Any = np.int64(1)
        size: Any = np.int64(1)
        if layer >= 0:
            segment = ranks.seg_v[layer, v]
            if segment < 0:
                continue
            if ranges.row[layer] >= 0:
                ranged(ranks, ranges, fenwick, work, epoch, layer, at, segment, v, row, True)
                continue
            at += fenwick.base[segment]
            size = fenwick.size[segment]
            k = np.int64(ranks.rank[layer, v]) + 1
        while k <= size:
            meet(work, at + k - 1, row, True, epoch)
            k += k & -k


@compiled.inlined
def follow(links: Links, work: Work, first: int, last: int, e: int, q: int, row: int) -> None:
    """Put a row of event e into the lists of the events that may follow it."""
    for x in range(links.link_of[q], links.link_of[q + 1]):
        to = links.following[links.link[x], e]
        if first <= to < last:
            slot = x - links.link_of[q]
            work.link[row, slot] = work.head[to - first]
            work.head[to - first] = row * work.link.shape[1] + slot
