"""Matches from all rows at once: SKIP TO NEXT ROW with a row for each match, where conditions read the row and its
neighbours. Values that measures read of a match are carried from row to row (`kernels.forest`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, read_only, valid
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.match_recognize.compile.classes import class_of_plan
from trendlake.cep_core.match_recognize.compile.leaves import (
    Label,
    Leaf,
    Navigation,
    Number,
    Total,
    every,
    leaves,
    whole,
)
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.local import is_large, true_of, ways_of
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.measures import Measures, ranks
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.sums import unit_of

MOST_STATES = 2_000
"""Places times words: what each row carries."""
_CHOSEN = ("MIN", "MAX", "ANY_VALUE", "BOOL_AND", "BOOL_OR")


@dataclass(frozen=True)
class Forest(Matches):
    """Matches without their rows: `places` is empty. `words`: of each match, as the kernel has them; `first_word`: of
    each read of the measures where its words begin; `units`: of sums of doubles."""

    words: Int64s
    first_word: dict[Leaf, int]
    units: dict[Leaf, int]


def matches_as_forest(plan: RowPatternPlan, rows: Rows) -> Forest | None:
    """The matches; None for other conditions and modes, for measures that read more of a match than a forest carries,
    and for what cannot be computed at every row."""
    if plan.onward.mode != "next" or plan.all_rows or plan.bound is not None or is_large(plan):
        return None
    if class_of_plan(plan) != "local":
        return None
    reads = [leaf for column in plan.measures if column.value is not None for leaf in leaves(column.value)]
    if not all(map(_is_carried, reads)):
        return None
    try:
        true, builder = true_of(plan, rows), _Builder(plan, rows, reads)
    except BadEventsError:
        return None
    ways = ways_of(plan)
    if ways is None or builder.missed or builder.width * plan.program.length > MOST_STATES:
        return None
    from trendlake.cep_core.match_recognize.kernels import forest as kernel
    from trendlake.cep_core.match_recognize.kernels.local import Ordered

    ordered = Ordered(*map(read_only, (true, rows.bounds, rows.times, rows.begins)))
    begins, words = kernel.matches_from_all_rows(ways, ordered, builder.carried(), builder.width)
    start = np.flatnonzero(begins)
    words = words if len(start) == len(words) else words[start]
    before = np.searchsorted(start, rows.bounds[:-1])
    number = np.arange(len(start)) - before[rows.partition_of[start]] + 1 if len(start) else start
    offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(words[:, kernel.LENGTH])])
    return Forest(start, number, offset, np.zeros(0, np.int32), words, builder.first_word, builder.units)


def _is_carried(read: Leaf) -> bool:
    """Whether a read of a measure is one that a forest carries, or needs no more than the length of the match."""
    match read:
        case Number():
            return True
        case Navigation():
            labelled = any(isinstance(one, Label | Number) for one in every(read.argument))
            if read.variables:
                return not labelled and whole(read.offset) == 0
            last = not read.first and not read.sign and whole(read.offset) == 0
            return not labelled or (isinstance(read.argument, Label) and last)
        case Total():
            plain = not any(isinstance(one, Label | Number) for one in every(read))
            return plain and not read.distinct and read.function in ("COUNT", "SUM", "AVG", *_CHOSEN)
    return False  # pragma: no cover - no other leaf stands in a measure


class _Builder:
    """The table of what a forest carries, and the columns that it reads. Raises BadEventsError."""

    def __init__(self, plan: RowPatternPlan, rows: Rows, reads: list[Leaf]) -> None:
        from trendlake.cep_core.match_recognize.kernels import forest as kernel

        self.kernel, self.rows = kernel, rows
        self.variables = list(dict.fromkeys(plan.program.variables))
        self.width: int = kernel.WORDS
        self.table: list[list[int]] = []
        self.columns: list[Int64s] = []
        self.known: list[Bools] = []
        self.first_word: dict[Leaf, int] = {}
        self.units: dict[Leaf, int] = {}
        self.missed = False
        """Whether a sum of doubles needs more than two words."""
        for read in dict.fromkeys(reads):
            if isinstance(read, Navigation) and read.variables:
                self._add(read, kernel.FIRST if read.first else kernel.LAST, -1, 1)
            elif isinstance(read, Total) and not (read.rows and not read.variables):
                self._total(read)

    def _add(self, read: Navigation | Total, kind: int, column: int, words: int, unit: int = 0) -> None:
        names = read.variables or self.variables
        mask = sum(1 << self.variables.index(name) for name in names)
        self.table.append([kind, self.width, column, mask, unit])
        self.first_word[read] = self.width
        self.width += words

    def _total(self, read: Total) -> None:
        kernel, function = self.kernel, read.function
        if read.rows:
            self._add(read, kernel.COUNT, -1, 1)
            return
        values = self.rows.value(read.arguments[0])
        known = valid(values)
        column = len(self.columns)
        given = np.zeros(len(known), np.int64)
        if function in _CHOSEN:
            if function != "ANY_VALUE" and len(known):
                given = ranks(values)
                given = ~given if function in ("MIN", "BOOL_AND") else given
            self._add(read, kernel.GREATEST, column, 1)
        elif function == "COUNT":
            self._add(read, kernel.COUNT, column, 1)
        elif pa.types.is_integer(values.type) or pa.types.is_null(values.type):
            given = numbers(values.cast(pa.int64()), 0)
            self._add(read, kernel.SUM, column, 3)
        else:
            doubles = numbers(reals(values), 0.0)
            unit = unit_of(doubles, known)
            self.missed |= unit is None
            given = doubles.view(np.int64)
            self.units[read] = unit or 0
            self._add(read, kernel.SUM_REAL, column, 3, unit or 0)
        self.columns.append(np.asarray(given, np.int64))
        self.known.append(known)

    def carried(self) -> Any:
        """As the kernel takes it."""
        length = self.rows.length
        columns = np.stack(self.columns, axis=1) if self.columns else np.zeros((length, 0), np.int64)
        known = np.stack(self.known, axis=1) if self.known else np.zeros((length, 0), np.bool_)
        table = np.array(self.table, np.int64).reshape(len(self.table), 5)
        return self.kernel.Carried(*map(read_only, (table, np.ascontiguousarray(columns), np.ascontiguousarray(known))))


class ForestMeasures(Measures):
    """Measures of a forest: what was carried takes the place of the rows of matches."""

    matches: Forest

    def _words(self, at: int) -> Int64s:
        words: Int64s = self.matches.words[self.points.match, at]
        return words

    def _taken(self, read: Navigation, until: Int64s) -> Int64s:
        row = self._words(self.matches.first_word[read])
        return np.where(row < 0, -1, row - self.matches.start[self.points.match] + self.begin)

    def _navigation(self, read: Navigation) -> pa.Array:
        if not isinstance(read.argument, Label):
            return super()._navigation(read)
        from trendlake.cep_core.match_recognize.kernels.forest import END

        place = self._words(END)
        return pa.array(self.plan.program.variables, pa.string()).take(arrow(place, place < 0))

    def _total(self, read: Total) -> pa.Array:
        if read.rows and not read.variables:
            return arrow(self.stop - self.begin)
        from trendlake.cep_core.match_recognize.kernels.forest import rounded_sums

        at = self.matches.first_word[read]
        if read.function == "COUNT":
            return arrow(self._words(at))
        argument = self.rows.value(read.arguments[0])
        if read.function in _CHOSEN:
            row = self._words(at)
            return argument.take(arrow(row, row < 0))
        counts, low, high = (self._words(at + word) for word in range(3))
        if read.family == "int":
            if (high != low >> 63).any():
                raise BadEventsError("SUM of whole numbers does not fit 64 bits")
            return arrow(low, counts == 0)
        unit, arrays = self.matches.units.get(read, 0), [read_only(one) for one in (counts, low, high)]
        given: list[Any] = [*arrays, unit, read.function == "AVG"]
        return arrow(rounded_sums(*given), counts == 0)
