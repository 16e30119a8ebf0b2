"""The sums that a pass must carry for the measures asked for, and how sums of rows become columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.trends.compile.check import CheckedMeasure
from trendlake.cep_core.trends.kernels.arguments import Weights
from trendlake.cep_core.trends.kernels.rounding import BITS, part, span
from trendlake.cep_core.trends.run.sorted_rows import Slice

TREND = ("trend", None, None)
"""The sum that counts trends: always number 0."""

Sum = tuple[str, str | None, str | None]
"""(what, variable, attribute); what: trend, events, present (attribute not NULL), value."""


@dataclass(frozen=True)
class Carried:
    """The sums and extrema a set of measures needs, in the order of a row."""

    sums: tuple[Sum, ...]
    extremes: tuple[tuple[str, str, str], ...]
    """(min or max, variable, attribute)."""

    @property
    def values(self) -> tuple[int, ...]:
        """The sums that are of an attribute's values, not counts."""
        return tuple(k for k, (what, _, _) in enumerate(self.sums) if what == "value")

    def index(self, what: str, variable: str | None, attribute: str | None) -> int:
        return self.sums.index((what, variable, attribute))


def carried(measures: tuple[CheckedMeasure, ...]) -> Carried:
    """Number 0 is the trends; SUM and AVG need how many attributes were not NULL too."""
    sums: dict[Sum, None] = {TREND: None}
    extremes: dict[tuple[str, str, str], None] = {}
    for m in measures:
        if m.function == "count" and m.variable is not None:
            sums["events", m.variable, None] = None
        elif m.function in ("sum", "avg"):
            for what in ("present", "value"):
                sums[what, m.variable, m.attribute] = None
        elif m.function in ("min", "max"):
            extremes[m.function, str(m.variable), str(m.attribute)] = None
    return Carried(tuple(sums), tuple(extremes))


@dataclass(frozen=True)
class Values:
    """A column's values, cut into parts: `rows` are what a pass adds, row i is to be taken 2^(bit + place[i])
    times; `largest` of each."""

    bit: int
    place: Int64s
    rows: tuple[int, ...]
    largest: Float64s


