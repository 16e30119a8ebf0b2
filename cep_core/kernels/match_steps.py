"""The automaton of kind matches where no run remembers anything: one run a state (see `matches.automaton`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any

ANY, NEXT, CONTIGUOUS = range(3)
LINKS_AN_EVENT = 6
"""At most so many links are made for each part and event."""


@njit(cache=True, nogil=True)
def steps(
    first: int, base: int, events: Array, broken: Array, time: Array, begins: Array, takes: Array, kleene: Array,
    within: int, mode: int, links: Array, fresh: Array, columns: Array, ends: Array, horizons: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Read events[first:] until there are no more or `columns` is full: (the event to go on with, links made, ends).

    `links`, `fresh` (a value for each state, kept between calls): the link of the runs there (-1: none) and their
    newest start. `columns` (5, size): new links, numbered from `base`, as in `matches.buffer`. `ends`, `horizons`: the
    nodes that end matches. `begins`, `takes`: bits by part. `mode`: ANY, NEXT or CONTIGUOUS.
    """
    parts = links.shape[0]
    last = parts - 1
    moved, moved_fresh = np.empty(parts, np.int64), np.empty(parts, np.int64)
    size, found, i = 0, 0, first
    while i < events.shape[0] and size + LINKS_AN_EVENT * parts <= columns.shape[1]:
        event = events[i]
        horizon = time[event] - within
        if broken[i]:
            links[:] = -1
        moved[:] = -1
        for k in range(parts):
            if links[k] < 0:
                continue
            taken = (takes[event] >> k) & 1 == 1
            begun = k < last and (begins[event] >> (k + 1)) & 1 == 1
            if not taken and not begun:
                if mode == CONTIGUOUS:
                    links[k] = -1
                continue
            if fresh[k] <= horizon:
                links[k] = -1
                continue
            if taken:
                size = _join(columns, base, size, moved, moved_fresh, k, links[k], fresh[k])
            if begun:
                size = _join(columns, base, size, moved, moved_fresh, k + 1, links[k], fresh[k])
            if mode == CONTIGUOUS or (mode == NEXT and (taken if kleene[k] else begun)):
                links[k] = -1
        for k in range(parts):
            for starts in range(2):
                if starts == 1 and (k > 0 or begins[event] & 1 == 0):
                    continue
                if starts == 0 and moved[k] < 0:
                    continue
                newest = time[event] if starts == 1 else moved_fresh[k]
                node = base + size
                columns[0, size], columns[1, size], columns[3, size], columns[4, size] = event, k, -1, newest
                columns[2, size] = -1 if starts == 1 else moved[k]
                size += 1
                if k < last or kleene[k]:
                    size = _join(columns, base, size, links, fresh, k, node, newest)
                if k == last:
                    ends[found], horizons[found] = node, horizon
                    found += 1
        i += 1
    return i, size, found


@njit(cache=True, nogil=True)
def _join(columns: Array, base: int, size: int, links: Array, fresh: Array, k: int, link: int, newest: int) -> int:
    """Lets links[k] stand for the runs behind `link` too; returns how many links there are now."""
    if links[k] < 0:
        links[k], fresh[k] = link, newest
        return size
    fresh[k] = max(fresh[k], newest)
    columns[0, size], columns[1, size], columns[2, size], columns[3, size] = -1, -1, links[k], link
    columns[4, size] = fresh[k]
    links[k] = base + size
    return size + 1
