"""The sums that a pass must carry for the measures asked for, and how sums of rows become columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.expressions.columnar import true_where
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.trends.compile.check_return import CHOICES, CheckedMeasure, Lengths
from trendlake.cep_core.trends.kernels.arguments import ADDED, EACH, LARGEST, LATEST, SPAN, STARTS, Tasks, Weights
from trendlake.cep_core.trends.kernels.rounding import BITS, part, span
from trendlake.cep_core.trends.run.sorted_rows import Slice

SECOND = 1_000_000.0
"""Microseconds; durations are shown in seconds."""


class Sum(NamedTuple):
    """A number to be added up over trends. `what`: trend (1 each), events (of `variable`; None: of all), present
    (events whose attribute is not NULL), value (the attribute's), span (microseconds from the first event to the last).
    `where`: only of events that satisfy it. `lengths`: trends of such lengths, counted by a pass of their own."""

    what: str
    variable: str | None = None
    attribute: str | None = None
    where: s.Expr | None = None
    lengths: Lengths | None = None
    whole: bool = False
    """Whether it is shown as a whole number."""


TREND = Sum("trend")
"""The sum that counts trends: always number 0."""
SPAN_SUM = Sum("span")


class Extreme(NamedTuple):
    """A value to be chosen among those of trends or occurrences, see `CheckedMeasure`."""

    function: str
    variable: str | None
    attribute: str | None
    by: str | None = None
    where: s.Expr | None = None
    of: str = ""


def sums_of(m: CheckedMeasure) -> tuple[Sum, ...]:
    """The sums that a measure is made of: a count; or a sum of values, after how many of them there are."""
    if m.lengths is not None:
        return (Sum("trend", lengths=m.lengths),)
    if m.function == "count":
        return (TREND if m.variable is None else Sum("events", m.variable, None, m.where),)
    if m.function not in ("sum", "avg"):
        return ()
    if m.of == "length":
        return (TREND, Sum("events", m.variable))
    if m.of == "duration":
        return (TREND, SPAN_SUM)
    whole = m.family == "duration"
    return tuple(Sum(what, m.variable, m.attribute, m.where, whole=whole) for what in ("present", "value"))


def extreme_of(m: CheckedMeasure) -> Extreme:
    """The extremum that a measure is."""
    return Extreme(m.function, m.variable, m.attribute, m.by, m.where, m.of)


@dataclass(frozen=True)
class Carried:
    """The sums and extrema a set of measures needs, in the order of a row. `filtered`: the sums that follow, each found
    by a pass over trends of some lengths. `longest`: whether the events of a longest trend are the last extremum.
    `means`: whether a mean of counts is asked for."""

    sums: tuple[Sum, ...]
    extremes: tuple[Extreme, ...]
    filtered: tuple[Sum, ...] = ()
    longest: bool = False
    means: bool = False

    @property
    def size(self) -> int:
        """Numbers of a row."""
        return len(self.sums) + len(self.filtered)

    @property
    def values(self) -> tuple[int, ...]:
        """The sums that are of an attribute's values, not counts."""
        return tuple(k for k, one in enumerate(self.sums) if one.what == "value")

    @property
    def counts_alone(self) -> bool:
        """Whether nothing but counts is shown of the sums."""
        return not self.means and all(one.what not in ("value", "span") for one in self.sums)

    def index(self, wanted: Sum) -> int:
        return (*self.sums, *self.filtered).index(wanted)

    def number_of(self, k: int) -> int:
        """The sum that says of how many values a sum of values is."""
        one = self.sums[k]
        return 0 if one.what == "span" else self.index(one._replace(what="present"))


def carried(measures: tuple[CheckedMeasure, ...]) -> Carried:
    """Number 0 is the trends; SUM and AVG need how many attributes were not NULL too."""
    sums: dict[Sum, None] = {TREND: None}
    extremes: dict[Extreme, None] = {}
    filtered: dict[Sum, None] = {}
    for m in measures:
        needed = sums_of(m)
        if m.lengths is not None:
            filtered |= dict.fromkeys(needed)
        elif needed:
            sums |= dict.fromkeys(needed)
        elif m.function != "longest":
            extremes[extreme_of(m)] = None
    return Carried(
        tuple(sums),
        tuple(extremes),
        tuple(filtered),
        any(m.function == "longest" for m in measures),
        any((m.function, m.of) == ("avg", "length") for m in measures),
    )


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
    and the values behind the extrema's codes. `tasks`: where a measure is of durations, they do not overlap."""

    def __init__(self, slice_: Slice, wanted: Carried, tasks: Tasks) -> None:
        self.slice, self.wanted, self.tasks = slice_, wanted, tasks
        n = slice_.length
        table: list[AnyArray] = []
        of: list[int] = []
        self.row_of: dict[int, int] = {}
        self.values_of: dict[int, Values] = {}
        for k, one in enumerate(wanted.sums):
            b = self._over(one)
            if one.what == "value":
                magnitude, exponent, negative = self._values(b, str(one.attribute))
                counts = (slice_.ok & np.uint64(1 << b)) != 0
                magnitude = np.where(counts & self._passes(one.where, one.variable), magnitude, np.uint64(0))
                self.values_of[k] = self._cut(magnitude, exponent, negative, table)
            elif one.what == "span":
                none = np.zeros(n, np.int64)
                self.values_of[k] = self._cut(self._since.astype(np.uint64), none, none != 0, table)
            else:
                self.row_of[k] = len(table)
                table.append(self._counted(one))
            of += [b] * (len(table) - len(of))
        self.shown: list[pa.Array] = []
        codes = np.full((len(wanted.extremes), n), -np.inf)
        for m, extreme in enumerate(wanted.extremes):
            self._code(extreme, codes[m])
        rows = np.stack(table) if len(table) > 1 else table[0].reshape(1, n)  # one row is not copied
        over = np.array([self._extreme_over(one) for one in wanted.extremes], np.int64)
        how = np.array([_HOW.get(one.of, LARGEST) for one in wanted.extremes], np.int64)
        self.weights = Weights(np.array(of, np.int64), rows, over, codes, how)

    def _over(self, one: Sum) -> int:
        """The events of a sum, as in `Weights.variable`."""
        if one.variable is not None:
            return self.slice.events.plan.variables.index(one.variable)
        return {"span": SPAN, "events": EACH}.get(one.what, -1)

    def _extreme_over(self, one: Extreme) -> int:
        """The events of an extremum, as in `Weights.extreme`."""
        if one.variable is not None:
            return self.slice.events.plan.variables.index(one.variable)
        return EACH if one.of == "length" else STARTS

    def _counted(self, one: Sum) -> Float64s:
        """The number that each event adds to a count."""
        n = self.slice.length
        if one.what == "trend":
            return np.zeros(n)
        counted: Float64s = np.ones(n)
        if one.attribute is not None:
            counted *= valid(self.slice.column(one.attribute))
        if one.where is not None:
            counted *= self._passes(one.where, one.variable)
        return counted

    def _passes(self, where: s.Expr | None, variable: str | None) -> Bools:
        """Events of the slice that satisfy the condition of FILTER, as far as the variable may bind them."""
        if where is None or variable is None:
            return np.ones(self.slice.length, np.bool_)
        bound = (self.slice.ok & np.uint64(1 << self.slice.events.plan.variables.index(variable))) != 0
        return true_where(bound, where, lambda read: self.slice.column(read.name))

    @cached_property
    def _since(self) -> Float64s:
        """Microseconds since the start of the window, of events in a task."""
        since = np.zeros(self.slice.length)
        if len(self.tasks.lo):
            places = np.arange(self.slice.length)
            task = np.maximum(np.searchsorted(self.tasks.lo, places, "right") - 1, 0)
            inside = (self.tasks.lo[task] <= places) & (places < self.tasks.hi[task])
            since[inside] = (self.slice.time - self.tasks.ws[task])[inside]
        return since

    def _code(self, extreme: Extreme, codes: Float64s) -> None:
        """Write what each event has for an extremum: the largest is the extremum. Adds to `shown`."""
        function, variable, attribute = extreme.function, extreme.variable, str(extreme.attribute)
        sign = 1.0 if function == "max" else -1.0
        if extreme.of == "length":
            codes[:] = sign
            self.shown.append(pa.nulls(0, pa.int64()))
            return
        if extreme.of == "duration":
            codes[:] = -sign * self._since
            self.shown.append(pa.nulls(0, pa.int64()))
            return
        passes = self._passes(extreme.where, variable)
        if function in CHOICES:
            ranks, values = self.slice.events.chosen(function, attribute, extreme.by)
            mine = ranks[self.slice.rows]
            known = passes & (mine >= 0)
            codes[known] = mine[known]
            self.shown.append(values)
            return
        column = reals(self.slice.column(attribute))
        distinct = pc.unique(column.drop_null())
        distinct = distinct.take(pc.sort_indices(distinct))
        self.shown.append(distinct)
        if len(distinct):
            places = pc.index_in(column, distinct)
            known = passes & valid(column)
            codes[known] = sign * numbers(places, 0).astype(np.float64)[known]

    @cached_property
    def reals(self) -> Weights:
        """Weights of a pass in floats: a row for each sum, then one of the magnitudes for each that is of values."""
        n = self.slice.length
        table, of = np.zeros((len(self.wanted.sums) + len(self.wanted.values), n)), []
        for k, one in enumerate(self.wanted.sums):
            b = self._over(one)
            if one.what == "value":
                table[k] = np.where(self._passes(one.where, one.variable), self._reals(b, str(one.attribute)), 0.0)
            else:
                table[k] = self._since if one.what == "span" else self.weights.weights[self.row_of[k]]
            of.append(b)
        for row, k in enumerate(self.wanted.values, len(self.wanted.sums)):
            table[row] = np.abs(table[k])
            of.append(of[k])
        none = np.zeros(0, np.int64)
        return Weights(np.array(of, np.int64), table, none, np.zeros((0, n)), none)

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
        """The value behind an extremum's code; None when no event gave one. A value that another attribute or time
        chose comes after what chose it."""
        if code == -np.inf:
            return None
        extreme = self.wanted.extremes[m]
        if extreme.of:
            return abs(int(code)) if extreme.of == "length" else abs(code) / SECOND
        value = self.shown[m][abs(int(code))].as_py()
        return (int(code), value) if extreme.function in CHOICES else value

    def extreme_values(self, m: int, codes: Float64s) -> pa.Array:
        """`extreme_value` of many codes, as an Arrow array."""
        known = codes > -np.inf
        size = np.where(known, np.abs(np.where(known, codes, 0.0)), 0.0)
        if self.wanted.extremes[m].of == "duration":
            return arrow(size / SECOND, ~known)
        whole = size.astype(np.int64)
        if self.wanted.extremes[m].of == "length":
            return arrow(whole, ~known)
        return self.shown[m].take(arrow(whole, ~known))


_HOW = {"length": ADDED, "duration": LATEST}
