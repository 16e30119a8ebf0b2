"""Matches from every row, each as what its measures read: SKIP TO NEXT ROW with a row for each match.

A row and the place that takes it determine the rest of the match. So matches from all rows are a forest, and what
measures read of a match is carried along it from right to left: no match is followed by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.match_recognize.kernels.exact import carried, rounded, words_of
from trendlake.cep_core.match_recognize.kernels.local import ACCEPT, Ordered, Ways

FIRST, LAST, COUNT, SUM, SUM_REAL, GREATEST = range(6)
"""Kinds of values that are carried: the first or last row that is mapped to one of some variables; the number of rows
with a value; the number, and the sum in two words; the first row with the greatest code."""
KIND, WORD, COLUMN, VARIABLES, UNIT = range(5)
"""Columns of `Carried.table`. COLUMN below 0: every row has a value."""
LENGTH, END, WORDS = range(3)
"""Words of each match: how many rows, and the place of the last one; from WORDS on those of the table."""


class Carried(NamedTuple):
    """`table`: a row for each thing that is carried; `columns` and `known` (rows, columns): values of rows."""

    table: Int64s
    columns: Int64s
    known: Bools


@compiled.entry
def matches_from_all_rows(ways: Ways, rows: Ordered, carried_along: Carried, width: int) -> tuple[Bools, Int64s]:
    """Whether a match begins at each row, and its words (rows, width)."""
    begins = np.zeros(len(rows.true), np.bool_)
    result = np.zeros((len(rows.true), width), np.int64)
    places = len(ways.variable)
    states, able = np.zeros((2, places, width), np.int64), np.zeros((2, places), np.bool_)
    empty = np.zeros(width, np.int64)
    _clear(carried_along, empty)
    _fill(borrowed(ways), borrowed(rows), borrowed(carried_along), borrowed((begins, result, states, able, empty)))
    return begins, result


@compiled.part
def _clear(carried_along: Carried, words: Int64s) -> None:
    """The words of a match without a row."""
    words[END] = -1
    table = carried_along.table
    for at in range(len(table)):
        if table[at, KIND] in (FIRST, LAST, GREATEST):
            words[table[at, WORD]] = -1


@compiled.part
def _fill(
    ways: Ways, rows: Ordered, carried_along: Carried, memory: tuple[Bools, Int64s, Int64s, Bools, Int64s]
) -> None:
    ways, rows, carried_along = borrowed((ways, rows, carried_along))
    begins, result, states, able, empty = borrowed(memory)
    places, width = len(ways.variable), len(empty)
    for part in range(len(rows.bounds) - 1):
        low, high = rows.bounds[part], rows.bounds[part + 1]
        for row in range(high - 1, low - 1, -1):
            now, behind, held = row & 1, 1 - (row & 1), rows.true[row]
            for place in range(places):
                able[now, place] = False
                if not (held >> ways.variable[place]) & 1:
                    continue
                way = -2
                if row + 1 == high:
                    way = ACCEPT if ways.last[place] else -2
                else:
                    for w in range(ways.offset[place], ways.offset[place + 1]):
                        option = ways.ways[w]
                        if option == ACCEPT or able[behind, option]:
                            way = option
                            break
                if way == -2:
                    continue
                able[now, place] = True
                for w in range(width):
                    states[now, place, w] = empty[w] if way == ACCEPT else states[behind, way, w]
                _carry(carried_along, states, now, place, row, ways.variable[place])
            choices = ways.first if row == low else ways.other
            for w in range(len(choices)):
                way = choices[w]
                if way == ACCEPT or able[now, way]:
                    begins[row] = True
                    for x in range(width):
                        result[row, x] = empty[x] if way == ACCEPT else states[now, way, x]
                    break


@compiled.inlined
def _carry(carried_along: Carried, states: Int64s, now: int, place: int, row: int, variable: int) -> None:
    """Takes one row more, at the front."""
    table, columns, known = carried_along.table, carried_along.columns, carried_along.known
    states[now, place, LENGTH] += 1
    if states[now, place, LENGTH] == 1:
        states[now, place, END] = place
    for at in range(len(table)):
        if not (table[at, VARIABLES] >> variable) & 1:
            continue
        kind, word, column = table[at, KIND], table[at, WORD], table[at, COLUMN]
        if column >= 0 and not known[row, column]:
            continue
        if kind == FIRST:
            states[now, place, word] = row
        elif kind == LAST:
            if states[now, place, word] < 0:
                states[now, place, word] = row
        elif kind == GREATEST:
            best = states[now, place, word]
            if best < 0 or columns[row, column] >= columns[best, column]:
                states[now, place, word] = row
        else:
            states[now, place, word] += 1
            if kind != COUNT:
                value = columns[row, column]
                if kind == SUM_REAL:
                    lower, upper = words_of(float(np.int64(value).view(np.float64)), table[at, UNIT])
                else:
                    lower, upper = value, value >> 63
                states[now, place, word + 1], states[now, place, word + 2] = carried(
                    states[now, place, word + 1], states[now, place, word + 2], lower, upper
                )


@compiled.entry
def rounded_sums(counts: Int64s, low: Int64s, high: Int64s, unit: int, mean: bool) -> Float64s:
    """The sums (or means) of so many values; 0 for none."""
    result = np.zeros(len(counts), np.float64)
    for at in range(len(counts)):
        if counts[at]:
            result[at] = rounded(low[at], high[at], counts[at] if mean else 1, unit)
    return result
