"""The search for conditions of every class, compiled: depth first by the ways of the program, best first, and never
twice from one row, place and registers. It takes the steps of the search in Python (`run.search`).

A search from a row is a path: `depth` rows are taken, and of each the next way to try. `failed` remembers the places
from which no end was reached, and `keys` the same with registers, where these tell ways to a place apart. Only ways
that the pass backwards leaves are tried (`kernels.local.reachable`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int32s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute
from trendlake.cep_core.match_recognize.kernels.exact import carried, rounded
from trendlake.cep_core.match_recognize.kernels.local import (
    ACCEPT,
    DONE,
    FIRST_ROW,
    MORE_ROOM,
    NO_TARGET,
    Found,
    goes_on,
)

NONE, TOO_LONG, OVERFLOWED, MORE_DEPTH, MORE_KEYS = -1, -2, -3, -4, -5
"""No match; and what ends a search, or asks for memory."""

ROWS, LABELS, COUNT, SUM, SUM_REAL, LEAST, GREATEST, LEAST_REAL, GREATEST_REAL, ANY = range(10)
"""Kinds of registers: what a row changes."""
KIND, LOW, SIZE, FIRST, COLUMN, VARIABLES, WORDS = range(7)
"""Columns of `Asked.updates`. FIRST: whether first rows are remembered, or last ones; of a count where it stops. COLUMN
below 0: every row counts. WORDS: where a sum of doubles finds its words."""

AT_START, AT_BACK, AT_ROW, LABEL, NUMBER, COUNTED, WHOLE_SUM, REAL_SUM, MEAN, VALUE = range(10)
"""Where a condition finds a value."""
SLOT, SOURCE, FROM, WORD, OFFSET, SHIFT, UNIT = range(7)
"""Columns of `Asked.loads`. FROM: the column of values; WORD: of registers; OFFSET: rows from the start, or back."""

CODE_LOW, CODE_HIGH, RESULT, LOAD_LOW, LOAD_HIGH = range(5)
"""Columns of `Asked.conditions`; RESULT below 0: the pass backwards has asked already."""

KEY_DEPTH, KEY_PLACE, KEY_NEXT, KEY_FIELDS = range(4)
"""Columns of `Path.keys`."""


class Program(NamedTuple):
    """The ways behind place p are `ways[offset[p] : offset[p + 1]]`, best first; behind them those from before the
    partition's first row, those from before any other row, the end alone, and none. `variable`: of each place; `last`:
    whether a match may end at the partition's last row; `target`: whether SKIP may go on at a row of the place."""

    variable: Int64s
    offset: Int64s
    ways: Int32s
    last: Bools
    target: Bools


class Ordered(NamedTuple):
    """The rows. `can` (rows, words): the places that the pass backwards leaves; `bounds` of partitions; `times`;
    `begins`: of each partition the row at which matching begins."""

    can: Int64s
    bounds: Int64s
    times: Int64s
    begins: Int64s


class Asked(NamedTuple):
    """Conditions and registers. `conditions`: a row for each variable; `loads`: the values that they read; `updates`:
    of registers; `start`: the words of registers before the first row; `live` (places, words): those that tell ways to
    a place apart; `keyed`: whether there are any. `code`, `values`, `reals`, `null`, `cases`: of the machine.
    `columns`, `missing` (rows, columns): values of rows, and where they are NULL. `sums` (rows, 2 for each): doubles in
    two words. `names`: the code of each variable."""

    conditions: Int64s
    loads: Int64s
    updates: Int64s
    start: Int64s
    live: Bools
    keyed: Bools
    code: Int64s
    values: Int64s
    reals: Float64s
    null: Bools
    cases: Int64s
    columns: Int64s
    missing: Bools
    sums: Int64s
    names: Int64s


class Rules(NamedTuple):
    """`skip`: where to go on; `bound`: microseconds, 0 for none; `most`: steps from one row."""

    skip: int
    bound: int
    most: int


class Path(NamedTuple):
    """The memory of one search. A row for each row of the match and one more: `next` and `until`, the ways that are
    left; `place`, that took the row before; `registers`; `failed`, places as bits. `keys`: places and registers that
    failed, in chains that begin in `heads` (search, key); `state`: the search, how many keys."""

    next: Int64s
    until: Int64s
    place: Int64s
    registers: Int64s
    failed: Int64s
    keys: Int64s
    heads: Int64s
    state: Int64s


