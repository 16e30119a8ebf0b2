"""Which arcs live when.

An **epoch** is a stretch of time between two moments at which an arc's lifetime begins or ends: in it the same arcs
live. Epochs in which equal arcs live share one set of lists: what a dynamic pattern costs is the look-up of a number.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from trendlake.cep_core.automaton.compile.plan import EPSILON, EVENT, IGNORE, WINDOW_END, AutomatonPlan
from trendlake.cep_core.events.array_types import Int64s

KINDS = ((EVENT, IGNORE), (EPSILON,), (WINDOW_END,))


def by_epoch(plan: AutomatonPlan, row_of: list[int]) -> tuple[Int64s, Int64s, tuple[Int64s, ...]]:
    """(bounds, live, lists). Epoch x is the time between bounds[x - 1] and bounds[x]; its arcs are those of set
    live[x].

    `row_of`: the row of each arc in the kernels' table; equal arcs have one. `lists`: for arcs that take an event, for
    epsilon arcs and for those at the window's end, (sets, states + 1) and a list: the rows of state q in set x are
    list[at[x, q]:at[x, q + 1]].
    """
    moments = [t for arc in plan.arcs for t in (arc.valid_from, arc.valid_to) if t is not None]
    bounds = np.unique(np.array(moments, np.int64))
    begins: dict[int | None, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for i, arc in enumerate(plan.arcs):
        begins.setdefault(arc.valid_from, []).append(i)
        if arc.valid_to is not None:
            ends.setdefault(arc.valid_to, []).append(i)
    alive: Counter[int] = Counter(row_of[i] for i in begins.get(None, ()))
    sets: dict[frozenset[int], int] = {}
    live = [sets.setdefault(frozenset(alive), 0)]
    for moment in bounds.tolist():
        alive.update(row_of[i] for i in begins.get(moment, ()))
        alive.subtract(row_of[i] for i in ends.get(moment, ()))
        alive = +alive
        live.append(sets.setdefault(frozenset(alive), len(sets)))
    arc_of = dict(zip(row_of, plan.arcs, strict=True))
    lists: list[Int64s] = []
    for how in KINDS:
        at: list[Int64s] = []
        listed: list[int] = []
        for rows in sets:
            mine = sorted((arc_of[row].source, row) for row in rows if arc_of[row].how in how)
            at.append(len(listed) + np.searchsorted([q for q, _ in mine], np.arange(len(plan.states) + 1)))
            listed += [row for _, row in mine]
        lists += [np.array(at, np.int64), np.array(listed, np.int64)]
    return bounds, np.array(live, np.int64), tuple(lists)