class Contributions:
    """The numbers that each event of a slice adds. `weights` for a pass in whole numbers, in which a count is a row and
    a sum of values as many as it has parts; `row_of`: the rows of the counts, by sum; `values`: those of the others;
    and the values behind the extrema's codes."""

    def __init__(self, slice_: Slice, wanted: Carried) -> None:
        self.slice, self.wanted = slice_, wanted
        n = slice_.length
        table: list[AnyArray] = []
        of: list[int] = []
        self.row_of: dict[int, int] = {}
        self.values_of: dict[int, Values] = {}
        for k, (what, variable, attribute) in enumerate(wanted.sums):
            b = -1 if variable is None else slice_.events.plan.variables.index(variable)
            if what == "value":
                magnitude, exponent, negative = self._values(b, str(attribute))
                magnitude = np.where((slice_.ok & np.uint64(1 << b)) != 0, magnitude, np.uint64(0))
                self.values_of[k] = self._cut(magnitude, exponent, negative, table)
            else:
                self.row_of[k] = len(table)
                column = slice_.column(str(attribute)) if what == "present" else None
                if column is not None:
                    table.append(valid(column) * 1.0)
                else:
                    table.append(np.zeros(n) if variable is None else np.ones(n))
            of += [b] * (len(table) - len(of))
        variables = np.array(of, np.int64)
        extreme = np.zeros(len(wanted.extremes), np.int64)
        codes = np.full((len(wanted.extremes), n), -np.inf)
        self.shown: list[pa.Array] = []
        for m, (function, variable, attribute) in enumerate(wanted.extremes):
            extreme[m] = slice_.events.plan.variables.index(variable)
            column = reals(slice_.column(attribute))
            distinct = pc.unique(column.drop_null())
            distinct = distinct.take(pc.sort_indices(distinct))
            self.shown.append(distinct)
            if len(distinct):
                places = pc.index_in(column, distinct)
                known = valid(column)
                ranks = numbers(places, 0).astype(np.float64)
                codes[m, known] = ranks[known] if function == "max" else -ranks[known]
        rows = np.stack(table) if len(table) > 1 else table[0].reshape(1, n)  # one row is not copied
        self.weights = Weights(variables, rows, extreme, codes)

    @cached_property
    def reals(self) -> Weights:
        """Weights of a pass in floats: a row for each sum, then one of the magnitudes for each that is of values."""
        plan, n = self.slice.events.plan, self.slice.length
        table, of = np.zeros((len(self.wanted.sums) + len(self.wanted.values), n)), []
        for k, (_, variable, attribute) in enumerate(self.wanted.sums):
            b = -1 if variable is None else plan.variables.index(variable)
            table[k] = self._reals(b, str(attribute)) if k in self.values_of else self.weights.weights[self.row_of[k]]
            of.append(b)
        for row, k in enumerate(self.wanted.values, len(self.wanted.sums)):
            table[row] = np.abs(table[k])
            of.append(of[k])
        return Weights(np.array(of, np.int64), table, np.zeros(0, np.int64), np.zeros((0, n)))

    def _reals(self, variable: int, attribute: str) -> Float64s:
        """A column's values as float64, 0 where NULL. Raises BadEventsError where an event that counts has an infinite
        one: sums of such have no meaning in the language. Of events that do not count it is put to 0."""
        column = self.slice.column(attribute)
        if pa.types.is_null(column.type):
            return np.zeros(self.slice.length)
        values = numbers(reals(column), 0).astype(np.float64)
        infinite = ~np.isfinite(values)
        if (infinite & ((self.slice.ok & np.uint64(1 << variable)) != 0)).any():
            raise BadEventsError(
                f"'{attribute}' has an infinite value: it has no sum and no mean",
                hint="set such rows apart by the contract (minimum, maximum), or leave them out by a condition",
            )
        values[infinite] = 0.0
        return values

    def _values(self, variable: int, attribute: str) -> tuple[UInt64s, Int64s, Bools]:
        """A column's values as magnitude (n, uint64) times 2^exponent (n, int64), and where they are negative."""
        column = self.slice.column(attribute)
        if pa.types.is_integer(column.type):
            values = numbers(column, 0).astype(np.int64)
            negative = values < 0
            return np.where(negative, -values, values).view(np.uint64), np.zeros(len(values), np.int64), negative
        m, e = np.frexp(self._reals(variable, attribute))
        return np.abs(m * 2.0**53).astype(np.uint64), e.astype(np.int64) - 53, m < 0.0

    @staticmethod
    def _cut(magnitude: UInt64s, exponent: Int64s, negative: Bools, table: list[AnyArray]) -> Values:
        """Put the parts of values into `table`, none where all are 0."""
        bounds = np.zeros(2, np.int64)
        span(magnitude, exponent, bounds)
        low, high = bounds.tolist()
        place, rows, largest = [], [], []
        count = -(-(high - low) // BITS)
        bits = -(-(high - low) // max(1, count))
        for at in range(0, high - low, max(1, bits)):
            row = np.empty(len(magnitude))
            most = part(magnitude, exponent, negative, low + at, bits, row)
            if most:
                place.append(at)
                rows.append(len(table))
                largest.append(most)
                table.append(row)
        return Values(low, np.array(place, np.int64), tuple(rows), np.array(largest))

    def extreme_value(self, m: int, code: float) -> Any:
        """The attribute's value behind an extremum's code; None when no event gave one."""
        if code == -np.inf:
            return None
        rank = int(code) if self.wanted.extremes[m][0] == "max" else int(-code)
        return self.shown[m][rank].as_py()

    def extreme_values(self, m: int, codes: Float64s) -> pa.Array:
        """`extreme_value` of many codes, as an Arrow array."""
        known = codes > -np.inf
        ranks = np.where(known, np.abs(np.where(known, codes, 0.0)), 0.0).astype(np.int64)
        return self.shown[m].take(arrow(ranks, ~known))