@compiled.entry
def matches_of(program: Program, rows: Ordered, asked: Asked, rules: Rules, path: Path, out: Found) -> int:
    """Finds matches from where `out.state` says, as long as there is memory; DONE, or what it asks for, or the error of
    the match that is the last one then; TOO_LONG and OVERFLOWED are of the search from `out.state[1]`."""
    program, rows, asked, path, out = borrowed((program, rows, asked, path, out))
    state, bounds = out.state, rows.bounds
    while state[0] < len(bounds) - 1:
        low, high = bounds[state[0]], bounds[state[0] + 1]
        if not state[5]:
            state[1], state[2], state[5] = rows.begins[state[0]], 1, 1
        while state[1] < high:
            start, count = state[1], state[4]
            length = _search(program, rows, asked, rules, path, start, low, high, state[2])
            if length == NONE:
                state[1] += 1
                continue
            if length < 0:
                return length
            if count + length > len(out.places):
                return MORE_ROOM
            for at in range(length):
                out.places[count + at] = path.place[at + 1]
            number = state[3]
            out.start[number], out.number[number], out.offset[number + 1] = start, state[2], count + length
            state[2] += 1
            state[3] += 1
            onward = goes_on(rules.skip, program.target, out.places, count, count + length, start)
            if onward <= start:
                return NO_TARGET if onward < 0 else FIRST_ROW
            state[1], state[4] = onward, count + length
        state[0] += 1
        state[5] = 0
    return DONE


@compiled.part
def _search(
    program: Program,
    rows: Ordered,
    asked: Asked,
    rules: Rules,
    path: Path,
    start: int,
    low: int,
    high: int,
    number: int,
) -> int:
    """The length of the preferred match from a row, whose places are `path.place[1:]`; or NONE, or why it ended."""
    program, rows, asked, path = borrowed((program, rows, asked, path))
    places, words, width = len(program.variable), path.failed.shape[1], path.registers.shape[1]
    path.state[0] += 1
    path.state[1] = 0
    begin = places if start == low else places + 1
    path.next[0], path.until[0] = program.offset[begin], program.offset[begin + 1]
    for w in range(width):
        path.registers[0, w] = asked.start[w]
    depth, clean, steps = 0, 0, 0
    while True:
        if path.next[depth] == path.until[depth]:
            if depth == 0:
                return NONE
            place = path.place[depth]
            if not asked.keyed[place]:
                path.failed[depth - 1, place >> 6] |= np.int64(1) << np.int64(place & 63)
            elif not _remember(asked, path, depth, place):
                return MORE_KEYS
            depth -= 1
            continue
        way = int(program.ways[path.next[depth]])
        path.next[depth] += 1
        if way == ACCEPT:
            return depth
        row = start + depth
        if row >= high or (rules.bound and abs(rows.times[row] - rows.times[start]) >= rules.bound):
            continue
        if not (rows.can[row, way >> 6] >> (way & 63)) & 1:
            continue
        steps += 1
        if steps > rules.most:
            return TOO_LONG
        if depth + 1 == len(path.place):
            return MORE_DEPTH
        if depth == clean:
            for w in range(words):
                path.failed[depth, w] = 0
            clean += 1
        variable = program.variable[way]
        if width:
            _step(asked, path, depth, row, variable)
        if asked.keyed[way]:
            if _found(asked, path, depth + 1, way):
                continue
        elif (path.failed[depth, way >> 6] >> (way & 63)) & 1:
            continue
        result = asked.conditions[variable, RESULT]
        if result >= 0:
            for at in range(asked.conditions[variable, LOAD_LOW], asked.conditions[variable, LOAD_HIGH]):
                if not _load(asked, path, at, depth + 1, start, row, low, high, number):
                    return OVERFLOWED
            code_low, code_high = asked.conditions[variable, CODE_LOW], asked.conditions[variable, CODE_HIGH]
            if not execute(asked.code, code_low, code_high, asked.values, asked.reals, asked.null, asked.cases):
                return OVERFLOWED
            if asked.null[result] or asked.values[result] == 0:
                continue
        depth += 1
        path.place[depth] = way
        leads = way
        if row + 1 == high:
            leads = places + 2 if program.last[way] else places + 3
        path.next[depth], path.until[depth] = program.offset[leads], program.offset[leads + 1]


@compiled.inlined
def _step(asked: Asked, path: Path, depth: int, row: int, variable: int) -> None:
    """The registers with one row more."""
    updates, registers, to = asked.updates, path.registers, depth + 1
    for w in range(registers.shape[1]):
        registers[to, w] = registers[depth, w]
    for r in range(updates.shape[0]):
        if not (updates[r, VARIABLES] >> variable) & 1:
            continue
        kind, at, column = updates[r, KIND], updates[r, LOW], updates[r, COLUMN]
        if kind <= LABELS:
            value = row if kind == ROWS else variable
            end = at + updates[r, SIZE]
            if updates[r, FIRST]:
                while at < end and registers[to, at] >= 0:
                    at += 1
                if at < end:
                    registers[to, at] = value
            else:
                while at < end - 1:
                    registers[to, at] = registers[to, at + 1]
                    at += 1
                registers[to, at] = value
            continue
        if column >= 0 and asked.missing[row, column]:
            continue
        if kind == COUNT:
            registers[to, at] = min(registers[to, at] + 1, updates[r, FIRST])
            continue
        value = asked.columns[row, column]
        if kind in (SUM, SUM_REAL):
            high = value >> 63
            if kind == SUM_REAL:
                value, high = asked.sums[row, updates[r, WORDS]], asked.sums[row, updates[r, WORDS] + 1]
            registers[to, at] += 1
            registers[to, at + 1], registers[to, at + 2] = carried(
                registers[to, at + 1], registers[to, at + 2], value, high
            )
        else:
            known, before = registers[to, at], registers[to, at + 1]
            registers[to, at] = 1
            if not known or _better(kind, value, before):
                registers[to, at + 1] = value


