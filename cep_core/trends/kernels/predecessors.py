"""Where kernel `general` finds the rows that an event goes on with, and where it puts the event's own.

Predecessors of a transition are found in one of four ways, which its plan chooses: in a store (a total, or the prefix
of an ordered segment: a Fenwick tree), by a divide of the window, by links to the one event that may follow, or by
trying pair after pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cep_core import compiled
from cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s
from cep_core.trends.kernels.arguments import Fenwick, Guards, Nfa, Ranks
from cep_core.trends.kernels.divide_and_conquer import holds
from cep_core.trends.kernels.numbers import add, clear
from cep_core.trends.kernels.pair_predicates import pair_true


class Links(NamedTuple):
    """`following` (links, n): the index that an event may be followed at, -1 for none. `link_of` (S + 1): ranges of
    `link`, a state's leading links; `lists`: links of transitions, list after list."""

    following: Int64s
    link_of: Int64s
    link: Int64s
    lists: Int64s


class Halves(NamedTuple):
    """See `divide_and_conquer.conquer`: `halves` and its work space, and `edges`, where blocks begin."""

    halves: Int64s
    pending: AnyArray
    pending_ext: Float64s
    waiting: Bools
    branch: AnyArray
    branch_ext: Float64s
    branch_stamp: Int64s
    edges: Int64s


class Work(NamedTuple):
    """`values`, `ext`: what ends with an event in a state, (events * S + 1, K in a tier) and (.., M). `node`,
    `node_ext`, `stamp`: the stores' nodes. `active` (S, events), `active_n` (S): events with a row. `head` (events),
    `link` (rows * slots): lists of rows by the event that may follow; the first link of a row is -2 where there is no
    trend."""

    values: AnyArray
    ext: Float64s
    node: AnyArray
    node_ext: Float64s
    stamp: Int64s
    active: Int64s
    active_n: Int64s
    head: Int64s
    link: Int64s


@compiled.inlined
def _add_row(work: Work, row: int, h: int) -> None:
    """Add row h to another."""
    add(work.values, row, work.values, h)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = max(work.ext[row, m], work.ext[h, m])


@compiled.inlined
def _in_bounds(nfa: Nfa, guards: Guards, time: Int64s, t: int, v: int, e: int) -> bool:
    """Whether event v lies before the bound of each guard of transition t that is to fail."""
    may = True
    for g in range(nfa.into[t, 8], nfa.into[t, 9]):
        may = may and time[v] < guards.bounds[guards.lists[g], e]
    return may


@compiled.inlined
def linked(
    nfa: Nfa, guards: Guards, links: Links, predicates: Any, time: Int64s, work: Work, slots: int, first: int,
    target: int, t: int, e: int, row: int, low: int,
) -> bool:  # fmt: skip
    """Add the predecessors that are linked to `target`; whether there are any."""
    states, into, touched = nfa.variable.shape[0], nfa.into, False
    lead = links.lists[into[t, 11]]
    entry = work.head[target - first]
    while entry >= 0:
        h = entry // slots
        v, source = h // states + first, h % states
        if source == into[t, 0] and time[v] >= low and links.link[links.link_of[source] + entry % slots, 0] == lead:
            may = True
            for g in range(into[t, 11] + 1, into[t, 12]):
                may = may and links.following[links.lists[g], v] == target
            for g in range(into[t, 13], into[t, 14]):
                may = may and links.following[links.lists[g], v] != target
            may = may and _in_bounds(nfa, guards, time, t, v, e)
            if may and pair_true(predicates, into[t, 2:6], v, e):
                touched = True
                _add_row(work, row, h)
        entry = work.link[entry]
    return touched


@compiled.inlined
def halved(
    nfa: Nfa, halves: Halves, divides: Any, work: Work, first: int, block: int, t: int, e: int, row: int
) -> bool:
    """Add the predecessors of a divide: pairs of the block that begins at `block`, and what `conquer` has put aside;
    whether there are any."""
    states, p, half, touched = nfa.variable.shape[0], nfa.into[t, 0], nfa.into[t, 10], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if v < block:
            break
        if holds(divides, halves.halves[half, 1], v, e):
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
    nfa: Nfa, guards: Guards, predicates: Any, time: Int64s, work: Work, first: int, t: int, e: int, row: int, low: int
) -> bool:
    """Add the predecessors among all earlier events from `low` on, pair by pair; whether there are any."""
    states, p, touched = nfa.variable.shape[0], nfa.into[t, 0], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if time[v] < low:
            break
        if _in_bounds(nfa, guards, time, t, v, e) and pair_true(predicates, nfa.into[t, 2:6], v, e):
            touched = True
            _add_row(work, row, (v - first) * states + p)
    return touched


@compiled.inlined
def stored(nfa: Nfa, ranks: Ranks, fenwick: Fenwick, work: Work, epoch: int, store: int, e: int, row: int) -> bool:
    """Add the prefix of a store, or its total; whether there is any."""
    layer, at, touched = nfa.store[store, 0], nfa.store[store, 1], False
    k: Any = np.int64(1)
    if layer >= 0:
        segment = ranks.seg_w[layer, e]
        if segment < 0:
            return False
        at += fenwick.base[segment]
        k = np.int64(ranks.limit[layer, e])
    while k > 0:
        x = at + k - 1
        if work.stamp[x] == epoch:
            touched = True
            add(work.values, row, work.node, x)
            for m in range(work.ext.shape[1]):
                work.ext[row, m] = max(work.ext[row, m], work.node_ext[x, m])
        k &= k - 1
    return touched


@compiled.inlined
def insert(nfa: Nfa, ranks: Ranks, fenwick: Fenwick, work: Work, epoch: int, v: int, q: int, row: int) -> None:
    """Add a row of event v to the stores of its state."""
    for store in range(nfa.store_of[q], nfa.store_of[q + 1]):
        layer, at = nfa.store[store, 0], nfa.store[store, 1]
        k: Any = np.int64(1)
        size: Any = np.int64(1)
        if layer >= 0:
            segment = ranks.seg_v[layer, v]
            if segment < 0:
                continue
            at += fenwick.base[segment]
            size = fenwick.size[segment]
            k = np.int64(ranks.rank[layer, v]) + 1
        while k <= size:
            x = at + k - 1
            if work.stamp[x] != epoch:
                work.stamp[x] = epoch
                clear(work.node, x)
                for m in range(work.ext.shape[1]):
                    work.node_ext[x, m] = -np.inf
            add(work.node, x, work.values, row)
            for m in range(work.ext.shape[1]):
                work.node_ext[x, m] = max(work.node_ext[x, m], work.ext[row, m])
            k += k & -k


@compiled.inlined
def follow(links: Links, work: Work, slots: int, first: int, last: int, e: int, q: int, row: int) -> None:
    """Put a row of event e into the lists of the events that may follow it."""
    for x in range(links.link_of[q], links.link_of[q + 1]):
        to = links.following[links.link[x, 0], e]
        if first <= to < last:
            entry = row * slots + x - links.link_of[q]
            work.link[entry] = work.head[to - first]
            work.head[to - first] = entry
