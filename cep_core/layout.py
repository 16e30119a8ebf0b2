"""An automaton as the flat arrays the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cep_core.automaton import Automaton, Cube
from cep_core.pairs import Method
from cep_core.plan import Plan

Array = Any


@dataclass(frozen=True)
class Layer:
    """The conditions of an adjacent (V, W), those that NOTs between make included: `resets` are guards of single
    events, equalities; `bounds` are guards of several, together one inequality on time (see `guards`)."""

    earlier: str
    later: str
    resets: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()

    def method(self, plan: Plan) -> Method:
        return plan.pair(self.earlier, self.later).method_with(len(self.resets), bool(self.bounds))


def layer_of(plan: Plan, earlier: str, later: str, gap: Cube) -> Layer:
    """The conditions on a transition."""
    several = tuple(g for g in gap.holds if plan.guards[g].inner)
    return Layer(earlier, later, tuple(g for g in gap.holds if g not in several), several)


@dataclass(frozen=True)
class Layout:
    """See `kernels.trends.run` for the arrays. `layers` are those with at most one inequality, by number; `divides`
    those with two; `tried` the (V, W) whose conditions are tried pair by pair, in the order of their comparisons and
    programs."""

    variable: Array
    start_of: Array
    start_t: Array
    into_of: Array
    into_t: Array
    accept_of: Array
    accept_t: Array
    guards: Array
    stores: tuple[tuple[int, int], ...]
    """(source state, layer or -1), by store number."""
    layers: tuple[Layer, ...]
    halves: tuple[tuple[int, int], ...]
    """(source state, divide), by the number a transition knows it by."""
    divides: tuple[Layer, ...]
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


def layout(plan: Plan, automaton: Automaton, linked: bool, follows: Sequence[tuple[str, str]] = ()) -> Layout:
    """Arrays for `automaton`. `linked`: predecessors come by links (selections other than any match), not from stores;
    `follows`: (V, W) whose conditions are tried pair by pair in any case."""
    states = len(automaton.states)
    bit = {variable: b for b, variable in enumerate(plan.variables)}
    guards = _Guards()
    start: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    layers: dict[Layer, int] = {}
    divides: dict[Layer, int] = {}
    tried: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    comparisons = programs = 0

    def attempt(names: tuple[str, str]) -> tuple[int, int, int, int]:
        nonlocal comparisons, programs
        if names not in tried:
            pair = plan.pair(*names)
            first, begin = comparisons, programs
            comparisons, programs = comparisons + len(pair.splits), programs + len(pair.mixed)
            tried[names] = (first, comparisons, begin, programs)
        return tried[names]

    for names in follows:
        attempt(names)
    for transition in automaton.starts:
        start[transition.target].append((*guards.add(transition.gap.holds), *guards.add(transition.gap.fails)))
    found: list[tuple[int, int, str, tuple[int, int], tuple[int, ...]]] = []
    for transition in automaton.inner:
        source = transition.source
        if source is None:
            continue
        names = (automaton.states[source].variable, automaton.states[transition.target].variable)
        layer = layer_of(plan, *names, transition.gap)
        method = layer.method(plan)
        kept = (*guards.add(transition.gap.holds), *guards.add(transition.gap.fails))
        if linked or transition.gap.fails or method is Method.SCAN:
            found.append((transition.target, source, "scan", (source, -1), (*attempt(names), *kept)))
        elif method is Method.DIVIDE:
            place = (source, divides.setdefault(layer, len(divides)))
            found.append((transition.target, source, "divide", place, (0, 0, 0, 0, *kept)))
        else:
            number = -1 if method is Method.RUNNING else layers.setdefault(layer, len(layers))
            found.append((transition.target, source, "store", (source, number), (0, 0, 0, 0, *kept)))
    # transitions from one state under the same conditions share a store
    stores = sorted({place for _, _, way, place, _ in found if way == "store"})
    halves = sorted({place for _, _, way, place, _ in found if way == "divide"})
    into: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    for target, source, way, place, rest in found:
        store = stores.index(place) if way == "store" else -1
        into[target].append((source, store, *rest, halves.index(place) if way == "divide" else -1))
    accept = [[guards.add(option) for option in state.accepts] for state in automaton.states]
    start_of, start_t = _ranges(start, 4)
    into_of, into_t = _ranges(into, 11)
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
        stores=tuple(stores),
        layers=tuple(layers),
        halves=tuple(halves),
        divides=tuple(divides),
        tried=tuple(tried),
        keep=linked or any(way != "store" for _, _, way, _, _ in found),
    )


def store_table(layout: Layout, nodes_of_layer: Sequence[int]) -> tuple[Array, Array, int]:
    """Stores by source state as the kernel reads them (layer, first node), and how many nodes they need in all."""
    rows: list[list[tuple[int, ...]]] = [[] for _ in layout.variable]
    total = 0
    for source, layer in layout.stores:
        rows[source].append((layer, total))
        total += 1 if layer < 0 else nodes_of_layer[layer]
    return *_ranges(rows, 2), max(total, 1)