@compiled.inlined
def _better(kind: int, value: int, before: int) -> bool:
    """Whether a value takes the place of one before it."""
    if kind == ANY:
        return False
    if kind == LEAST:
        return value < before
    if kind == GREATEST:
        return value > before
    one, other = np.int64(value).view(np.float64), np.int64(before).view(np.float64)
    return bool(one < other if kind == LEAST_REAL else one > other)


@compiled.inlined
def _load(
    asked: Asked, path: Path, at: int, depth: int, start: int, row: int, low: int, high: int, number: int
) -> bool:
    """Puts a value that a condition reads into its slot; False where a sum does not fit 64 bits."""
    loads, registers = asked.loads, path.registers
    slot, source, word, offset = loads[at, SLOT], loads[at, SOURCE], loads[at, WORD], loads[at, OFFSET]
    missing, value = False, 0
    if source <= AT_ROW:
        if source == AT_START:
            base = start + offset
            missing = base > row
        elif source == AT_BACK:
            base = row - offset
            missing = base < start
        else:
            base = registers[depth, word]
            missing = base < 0
        base += loads[at, SHIFT]
        if missing or base < low or base >= high:
            missing = True
        else:
            value, missing = asked.columns[base, loads[at, FROM]], asked.missing[base, loads[at, FROM]]
    elif source == LABEL:
        label = registers[depth, word]
        missing = label < 0 or row - start < offset
        value = 0 if missing else asked.names[label]
    elif source == NUMBER:
        value = number
    elif source == COUNTED:
        value = registers[depth, word]
    elif source == VALUE:
        missing, value = registers[depth, word] == 0, registers[depth, word + 1]
    else:
        count, lower, upper = registers[depth, word], registers[depth, word + 1], registers[depth, word + 2]
        missing = count == 0
        if source == WHOLE_SUM:
            if upper != lower >> 63:
                return False
            value = lower
        else:
            mean = rounded(lower, upper, max(count, 1) if source == MEAN else 1, loads[at, UNIT])
            value = int(np.float64(mean).view(np.int64))
    asked.values[slot] = 0 if missing else value
    asked.null[slot] = missing
    return True


@compiled.inlined
def _hashed(asked: Asked, path: Path, depth: int, place: int) -> int:
    h = np.uint64(place + 1) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(depth)
    for w in range(path.registers.shape[1]):
        if asked.live[place, w]:
            h = (h ^ np.uint64(path.registers[depth, w])) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(29)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(32)) & (len(path.heads) - 1)  # type: ignore[return-value]


@compiled.inlined
def _found(asked: Asked, path: Path, depth: int, place: int) -> bool:
    """Whether the search failed before from this row and place, with these registers."""
    bucket = _hashed(asked, path, depth, place)
    if path.heads[bucket, 0] != path.state[0]:
        return False
    key = path.heads[bucket, 1]
    while key >= 0:
        if path.keys[key, KEY_DEPTH] == depth and path.keys[key, KEY_PLACE] == place:
            equal = True
            for w in range(path.registers.shape[1]):
                if asked.live[place, w] and path.keys[key, KEY_FIELDS + w] != path.registers[depth, w]:
                    equal = False
                    break
            if equal:
                return True
        key = path.keys[key, KEY_NEXT]
    return False


@compiled.inlined
def _remember(asked: Asked, path: Path, depth: int, place: int) -> bool:
    """Remembers that the search failed from here; False where there is no memory for it."""
    key = path.state[1]
    if key == len(path.keys):
        return False
    bucket = _hashed(asked, path, depth, place)
    path.keys[key, KEY_DEPTH], path.keys[key, KEY_PLACE] = depth, place
    path.keys[key, KEY_NEXT] = path.heads[bucket, 1] if path.heads[bucket, 0] == path.state[0] else -1
    for w in range(path.registers.shape[1]):
        path.keys[key, KEY_FIELDS + w] = path.registers[depth, w]
    path.heads[bucket, 0], path.heads[bucket, 1] = path.state[0], key
    path.state[1] += 1
    return True
