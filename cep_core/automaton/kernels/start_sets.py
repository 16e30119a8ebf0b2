"""Sets of first events, shared: the runs of one state and register differ only in the event they began with.

A set is a number: p >= 0 is the set {p} of one position, -1 the empty set, and -2 - k the union that row k of `nodes`
describes, (left, right, least, greatest, stamp). Sets are never changed, so a copy is free and a union O(1): a
nondeterministic automaton costs O(1) a state and event, however many runs it has. Rows refer to earlier rows only.
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.run_groups import FIRSTS, NEXT

EMPTY = -1
LEFT, RIGHT, LEAST, GREATEST, STAMP = range(5)


@compiled.part
def greatest(nodes: Int64s, one: int) -> int:
    """The latest position of a set; -1 of the empty one."""
    return one if one >= EMPTY else nodes[-2 - one, GREATEST]


@compiled.part
def least(nodes: Int64s, one: int) -> int:
    """The earliest position of a set, those that have been left behind included."""
    return one if one >= EMPTY else nodes[-2 - one, LEAST]


@compiled.part
def union(nodes: Int64s, used: int, a: int, b: int, low: int) -> int:
    """The union of two sets; a set all of whose positions are below `low` counts as empty. It may be the new row
    `used`, for which there is room."""
    if a == b or greatest(nodes, b) < low:
        return a
    if greatest(nodes, a) < low:
        return b
    if a < EMPTY and (nodes[-2 - a, LEFT] == b or nodes[-2 - a, RIGHT] == b):
        return a
    if b < EMPTY and (nodes[-2 - b, LEFT] == a or nodes[-2 - b, RIGHT] == a):
        return b
    nodes[used, LEFT], nodes[used, RIGHT], nodes[used, STAMP] = a, b, 0
    nodes[used, LEAST] = min(least(nodes, a), least(nodes, b))
    nodes[used, GREATEST] = max(greatest(nodes, a), greatest(nodes, b))
    return -2 - used


@compiled.part
def members(nodes: Int64s, one: int, low: int, high: int, stamp: int, marks: Int64s, stack: Int64s, out: Int64s) -> int:
    """Fill `out` with the positions of a set in [low, high), each once; how many. `stamp` is used once; `stack` holds
    as many as there are rows, and one."""
    count, top = 0, 0
    stack[0] = one
    while top >= 0:
        node = stack[top]
        top -= 1
        if node >= 0:
            if low <= node < high and marks[node] != stamp:
                marks[node] = stamp
                out[count] = node
                count += 1
        elif node < EMPTY:
            row = -2 - node
            if nodes[row, STAMP] != stamp and nodes[row, GREATEST] >= low and nodes[row, LEAST] < high:
                nodes[row, STAMP] = stamp
                stack[top + 1], stack[top + 2] = nodes[row, LEFT], nodes[row, RIGHT]
                top += 2
    return count


@compiled.part
def renamed(place: Int64s, one: int, low: int) -> int:
    """A set after the rows have moved."""
    if one >= EMPTY:
        return one if one >= low else EMPTY
    return int(place[-2 - one])


@compiled.part
def compact(nodes: Int64s, used: int, roots: Int64s, low: int) -> int:
    """Keep only the rows that `roots` (sets, renamed in place) need for positions from `low` on; how many stay.

    Rows refer to earlier ones: one pass downwards marks, one upwards moves.
    """
    place = np.full(used, EMPTY, np.int64)
    for root in roots:
        if root < EMPTY and nodes[-2 - root, GREATEST] >= low:
            place[-2 - root] = 0
    for row in range(used - 1, -1, -1):
        if place[row] == 0:
            for child in (nodes[row, LEFT], nodes[row, RIGHT]):
                if child < EMPTY and nodes[-2 - child, GREATEST] >= low:
                    place[-2 - child] = 0
    rows = 0
    for row in range(used):
        if place[row] == EMPTY:
            continue
        left, right = renamed(place, nodes[row, LEFT], low), renamed(place, nodes[row, RIGHT], low)
        if left == EMPTY or right == EMPTY:
            place[row] = right if left == EMPTY else left
            continue
        nodes[rows, LEFT], nodes[rows, RIGHT], nodes[rows, STAMP] = left, right, nodes[row, STAMP]
        nodes[rows, LEAST], nodes[rows, GREATEST] = nodes[row, LEAST], nodes[row, GREATEST]
        place[row] = -2 - rows
        rows += 1
    for i in range(roots.shape[0]):
        roots[i] = renamed(place, roots[i], low)
    return rows


@compiled.entry
def tidy(nodes: Int64s, unions: int, meta: Int64s, lists: Int64s, groups: int, low: int) -> int:
    """Forget unions that no group needs; how many stay."""
    roots = np.full(groups, EMPTY, np.int64)
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                roots[g] = meta[g, FIRSTS]
                g = meta[g, NEXT]
    nodes_left = compact(nodes, unions, roots, low)
    for row in range(lists.shape[0]):
        for q in range(lists.shape[1]):
            g = lists[row, q]
            while g >= 0:
                meta[g, FIRSTS] = roots[g]
                g = meta[g, NEXT]
    return nodes_left
