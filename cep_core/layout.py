"""An automaton as the flat arrays the kernel reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cep_core.automaton import Automaton
from cep_core.pairs import Method
from cep_core.plan import Plan

Array = Any


@dataclass(frozen=True)
class Layout:
    """See `kernels.trends.run` for the arrays. `layers` are the (V, W) pairs kept as Fenwick trees, by layer number;
    `tried` the (V, W) whose conditions are tried pair by pair, in the order of their comparisons and programs."""

    variable: Array
    start_of: Array
    start_t: Array
    into_of: Array
    into_t: Array
    accept_of: Array
    accept_t: Array
    guards: Array
    stores: tuple[tuple[int, int, tuple[int, ...]], ...]
    """(source state, layer or -1, guards that bound it), by store number."""
    store_guards: tuple[tuple[int, int], ...]
    """Where in `guards` those of each store stand."""
    layers: tuple[tuple[str, str], ...]
    tried: tuple[tuple[str, str], ...]
    keep: bool


class _Guards:
    """Guard lists, laid end to end."""

    def __init__(self) -> None:
        self.flat: list[int] = []

    def add(self, guards: Sequence[int]) -> tuple[int, int]:
        start = len(self.flat)
        self.flat.extend(guards)
        return start, len(self.flat)


def _ranges(rows_by_state: list[list[tuple[int, ...]]], width: int) -> tuple[Array, Array]:
    offsets = np.zeros(len(rows_by_state) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum([len(rows) for rows in rows_by_state])
    flat = [row for rows in rows_by_state for row in rows]
    return offsets, np.array(flat, dtype=np.int64).reshape(len(flat), width)


def _stores(
    plan: Plan, automaton: Automaton, layers: dict[tuple[str, str], int]
) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """What each store holds, ordered by source state; numbers the layers on the way. Transitions from one state under
    the same conditions and NOTs share a store."""
    found: dict[tuple[int, int, tuple[int, ...]], None] = {}
    for transition in automaton.inner:
        if transition.source is None or transition.gap.fails:
            continue
        names = (automaton.states[transition.source].variable, automaton.states[transition.target].variable)
        method = plan.pair(*names).method
        if method is not Method.SCAN:
            layer = -1 if method is Method.RUNNING else layers.setdefault(names, len(layers))
            found[(transition.source, layer, transition.gap.holds)] = None
    return tuple(sorted(found))


def layout(plan: Plan, automaton: Automaton, linked: bool, follows: Sequence[tuple[str, str]] = ()) -> Layout:
    """Arrays for `automaton`. `linked`: predecessors come by links (selections other than any match), not from stores;
    `follows`: (V, W) whose conditions are tried pair by pair in any case."""
    states = len(automaton.states)
    bit = {variable: b for b, variable in enumerate(plan.variables)}
    guards = _Guards()
    start: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    into: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    layers: dict[tuple[str, str], int] = {}
    stores = _stores(plan, automaton, layers) if not linked else ()
    tried: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    comparisons = programs = 0
    keep = linked

    def attempt(names: tuple[str, str]) -> tuple[int, int, int, int]:
        nonlocal comparisons, programs
        if names not in tried:
            pair = plan.pair(*names)
            first, start = comparisons, programs
            comparisons, programs = comparisons + len(pair.splits), programs + len(pair.mixed)
            tried[names] = (first, comparisons, start, programs)
        return tried[names]

    for names in follows:
        attempt(names)
    for transition in automaton.starts:
        start[transition.target].append((*guards.add(transition.gap.holds), *guards.add(transition.gap.fails)))
    for transition in automaton.inner:
        source = transition.source
        if source is None:
            continue
        names = (automaton.states[source].variable, automaton.states[transition.target].variable)
        pair = plan.pair(*names)
        store, conditions = -1, (0, 0, 0, 0)
        if linked or pair.method is Method.SCAN or transition.gap.fails:
            keep = True
            conditions = attempt(names)
        else:
            keep = keep or bool(transition.gap.holds)
            store = stores.index((source, layers.get(names, -1), transition.gap.holds))
        into[transition.target].append(
            (source, store, *conditions, *guards.add(transition.gap.holds), *guards.add(transition.gap.fails))
        )
    accept = [[guards.add(option) for option in state.accepts] for state in automaton.states]
    start_of, start_t = _ranges(start, 4)
    store_guards = tuple(guards.add(holds) for _, _, holds in stores)
    into_of, into_t = _ranges(into, 10)
    accept_of, accept_t = _ranges([list(rows) for rows in accept], 2)
    return Layout(
        variable=np.array([bit[state.variable] for state in automaton.states], dtype=np.int64),
        start_of=start_of,
        start_t=start_t,
        into_of=into_of,
        into_t=into_t,
        accept_of=accept_of,
        accept_t=accept_t,
        guards=np.array(guards.flat or [0], dtype=np.int64),
        stores=stores,
        store_guards=store_guards,
        layers=tuple(layers),
        tried=tuple(tried),
        keep=keep,
    )


def store_table(layout: Layout, nodes_of_layer: Sequence[int]) -> tuple[Array, Array, int]:
    """Stores by source state as the kernel reads them (layer, first node), and how many nodes they need in all."""
    rows: list[list[tuple[int, ...]]] = [[] for _ in layout.variable]
    total = 0
    for source, layer, _ in layout.stores:
        rows[source].append((layer, total))
        total += 1 if layer < 0 else nodes_of_layer[layer]
    return *_ranges(rows, 2), max(total, 1)
