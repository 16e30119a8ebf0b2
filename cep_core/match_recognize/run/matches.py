"""From match to match: the matches of all partitions as columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendlake.cep_core.errors import SkipFailedError
from trendlake.cep_core.events.array_types import Int32s, Int64s
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.search import Search


@dataclass(frozen=True)
class Matches:
    """`start`: the first row of each match, or that at which an empty one stands; `number`: its MATCH_NUMBER();
    `offset`: where its rows begin in `places`, and the end; `places`: of each row the place of the program that took
    it."""

    start: Int64s
    number: Int64s
    offset: Int64s
    places: Int32s

    @cached_property
    def length(self) -> Int64s:
        return np.diff(self.offset)

    @cached_property
    def owner(self) -> Int64s:
        """The match of each row."""
        return np.repeat(np.arange(len(self.start)), self.length)

    @cached_property
    def row(self) -> Int64s:
        """The row of each row of a match."""
        return np.arange(len(self.places)) + np.repeat(self.start - self.offset[:-1], self.length)


def searched(plan: RowPatternPlan, rows: Rows, can: Int64s | None = None, until: int | None = None) -> Matches:
    """The matches, by the search in Python. `can`: of each row the places, as bits in words, that some match may have
    there; no others are tried. `until`: no match from a row of this time or later is asked for, where rows are in the
    order of time; microseconds. Raises SkipFailedError, SearchTooLongError."""
    search = Search(plan, rows, None if can is None else _bits(can))
    starts: list[int] = []
    numbers: list[int] = []
    ends = [0]
    places: list[int] = []
    parts = zip(rows.begins.tolist(), rows.bounds[:-1].tolist(), rows.bounds[1:].tolist(), strict=True)
    for row, low, high in parts:
        number = 1
        stop = high if until is None else low + int(np.searchsorted(rows.times[low:high], until))
        while row < stop:
            result = search.find(row, low, high, number)
            if result is None:
                row += 1
                continue
            starts.append(row)
            numbers.append(number)
            places += result
            ends.append(len(places))
            row = _onward(plan, rows, row, result)
            number += 1
    return Matches(
        np.array(starts, np.int64), np.array(numbers, np.int64), np.array(ends, np.int64), np.array(places, np.int32)
    )


def _bits(can: Int64s) -> list[int]:
    """Rows of words as one number each."""
    if can.shape[1] == 1:
        return list(can[:, 0].tolist())
    size = 8 * can.shape[1]
    data = can.tobytes()
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _onward(plan: RowPatternPlan, rows: Rows, row: int, result: list[int]) -> int:
    """The row at which matching goes on after a match from `row`."""
    onward = plan.onward
    if not result or onward.mode == "next":
        return row + 1
    if onward.mode == "past_last":
        return row + len(result)
    variables = plan.program.variables
    taken = [at for at, place in enumerate(result) if variables[place] in onward.variables]
    at = taken[0 if onward.mode == "first" else -1] if taken else -1
    if at <= 0:
        raise skip_failed(plan, rows, row, missing=at < 0)
    return row + at


def skip_failed(plan: RowPatternPlan, rows: Rows, row: int, *, missing: bool) -> SkipFailedError:
    """The error of the match from a row. `missing`: it has no row to skip to; else that is its first one."""
    onward = plan.onward
    word = f"AFTER MATCH SKIP TO {onward.mode.upper()} {onward.name}"
    match = f"{rows.described(row)}match {rows.id_of(row)}: {word}"
    if missing:
        hint = f"make {onward.name} mandatory, or skip to a SUBSET"
        return SkipFailedError(f"{match}, but no row of the match is mapped to {onward.name}", hint=hint)
    return SkipFailedError(f"{match} is its first row, so matching would not go on", hint="skip to another variable")
