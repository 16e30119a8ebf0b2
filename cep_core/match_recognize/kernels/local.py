"""Matches where each condition reads its row and rows near it, by two passes.

Backwards: at which rows can a place take the row so that the end of a match is reached? Forwards: from each start the
first way that leads to the end. No choice is taken back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int32s, Int64s

ACCEPT = -1
NEVER = 2**31 - 1
DONE, MORE_ROOM, NO_TARGET, FIRST_ROW = 0, 1, 2, 3
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = 0, 1, 2, 3


class Ways(NamedTuple):
    """The program. `variable`: of each place; the ways behind place p are `ways[offset[p] : offset[p + 1]]`, best
    first, ACCEPT among them, and as bits `mask[p]`; `accept`: whether ACCEPT is among them; `last`: whether a match may
    end at the partition's last row; `first`, `other`: the ways from before the partition's first row, and any other;
    `target`: whether SKIP may go on at a row of the place."""

    variable: Int64s
    offset: Int64s
    ways: Int32s
    mask: Int64s
    accept: Bools
    last: Bools
    first: Int32s
    other: Int32s
    target: Bools


class Ordered(NamedTuple):
    """The rows: `true`, a bit for each variable whose condition holds; `bounds` of partitions; `times`; `begins`: of
    each partition the row at which matching begins."""

    true: Int64s
    bounds: Int64s
    times: Int64s
    begins: Int64s


class Found(NamedTuple):
    """The matches, as of `Matches`, with room for more, and `state`: the partition, the next row, the next number, how
    many matches and rows of matches there are, whether the partition's first pass is over."""

    start: Int64s
    number: Int64s
    offset: Int64s
    places: Int32s
    state: Int64s


@compiled.part
def _reachable(ways: Ways, true: Int64s, low: int, high: int, can: Int64s, base: int) -> None:
    """can[r - base]: the places, a bit each, that may take row r so that a match ends later."""
    words = ways.mask.shape[1]
    for row in range(high - 1, low - 1, -1):
        at = row - base
        for w in range(words):
            can[at, w] = 0
        held = true[row]
        if held == 0:
            continue
        ends = row + 1 == high
        for place in range(len(ways.variable)):
            if not (held >> ways.variable[place]) & 1:
                continue
            leads = ways.last[place] if ends else ways.accept[place]
            if not leads and not ends:
                for w in range(words):
                    if ways.mask[place, w] & can[at + 1, w]:
                        leads = True
                        break
            if leads:
                can[at, place >> 6] |= np.int64(1) << np.int64(place & 63)


@compiled.part
def _earliest(ways: Ways, true: Int64s, low: int, high: int, far: Int32s) -> None:
    """far[r - low, p]: the earliest row at which a match ends whose row r place p takes; NEVER for none."""
    for row in range(high - 1, low - 1, -1):
        at = row - low
        held = true[row]
        ends = row + 1 == high
        for place in range(len(ways.variable)):
            best = NEVER
            if (held >> ways.variable[place]) & 1:
                if ways.last[place] if ends else ways.accept[place]:
                    best = row
                elif not ends:
                    for w in range(ways.offset[place], ways.offset[place + 1]):
                        best = min(best, far[at + 1, ways.ways[w]])
            far[at, place] = best


@compiled.part
def goes_on(skip: int, target: Bools, places: Int32s, begin: int, end: int, start: int) -> int:
    """The row at which matching goes on after a match from `start`, whose places are places[begin:end]; -1 where no row
    of it is one to skip to."""
    if begin == end or skip == TO_NEXT:
        return start + 1
    if skip == PAST_LAST:
        return start + end - begin
    onward = -1
    for at in range(begin, end):
        if target[places[at]]:
            onward = start + at - begin
            if skip == TO_FIRST:
                break
    return onward


@compiled.entry
def reachable(ways: Ways, rows: Ordered, can: Int64s) -> None:
    """Fills can[r] for the rows of all partitions, as `_reachable`."""
    for place in range(len(rows.bounds) - 1):
        _reachable(ways, rows.true, rows.bounds[place], rows.bounds[place + 1], can, 0)


@compiled.entry
def matches_of(ways: Ways, rows: Ordered, skip: int, bound: int, can: Int64s, far: Int32s, out: Found) -> int:
    """Finds matches from where `out.state` says, as long as there is room; DONE, MORE_ROOM, or the error of the match
    that is the last one then. `bound`: microseconds, 0 for none; `can` and `far`: memory of the first pass, for the
    rows of the largest partition; without a bound `far` is not used, with one `can` is not."""
    state = out.state
    while state[0] < len(rows.bounds) - 1:
        low, high = rows.bounds[state[0]], rows.bounds[state[0] + 1]
        if not state[5]:
            if bound:
                _earliest(ways, rows.true, low, high, far)
            else:
                _reachable(ways, rows.true, low, high, can, low)
            state[1], state[2], state[5] = rows.begins[state[0]], 1, 1
        behind = state[1]
        while state[1] < high:
            start = state[1]
            if bound:
                behind = max(behind, start)
                while behind < high and abs(rows.times[behind] - rows.times[start]) < bound:
                    behind += 1
            count = state[4]
            row, place, ended = start, -1, False
            while not ended:
                way = -2
                if place < 0:
                    choices = ways.first if start == low else ways.other
                    begin, stop = 0, len(choices)
                else:
                    choices = ways.ways
                    begin, stop = ways.offset[place], ways.offset[place + 1]
                    if row == high:
                        begin, stop = 0, 0
                        way = ACCEPT if ways.last[place] else -2
                for w in range(begin, stop):
                    option = choices[w]
                    if option == ACCEPT:
                        way = ACCEPT
                        break
                    if bound:
                        if far[row - low, option] < behind:
                            way = option
                            break
                    elif (can[row - low, option >> 6] >> (option & 63)) & 1:
                        way = option
                        break
                if way < 0:
                    ended = True
                    if way == -2:
                        row = -1
                else:
                    if count == len(out.places):
                        return MORE_ROOM
                    out.places[count] = way
                    count += 1
                    place = way
                    row += 1
            if row < 0:
                state[1] += 1
                continue
            number = state[3]
            out.start[number], out.number[number] = start, state[2]
            out.offset[number + 1] = count
            state[2] += 1
            state[3] += 1
            onward = goes_on(skip, ways.target, out.places, state[4], count, start)
            if onward <= start:
                return NO_TARGET if onward < 0 else FIRST_ROW
            state[4] = count
            state[1] = onward
        state[0] += 1
        state[5] = 0
    return DONE
