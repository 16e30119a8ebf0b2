"""An automaton as the flat arrays the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.trends.compile.dfa import Automaton, Transition, Variables
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.compile.predecessors import Layer, Method
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Nfa

Link = tuple[str, Variables]
"""A variable V and the variables that may follow it: an event under V is linked to the first time at which one could.
`JUST_AFTER`: any event is linked to the one just after it."""
JUST_AFTER: Link = ("", ())
Four = tuple[int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """See `cep_core.trends.kernels.arguments` for the arrays. `layers` are those with at most one inequality, by
    number; `divides` those with two; `tried` the (V, W) whose conditions are tried pair by pair, in the order of
    their comparisons and programs. `links`: what may follow an event, by the rows of `links.make_links`."""

    nfa: Nfa
    """Its stores are empty: how many nodes they need, the kernels see differently."""
    guards: Int64s
    stores: tuple[tuple[int, int], ...]
    """(source state, layer or -1), by store number."""
    layers: tuple[Layer, ...]
    halves: tuple[tuple[int, int], ...]
    """(source state, divide), by number."""
    divides: tuple[Layer, ...]
    tried: tuple[tuple[str, str], ...]
    links: tuple[Link, ...]
    link_of: Int64s
    link: Int64s
    link_lists: Int64s
    slots: int
    """Links an event of one state is put into, at most; at least 1."""
    keep: bool


class _Guards:
    """Guard lists, laid end to end."""

    def __init__(self) -> None:
        self.flat: list[int] = []

    def add(self, guards: Sequence[int]) -> tuple[int, int]:
        start = len(self.flat)
        self.flat.extend(guards)
        return start, len(self.flat)


def _ranges(rows_by_state: list[list[tuple[int, ...]]], width: int) -> tuple[Int64s, Int64s]:
    offsets = np.zeros(len(rows_by_state) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum([len(rows) for rows in rows_by_state])
    flat = [row for rows in rows_by_state for row in rows]
    return offsets, np.array(flat, dtype=np.int64).reshape(len(flat), width)


def layout(plan: Plan, automaton: Automaton, linked: bool, pairwise: bool = False) -> Layout:
    """Arrays for `automaton`. `linked`: predecessors come by links (selections other than any match), not from
    stores. `pairwise`: every transition is one whose conditions are tried pair by pair."""
    states = len(automaton.states)
    bit = {variable: b for b, variable in enumerate(plan.variables)}
    guards = _Guards()
    start: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    layers: dict[Layer, int] = {}
    divides: dict[Layer, int] = {}
    tried: dict[tuple[str, str], Four] = {}
    comparisons = programs = 0

    def attempt(names: tuple[str, str]) -> Four:
        nonlocal comparisons, programs
        if names not in tried:
            pair = plan.pair(*names)
            first, begin = comparisons, programs
            comparisons, programs = comparisons + len(pair.splits), programs + len(pair.mixed)
            tried[names] = (first, comparisons, begin, programs)
        return tried[names]

    links = _Links(automaton, plan.select) if linked else None
    for names in links.pairs if links else ():
        attempt(names)
    for transition in automaton.starts:
        start[transition.target].append((*guards.add(transition.gap.holds), *guards.add(transition.gap.fails)))
    none = (0, 0, 0, 0)
    scans: list[tuple[Transition, str, tuple[int, int], Four, Four]] = []
    for transition in automaton.inner:
        source = transition.source
        if source is None:
            continue
        names = (automaton.states[source].variable, automaton.states[transition.target].variable)
        layer = plan.layer(*names, transition.gap)
        method = plan.method(layer)
        bounds = (*guards.add(transition.gap.holds), *guards.add(transition.gap.fails))
        if linked or pairwise or transition.gap.fails or method is Method.SCAN:
            scans.append((transition, "scan", (source, -1), bounds, attempt(names)))
        elif method is Method.DIVIDE:
            place = (source, divides.setdefault(layer, len(divides)))
            scans.append((transition, "divide", place, bounds, none))
        else:
            number = -1 if method is Method.RUNNING else layers.setdefault(layer, len(layers))
            scans.append((transition, "store", (source, number), bounds, none))
    # transitions from one state under the same conditions share a store
    stores = sorted({place for _, way, place, *_ in scans if way == "store"})
    halves = sorted({place for _, way, place, *_ in scans if way == "divide"})
    into: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    conditions: list[list[tuple[int, ...]]] = [[] for _ in range(states)]
    for transition, way, place, bounds, tried_by in scans:
        store = stores.index(place) if way == "store" else -1
        half = halves.index(place) if way == "divide" else -1
        ahead = links.of(transition) if links else none
        into[transition.target].append((*bounds, place[0], store, half, *ahead))
        conditions[transition.target].append(tried_by)
    accept: list[list[tuple[int, ...]]] = [[guards.add(one) for one in state.accepts] for state in automaton.states]
    link_of, link = _ranges(links.leading if links else [[] for _ in range(states)], 1)
    variable = np.array([bit[state.variable] for state in automaton.states], dtype=np.int64)
    return Layout(
        nfa=Nfa(
            variable,
            *_ranges(start, 4),
            *_ranges(into, c.INTO),
            _ranges(conditions, 4)[1],
            *_ranges(accept, 2),
            *_ranges([[] for _ in range(states)], 2),
        ),
        guards=np.array(guards.flat or [0], dtype=np.int64),
        stores=tuple(stores),
        layers=tuple(layers),
        halves=tuple(halves),
        divides=tuple(divides),
        tried=tuple(tried),
        links=tuple(links.number) if links else (),
        link_of=link_of,
        link=link.reshape(-1),
        link_lists=np.array((links.flat if links else []) or [0], dtype=np.int64),
        slots=max([1, *(len(rows) for rows in links.leading)]) if links else 1,
        keep=linked or any(way != "store" for _, way, *_ in scans),
    )


class _Links:
    """Links of an automaton's events by number; `leading`: those its states are put into; `flat`: of transitions."""

    def __init__(self, automaton: Automaton, select: str) -> None:
        self.automaton, self.select = automaton, select
        self.number: dict[Link, int] = {}
        self.leading: list[list[tuple[int, ...]]] = [[] for _ in automaton.states]
        self.flat: list[int] = []
        self.ranges: dict[Transition, Four] = {}
        for transition in automaton.inner:
            self._add(transition)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The (V, U) of all links."""
        return sorted({(v, u) for v, names in self.number for u in names})

    def of(self, transition: Transition) -> Four:
        """Ranges into `flat`: links that lead to the event after the gap (the first of them is among `leading` of its
        source); and links that do not."""
        return self.ranges[transition]

    def _add(self, transition: Transition) -> None:
        gap, source = transition.gap, transition.source
        if source is None:
            return
        variable = self.automaton.states[source].variable
        sides = [[(variable, names) for names in side] for side in (gap.next, gap.later)]
        if self.select != "skip_till_next_match":
            sides = [[JUST_AFTER], []]
        first, middle = len(self.flat), len(self.flat) + len(sides[0])
        for side in sides:
            self.flat += [self.number.setdefault(link, len(self.number)) for link in side]
        self.ranges[transition] = (first, middle, middle, len(self.flat))
        if (self.flat[first],) not in self.leading[source]:
            self.leading[source].append((self.flat[first],))


def store_table(layout: Layout, nodes_of_layer: Sequence[int]) -> tuple[Int64s, Int64s, int]:
    """`store_of` and `store` of an `Nfa`, and how many nodes the stores need in all."""
    rows: list[list[tuple[int, ...]]] = [[] for _ in layout.nfa.variable]
    total = 0
    for source, layer in layout.stores:
        rows[source].append((layer, total))
        total += 1 if layer < 0 else nodes_of_layer[layer]
    return *_ranges(rows, 2), max(total, 1)
