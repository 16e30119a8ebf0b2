"""Where a chain of matches can be taken up, and where an old chain and a new one meet.

A search goes on as long as some way takes the next row. Conditions on other rows are taken as true here, so that of
each row the rows are known that a search from it may look at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.match_recognize.kernels.local import ACCEPT, Ordered, Ways


class Looked(NamedTuple):
    """The row behind all that a search looks at: of the search from each row (`own`), and of any from the rows before
    that comes to it (`through`). It looks at the first row that it does not take. `near`: the first row that is so much
    later than each that no match has both."""

    own: Int64s
    through: Int64s
    near: Int64s


class Changed(NamedTuple):
    """Of each partition the `first` and the `last` time at which rows came or went, microseconds; where none did, the
    last is before the first. `known`: at which rows the old chain is known to have searched."""

    first: Int64s
    last: Int64s
    known: Bools


class Reading(NamedTuple):
    """`bound`: of matches, 0 for none. `back`, `ahead`: rows that a search reads around those it looks at. `begun`,
    `ended`: whether the rows are all that there are before, or behind; else they are those before the time `end`.
    `timed`: whether a search that time ends cannot see what comes then. `every`: whether each row is searched from."""

    bound: int
    back: int
    ahead: int
    begun: bool
    ended: bool
    end: int
    timed: bool
    every: bool


@compiled.entry
def look(ways: Ways, rows: Ordered, bound: int, out: Looked) -> None:
    """Fills `out`."""
    places = len(ways.variable)
    ends = np.zeros((2, places), np.int64)
    for part in range(len(rows.bounds) - 1):
        low, high = rows.bounds[part], rows.bounds[part + 1]
        near = high
        for row in range(high - 1, low - 1, -1):
            now, behind, held = row & 1, 1 - (row & 1), rows.true[row]
            through = row + 1
            for place in range(places):
                end = row + 1
                if (held >> ways.variable[place]) & 1:
                    end = row + 2
                    if row + 1 < high:
                        for w in range(ways.offset[place], ways.offset[place + 1]):
                            option = ways.ways[w]
                            if option == ACCEPT:
                                break
                            end = max(end, ends[behind, option])
                ends[now, place] = end
                through = max(through, end)
            own = row + 1
            for w in range(len(ways.other)):
                if ways.other[w] == ACCEPT:
                    break
                own = max(own, ends[now, ways.other[w]])
            if row == low:
                for w in range(len(ways.first)):
                    if ways.first[w] == ACCEPT:
                        break
                    own = max(own, ends[now, ways.first[w]])
            if bound:
                while near - 1 > row and rows.times[near - 1] - rows.times[row] >= bound:
                    near -= 1
                own, through = min(own, near + 1), min(through, near + 1)
            out.own[row], out.through[row], out.near[row] = own, through, near


@compiled.inlined
def _unseen(end: int, time: int, limit: int, moment: int, reading: Reading) -> bool:
    """Whether a search from a row of some time, which looks at the rows before `end`, reads none of those from `limit`
    on, whose times are `moment` or later."""
    if end + reading.ahead <= limit:
        return True
    return bool(reading.timed and reading.bound and time + reading.bound <= moment)


@compiled.entry
def taken_up(rows: Ordered, looked: Looked, changed: Changed, reading: Reading, out: Int64s) -> None:
    """out[p]: the last row of partition p at which the old chain and the new one both search, such that no search
    before it reads a changed row; -1 where none is known."""
    for part in range(len(rows.bounds) - 1):
        low, high = rows.bounds[part], rows.bounds[part + 1]
        if changed.last[part] < changed.first[part]:
            out[part] = high
            continue
        time = changed.first[part]
        limit = low + np.searchsorted(rows.times[low:high], time)
        out[part] = -1
        row, taken, unseen = low, low, True
        if not reading.begun:
            row = low + reading.back
            if row >= high:
                continue
            unseen = _unseen(looked.through[row], rows.times[row], limit, time, reading)
            taken = min(looked.through[row] - 1, looked.near[row])
        while unseen and row <= limit:
            first = reading.begun and row == low
            if first or reading.every or taken <= row or (row < limit and changed.known[row]):
                out[part] = row
            if row == high:
                break
            unseen = _unseen(looked.own[row], rows.times[row], limit, time, reading)
            taken = max(taken, min(looked.own[row] - 1, looked.near[row]))
            row += 1


@compiled.entry
def meetings(
    rows: Ordered, looked: Looked, changed: Changed, reading: Reading, begins: Int64s, begun: Bools, out: Int64s
) -> None:
    """out[p]: the first row of partition p, behind all that changed and from `begins` on, at which the old chain and
    the new one both search; the row behind the partition's last where there is none; -1 where more rows are to be read
    for that. `begun`: at which rows a match of the new chain begins."""
    for part in range(len(rows.bounds) - 1):
        low, high = rows.bounds[part], rows.bounds[part + 1]
        if changed.last[part] < changed.first[part]:
            out[part] = high
            continue
        out[part] = -1
        if begins[part] < 0:
            continue
        behind = low + np.searchsorted(rows.times[low:high], changed.last[part], side="right") + reading.back
        known, taken = behind < high, high
        if known:
            taken = min(looked.through[behind] - 1, looked.near[behind])
        row = begins[part]
        while True:
            meet = reading.every or (taken <= row and (row < high or known))
            meet = meet or (row < high and changed.known[row] and begun[row])
            if meet and row >= behind:
                out[part] = row
                break
            if row >= high:
                break
            if not reading.ended and not _unseen(looked.own[row], rows.times[row], high, reading.end, reading):
                break
            if row >= behind:
                taken = max(taken, min(looked.own[row] - 1, looked.near[row]))
            row += 1
        if out[part] < 0 and reading.ended:
            out[part] = high
