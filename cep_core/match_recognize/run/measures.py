"""Measures of all matches at once: what they read of matches as columns, then their expressions over these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.expressions.columnar import evaluate
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import LIST, Cell, Label, Navigation, Number, Total, every, whole
from trendlake.cep_core.match_recognize.compile.plan import Column, RowPatternPlan
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.registers import added, rounded
from trendlake.cep_core.match_recognize.run.rows import Rows

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
        of_place = np.array([not variables or name in variables for name in self.plan.program.variables], np.bool_)
        return of_place[self.matches.places]

    def _taken(self, variables: tuple[str, ...]) -> tuple[Int64s, Int64s]:
        """The rows of matches that are mapped to one of some variables, and how many of them come before each row."""
        key = ("taken", variables)
        if key not in self._known:
            mapped = self._mapped(variables)
            self._known[key] = np.flatnonzero(mapped), np.concatenate([np.zeros(1, np.int64), np.cumsum(mapped)])
        taken, before = self._known[key]
        return taken, before

    def _until(self, leaf: Navigation | Total) -> Int64s:
        """Behind which row of all rows of matches a point sees no more."""
        return self.stop if leaf.final else np.where(self.points.at < 0, self.begin, self.points.at + 1)

    def _rows_of(self, read: Navigation) -> tuple[Int64s, Bools]:
        """The row that a navigation reaches from each point, and whether there is one."""
        until = self._until(read)
        offset = whole(read.offset)
        if read.variables:
            taken, before = self._taken(read.variables)
            first, behind = before[self.begin], before[until]
            place = first + offset if read.first else behind - 1 - offset
            known = (place >= first) & (place < behind)
            at = taken[np.where(known, place, 0)] if len(taken) else np.zeros(self.length, np.int64)
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
        inner = list(every(read.argument))
        if isinstance(read.argument, Cell):
            return self.rows.column(read.argument.name).take(arrow(row, ~known))
        if not any(isinstance(one, Label | Number) for one in inner):
            return self._at(read.argument, row, known)
        at = self.begin + row - self.matches.start[self.points.match]
        inside = known & (at >= self.begin) & (at < self.stop)
        names = self.plan.program.variables
        if isinstance(read.argument, Label):
            codes = self.matches.places[np.where(inside, at, 0)] if len(self.matches.places) else np.zeros(len(at), int)
            return pa.array(names, pa.string()).take(arrow(np.asarray(codes, np.int64), ~inside))
        argument, numbered = self.rows.values(read.argument), self.matches.number[self.points.match].tolist()
        places = self.matches.places
        result = [
            argument(names[places[flat]] if within else None, one, number) if there else None
            for one, there, flat, within, number in zip(
                row.tolist(), known.tolist(), at.tolist(), inside.tolist(), numbered, strict=True
            )
        ]
        return pa.array(result, TYPES[read.family])

    def _at(self, node: s.Expr, row: Int64s, known: Bools) -> pa.Array:
        """An expression of one row at the rows that are known, and at no other."""
        asked = arrow(row[known])
        values = evaluate(node, lambda cell: self.rows.column(cell.name).take(asked), len(asked))
        return values.take(arrow(np.cumsum(known) - 1, ~known)) if len(asked) else pa.nulls(self.length, values.type)

    # --- aggregates

    def _total(self, read: Total) -> pa.Array:
        until = self._until(read)
        if read.rows and not read.variables:
            return arrow(until - self.begin)
        mapped = self._mapped(read.variables)
        if read.rows:
            return arrow(_between(mapped.astype(np.int64), self.begin, until))
        values = self._argument(read.arguments[0], mapped, read.kinds[0])
        known = mapped & valid(values)
        if read.distinct:
            known = self._first_times(values, known)
        function = read.function
        counts = _between(known.astype(np.int64), self.begin, until)
        if function == "COUNT":
            return arrow(counts)
        if function in ("SUM", "AVG"):
            return self._sum(read, values, known, counts, until)
        if function in ("ARRAY_AGG", "STRING_AGG"):
            return self._collected(read, values, mapped if function == "ARRAY_AGG" else known, until)
        return self._chosen(read, values, known, mapped, until)

    def _argument(self, node: s.Expr, mapped: Bools, family: str) -> pa.Array:
        """An argument at each row of a match that is `mapped`."""
        rows = self.matches.row
        inner = list(every(node))
        if isinstance(node, Cell):
            return self.rows.column(node.name).take(arrow(rows))
        if not any(isinstance(one, Label | Number) for one in inner):
            asked = arrow(rows[mapped])
            result = evaluate(node, lambda cell: self.rows.column(cell.name).take(asked), len(asked))
            place = np.cumsum(mapped) - 1
            return result.take(arrow(place, ~mapped)) if len(asked) else pa.nulls(len(rows), result.type)
        names = self.plan.program.variables
        if isinstance(node, Label):
            return pa.array(names, pa.string()).take(arrow(self.matches.places))
        argument, numbered = self.rows.values(node), self.matches.number[self.matches.owner].tolist()
        places = self.matches.places.tolist()
        result = [
            argument(names[place], row, number) if there else None
            for place, row, number, there in zip(places, rows.tolist(), numbered, mapped.tolist(), strict=True)
        ]
        return pa.array(result, TYPES[family])

    def _first_times(self, values: pa.Array, known: Bools) -> Bools:
        """Which known values are the first of their kind in their match."""
        rows = np.flatnonzero(known)
        (codes,), size = ordered_codes(values.take(arrow(rows)))
        key = self.matches.owner[rows] * max(1, size) + codes
        first = np.zeros(len(known), np.bool_)
        first[rows[np.unique(key, return_index=True)[1]]] = True
        return first

    def _sum(self, read: Total, values: pa.Array, known: Bools, counts: Int64s, until: Int64s) -> pa.Array:
        if read.family == "int" and pa.types.is_integer(values.type):
            given = np.where(known, numbers(values, 0), 0)
            low, high = given & 0xFFFFFFFF, given >> 32
            lows, highs = _between(low, self.begin, until), _between(high, self.begin, until)
            highs += lows >> 32
            if (np.abs(highs + 0.5) > 2**31).any():
                raise BadEventsError("SUM of whole numbers does not fit 64 bits")
            return arrow((highs << 32) | (lows & 0xFFFFFFFF), counts == 0)
        listed = reals(values).to_pylist()
        kind = "int" if pa.types.is_integer(values.type) else "double"
        return pa.array(self._exact(read.function, kind, listed, known.tolist(), until.tolist()), TYPES[read.family])

    def _exact(
        self, function: str, kind: str, values: list[Any], known: list[bool], until: list[int]
    ) -> list[float | int | None]:
        """SUM or AVG by exact arithmetic: of the points of one match each goes on where the one before ended."""
        result: list[float | int | None] = []
        exact, at, of = (0, 0, 0, 0), 0, -1
        for match, begin, end in zip(self.points.match.tolist(), self.begin.tolist(), until, strict=True):
            if match != of or end < at:
                exact, at, of = (0, 0, 0, 0), begin, match
            while at < end:
                if known[at]:
                    exact = added(exact, values[at])
                at += 1
            result.append(rounded(exact, function, kind))
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
            decided = self._argument(read.arguments[1], mapped, read.kinds[1])
            known = mapped & valid(decided)
        if function == "ANY_VALUE":
            codes: AnyArray = np.zeros(len(known), np.int64)
        else:
            codes = ordered_codes(decided)[0][0].astype(np.int64)
            if function in ("MIN", "MIN_BY", "BOOL_AND"):
                codes = -codes
        best = first_best(codes, known, self.matches.offset)
        at = np.where(until > self.begin, until - 1, 0)
        chosen = best[at] if len(best) else np.full(self.length, -1)
        missing = (until <= self.begin) | (chosen < 0)
        return values.take(arrow(np.where(missing, 0, chosen), missing))


def _between(values: Int64s, begin: Int64s, until: Int64s) -> Int64s:
    """The sum of values from each begin to each end."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    between: Int64s = sums[until] - sums[begin]
    return between
