"""Measures of all matches at once: what they read of matches as columns, then their expressions over these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, read_only, valid
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.expressions.columnar import evaluate
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import LIST, Cell, Label, Navigation, Number, Total, whole
from trendlake.cep_core.match_recognize.compile.plan import Column, RowPatternPlan
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.registers import added, rounded
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.sums import unit_of

TYPES = {
    "int": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.int64(),
    "date": pa.int64(),
    "duration": pa.int64(),
    "null": pa.null(),
}


@dataclass(frozen=True)
class Points:
    """Where measures are asked: a match, and one of its rows by its place in all rows of matches; -1: of an empty
    match."""

    match: Int64s
    at: Int64s


class Measures:
    """The values at `points` that the measures of one run are computed of."""

    def __init__(self, plan: RowPatternPlan, rows: Rows, matches: Matches, points: Points) -> None:
        self.plan, self.rows, self.matches, self.points = plan, rows, matches, points
        self.length = len(points.match)
        self.begin = matches.offset[points.match]
        self.stop = matches.offset[points.match + 1]
        self.row = matches.start[points.match] + points.at - self.begin
        self._known: dict[Any, Any] = {}

    def column(self, measure: Column) -> pa.Array:
        """A measure at each point; one that is a column of the input is of its type, any other normalised."""
        node = measure.value
        assert node is not None
        if isinstance(node, Navigation) and isinstance(node.argument, Cell):
            row, known = self._rows_of(node)
            return self.rows.raw(node.argument.name, row, ~known)
        return evaluate(node, self._leaf, self.length)

    def _leaf(self, read: s.Attribute) -> pa.Array:
        if read not in self._known:
            self._known[read] = self._computed(read)
        array: pa.Array = self._known[read]
        return array

    def _computed(self, read: s.Attribute) -> pa.Array:
        match read:
            case Number():
                return arrow(self.matches.number[self.points.match])
            case Navigation():
                return self._navigation(read)
            case Total():
                return self._total(read)
        raise AssertionError(read)  # pragma: no cover - no other leaf stands in a measure

    # --- navigations

    def _mapped(self, variables: tuple[str, ...]) -> Bools:
        """Which rows of matches are mapped to one of some variables."""
        if not variables:
            return np.ones(len(self.matches.places), np.bool_)
        of_place = np.array([name in variables for name in self.plan.program.variables], np.bool_)
        return of_place[self.matches.places]

    def _taken(self, read: Navigation, until: Int64s) -> Int64s:
        """Of each point the row, among all rows of matches, that a navigation of variables starts from; -1 for none."""
        mapped, offset = self._mapped(read.variables), whole(read.offset)
        if read.first or not offset:
            from trendlake.cep_core.match_recognize.kernels.measures import row_taken  # brings numba

            given: list[Any] = [read_only(one) for one in (mapped, self.begin, until)]
            given.append(offset if read.first else -1)
            return row_taken(*given)
        taken = np.flatnonzero(mapped)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(mapped)])
        place = before[until] - 1 - offset
        known = place >= before[self.begin]
        return np.where(known, taken[np.where(known, place, 0)], -1) if len(taken) else np.full(self.length, -1)

    def _until(self, leaf: Navigation | Total) -> Int64s:
        """Behind which row of all rows of matches a point sees no more."""
        return self.stop if leaf.final else self._now

    @cached_property
    def _now(self) -> Int64s:
        """Behind the row of each point."""
        at = self.points.at
        return at + 1 if self._all_known else np.where(at < 0, self.begin, at + 1)

    @cached_property
    def _all_known(self) -> bool:
        """Whether no point is of an empty match."""
        return not bool((self.points.at < 0).any())

    def _rows_of(self, read: Navigation) -> tuple[Int64s, Bools]:
        """The row that a navigation reaches from each point, and whether there is one."""
        until = self._until(read)
        offset = whole(read.offset)
        if not (read.variables or read.first or read.final or read.sign or offset):  # the row of the point itself
            known = self.points.at >= 0
            return np.where(known, self.row, 0), known
        if read.variables:
            at = self._taken(read, until)
            known = at >= 0
        else:
            at = self.begin + offset if read.first else until - 1 - offset
            known = (at >= self.begin) & (at < until)
        start = self.matches.start[self.points.match]
        row = start + at - self.begin
        if read.sign:
            row = row + read.sign * whole(read.shift)
            part = self.rows.partition_of[start] if self.length else start
            known = known & (row >= self.rows.bounds[part]) & (row < self.rows.bounds[part + 1])
        return np.where(known, row, 0), known

    def _navigation(self, read: Navigation) -> pa.Array:
        row, known = self._rows_of(read)
        at = self.begin + row - self.matches.start[self.points.match]
        inside = known & (at >= self.begin) & (at < self.stop)
        return self._at(read.argument, row, known, np.where(inside, at, -1), self.points.match)

    def _at(self, node: s.Expr, row: Int64s, known: Bools, place: Int64s, match: Int64s) -> pa.Array:
        """An expression of one row at the rows that are known, and at no other. `place`: of each row that among all
        rows of matches, -1 for a row outside of its match; `match`: the match."""
        missing = ~known
        if isinstance(node, Cell):
            return self.rows.column(node.name).take(arrow(row, missing))
        if isinstance(node, Label):
            return self._labels(place)
        asked = np.flatnonzero(known)

        def leaf(read: s.Attribute) -> pa.Array:
            if isinstance(read, Label):
                return self._labels(place[asked])
            if isinstance(read, Number):
                return arrow(self.matches.number[match[asked]])
            return self.rows.column(read.name).take(arrow(row[asked]))

        values = evaluate(node, leaf, len(asked))
        return values.take(arrow(np.cumsum(known) - 1, missing)) if len(asked) else pa.nulls(len(row), values.type)

    def _labels(self, place: Int64s) -> pa.Array:
        """The variables of rows of matches; NULL where the place is -1."""
        names = pa.array(self.plan.program.variables, pa.string())
        outside = place < 0
        if not len(self.matches.places):
            return pa.nulls(len(place), pa.string())
        return names.take(arrow(self.matches.places[place], outside))

    # --- aggregates

    def _total(self, read: Total) -> pa.Array:
        until = self._until(read)
        if read.rows and not read.variables:
            return arrow(until - self.begin)
        mapped = self._mapped(read.variables)
        if read.rows:
            return arrow(_between(mapped.astype(np.int64), self.begin, until))
        values = self._argument(read.arguments[0], read.variables, mapped)
        known = mapped & valid(values) if values.null_count else mapped
        if read.distinct:
            known = self._first_times(values, known)
        function = read.function
        if function == "COUNT":
            return arrow(_between(known.astype(np.int64), self.begin, until))
        if function in ("SUM", "AVG"):
            return self._sum(read, values, known, until)
        if function in ("ARRAY_AGG", "STRING_AGG"):
            return self._collected(read, values, mapped if function == "ARRAY_AGG" else known, until)
        return self._chosen(read, values, known, mapped, until)

    def _argument(self, node: s.Expr, variables: tuple[str, ...], mapped: Bools) -> pa.Array:
        """An argument at each row of a match that is `mapped`, to one of the variables."""
        key = ("argument", node, variables)
        if key not in self._known:
            matches = self.matches
            self._known[key] = self._at(node, matches.row, mapped, np.arange(len(matches.places)), matches.owner)
        array: pa.Array = self._known[key]
        return array

    def _first_times(self, values: pa.Array, known: Bools) -> Bools:
        """Which known values are the first of their kind in their match."""
        rows = np.flatnonzero(known)
        (codes,), size = ordered_codes(values.take(arrow(rows)))
        key = self.matches.owner[rows] * max(1, size) + codes
        first = np.zeros(len(known), np.bool_)
        first[rows[np.unique(key, return_index=True)[1]]] = True
        return first

    def _sum(self, read: Total, values: pa.Array, known: Bools, until: Int64s) -> pa.Array:
        if read.family == "int" and pa.types.is_integer(values.type):
            given = np.where(known, numbers(values, 0), 0)
            low, high = given & 0xFFFFFFFF, given >> 32
            lows, highs = _between(low, self.begin, until), _between(high, self.begin, until)
            highs += lows >> 32
            if (np.abs(highs + 0.5) > 2**31).any():
                raise BadEventsError("SUM of whole numbers does not fit 64 bits")
            none = _between(known.astype(np.int64), self.begin, until) == 0
            return arrow((highs << 32) | (lows & 0xFFFFFFFF), none)
        whole = pa.types.is_integer(values.type)
        given = numbers(reals(values).cast(pa.int64() if whole else pa.float64()), 0)
        doubles = np.zeros(0, np.float64) if whole else given
        unit = 0 if whole else unit_of(doubles, known)
        if unit is not None:
            from trendlake.cep_core.match_recognize.kernels.measures import sums  # brings numba

            columns: list[Any] = [doubles, given if whole else np.zeros(0, np.int64), known, self.begin, until]
            columns = [*map(read_only, columns), unit, read.function == "AVG"]
            return arrow(*sums(*columns))
        listed = self._exact(read.function, given.tolist(), known.tolist(), until.tolist())
        return pa.array(listed, TYPES[read.family])

    def _exact(
        self, function: str, values: list[float], known: list[bool], until: list[int]
    ) -> list[float | int | None]:
        """SUM or AVG of doubles of any size: of the points of one match each goes on where the one before ended."""
        result: list[float | int | None] = []
        exact, at, of = (0, 0, 0, 0), 0, -1
        for match, begin, end in zip(self.points.match.tolist(), self.begin.tolist(), until, strict=True):
            if match != of or end < at:
                exact, at, of = (0, 0, 0, 0), begin, match
            while at < end:
                if known[at]:
                    exact = added(exact, values[at])
                at += 1
            result.append(rounded(exact, function, "double"))
        return result

    def _collected(self, read: Total, values: pa.Array, taken: Bools, until: Int64s) -> pa.Array:
        """ARRAY_AGG, STRING_AGG."""
        rows = np.flatnonzero(taken)
        chosen = values.take(arrow(rows))
        first, last = np.searchsorted(rows, self.begin), np.searchsorted(rows, until)
        counts = last - first
        index = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        items = chosen.take(arrow(index))
        ends = np.concatenate([[0], np.cumsum(counts)])
        if ends[-1] >= 2**31:
            raise BadEventsError(f"{read.function} collects more than 2,147,483,647 values")
        missing = counts == 0
        if read.family.startswith(LIST):
            items = items.cast(TYPES[read.family.removeprefix(LIST)])
        offsets = arrow(ends.astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, items)
        if missing.any():
            lists = pc.if_else(arrow(~missing), lists, pa.scalar(None, lists.type))
        if read.function == "ARRAY_AGG":
            return lists
        separator = read.arguments[1]
        assert isinstance(separator, s.Literal)
        return pc.binary_join(lists.cast(pa.list_(pa.string())), str(separator.value))

    def _chosen(self, read: Total, values: pa.Array, known: Bools, mapped: Bools, until: Int64s) -> pa.Array:
        """Aggregates that give the value of one row."""
        from trendlake.cep_core.match_recognize.kernels.measures import first_best  # brings numba

        function = read.function
        decided = values
        if function in ("MAX_BY", "MIN_BY"):
            decided = self._argument(read.arguments[1], read.variables, mapped)
            known = mapped & valid(decided) if decided.null_count else mapped
        if function == "ANY_VALUE":
            codes: AnyArray = np.zeros(len(known), np.int64)
        else:
            codes = ranks(decided)
            if function in ("MIN", "MIN_BY", "BOOL_AND"):
                codes = ~codes
        chosen = first_best(*map(read_only, (codes, known, self.begin, until)))
        missing = chosen < 0
        return values.take(arrow(np.where(missing, 0, chosen), missing) if missing.any() else arrow(chosen))


def ranks(values: pa.Array) -> Int64s:
    """Numbers in the order of the values."""
    if pa.types.is_integer(values.type):
        return np.asarray(numbers(values, 0), np.int64)
    if pa.types.is_floating(values.type):
        bits = numbers(values, 0.0).view(np.int64)
        return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return ordered_codes(values)[0][0].astype(np.int64)


def _between(values: Int64s, begin: Int64s, until: Int64s) -> Int64s:
    """The sum of values from each begin to each end."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    between: Int64s = sums[until] - sums[begin]
    return between
