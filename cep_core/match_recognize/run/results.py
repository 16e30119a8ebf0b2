"""From matches to the table of results."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import LimitError
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.normalise import normalise, reals
from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.cep_core.expressions.columnar import evaluate, true_rows
from trendlake.cep_core.language.unparse import moment
from trendlake.cep_core.match_recognize.compile.leaves import Cell, columns_of
from trendlake.cep_core.match_recognize.compile.plan import Column, RowPatternPlan, column_type
from trendlake.cep_core.match_recognize.run.forest import Forest, ForestMeasures
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.measures import Measures, Points
from trendlake.cep_core.match_recognize.run.rows import Rows

_DAY = 86_400_000_000


def result_of(
    plan: RowPatternPlan, rows: Rows, matches: Matches, windows: range | None, zone: Bools | None = None
) -> pa.Table:
    """The rows of the result as `plan.result_schema` says; with `zone` those of matches that begin at one of these
    rows, and of rows without a match among them. Raises LimitError, BadEventsError."""
    schema = plan.result_schema
    given = _Given(plan, rows, matches, windows, zone)
    table = given.table()
    chosen = np.arange(table.num_rows)
    nodes = [plan.chosen, *(column.value for column in plan.selected if not isinstance(column.value, Cell))]
    names = dict.fromkeys(name for node in nodes if node is not None for name in columns_of(node))
    columns = {name: normalise(table.column(name)) for name in names}
    if plan.chosen is not None:
        chosen = np.flatnonzero(true_rows(evaluate(plan.chosen, lambda read: columns[read.name], table.num_rows)))
        index = arrow(chosen)
        table = table.take(index)
        columns = {name: column.take(index) for name, column in columns.items()}
    given.limited(chosen)
    arrays = []
    for column, field in zip(plan.selected, schema, strict=True):
        if column.value is None:
            arrays.append(table.column(column.name).combine_chunks().cast(field.type))
        elif isinstance(column.value, Cell):
            arrays.append(table.column(column.value.name).combine_chunks().cast(field.type))
        else:
            values = evaluate(column.value, lambda read: columns[read.name], table.num_rows)
            arrays.append(typed(values, column))
    return pa.table(arrays, schema=schema)


def typed(values: pa.Array, column: Column) -> pa.Array:
    """A normalised array as a column of the result."""
    kind = column_type(column.type_name)
    if values.type == kind:
        return values
    if pa.types.is_list(kind):
        if pa.types.is_null(values.type):
            return pa.nulls(len(values), kind)
        items = typed(values.flatten(), Column("", column.type_name.split(" of ", 1)[1], ""))
        lengths = numbers(pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64()))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        missing = numbers(pc.is_null(values))
        return pa.ListArray.from_arrays(arrow(offsets), items, mask=arrow(missing))
    if pa.types.is_date(kind) and pa.types.is_integer(values.type):
        return pc.divide(values, _DAY).cast(pa.int32()).cast(kind)
    if pa.types.is_floating(kind):
        return reals(values).cast(kind, safe=False)
    return values.cast(kind)


class _Given:
    """The columns that the clause gives: of matches (or their rows), then of rows that no match has."""

    def __init__(
        self, plan: RowPatternPlan, rows: Rows, matches: Matches, windows: range | None, zone: Bools | None
    ) -> None:
        self.plan, self.rows, self.matches = plan, rows, matches
        self.start, self.end = self._spans()
        self.points, self.row = self._points()
        unmatched = self._unmatched() if plan.rows == "unmatched" else np.zeros(0, np.int64)
        match = self.points.match
        self.begins = np.concatenate([self.start[match], rows.times[unmatched]])
        self.ends = np.concatenate([self.end[match], rows.times[unmatched]])
        inside = None
        if windows is not None:
            low, high = plan.owned(windows)[1:] if len(windows) else (0, 0)
            inside = (self.ends >= low) & (self.ends < high)
        elif zone is not None:
            inside = zone[np.concatenate([matches.start[match], unmatched])]
        if inside is not None:
            of_match, of_row = inside[: len(match)], inside[len(match) :]
            self.points = Points(match[of_match], self.points.at[of_match])
            self.row, unmatched = self.row[of_match], unmatched[of_row]
            self.begins, self.ends = self.begins[inside], self.ends[inside]
        self.unmatched = unmatched

    def _spans(self) -> tuple[Int64s, Int64s]:
        """The earlier and the later time of the first and last row of each match."""
        matches, times = self.matches, self.rows.times
        first = times[matches.start]
        last = times[matches.start + np.maximum(matches.length, 1) - 1]
        return np.minimum(first, last), np.maximum(first, last)

    def _points(self) -> tuple[Points, Int64s]:
        """Where measures are asked, and the row of each."""
        matches, plan = self.matches, self.plan
        every = np.arange(len(matches.start))
        if not plan.all_rows:
            at = np.where(matches.length > 0, matches.offset[1:] - 1, -1)
            return Points(every, at), matches.start
        out = np.array(plan.program.excluded, np.bool_)[matches.places]
        at = np.flatnonzero(~out)
        empty = every[matches.length == 0] if plan.rows != "omit" else every[:0]
        match = np.concatenate([matches.owner[at], empty])
        row = np.concatenate([matches.row[at], matches.start[empty]])
        return Points(match, np.concatenate([at, np.full(len(empty), -1)])), row

    def _unmatched(self) -> Int64s:
        free = np.ones(self.rows.length, np.bool_)
        free[self.matches.row] = False
        free[self.matches.start[self.matches.length == 0]] = False
        return np.flatnonzero(free)

    def limited(self, chosen: Int64s) -> None:
        """Raises LimitError where a partition has more of the rows `kept` in a pane than the limit."""
        plan = self.plan
        if len(chosen) <= plan.limit:
            return
        row = np.concatenate([self.row, self.unmatched])[chosen]
        part = self.rows.partition_of[row]
        if np.bincount(part).max() <= plan.limit:  # of all panes together
            return
        pane = self.ends[chosen] // plan.pane
        keys, first, counts = np.unique(np.stack([part, pane], axis=1), axis=0, return_index=True, return_counts=True)
        for (_, number), at, count in zip(keys.tolist(), first.tolist(), counts.tolist(), strict=True):
            if count > plan.limit:
                where = self.rows.described(int(row[at])).removesuffix(", ") or "the whole stream"
                begin, end = moment(number * plan.pane), moment((number + 1) * plan.pane)
                raise LimitError(
                    f"{where}: more than limit_per_partition, {plan.limit:,} rows, in [{begin}, {end})",
                    hint="ONE ROW PER MATCH, SKIP PAST LAST ROW or WHERE give fewer rows; or raise the limit",
                )

    def table(self) -> pa.Table:
        sort = ForestMeasures if isinstance(self.matches, Forest) else Measures
        measures = sort(self.plan, self.rows, self.matches, self.points)
        of_measure = {column.name: column for column in self.plan.measures}
        arrays, names = [], []
        for column in self.plan.given:
            if column.name in of_measure and not column.origin:
                array = typed(measures.column(of_measure[column.name]), column)
                if len(self.unmatched):
                    array = pa.concat_arrays([array, pa.nulls(len(self.unmatched), array.type)])
            else:
                array = self._other(column)
            arrays.append(array)
            names.append(column.name)
        return pa.table(arrays, names=names)

    def _other(self, column: Column) -> pa.Array:
        """A column that is no measure."""
        none: Bools = np.zeros(0, np.bool_)
        if column.name == "match_id" and not column.origin:
            first = self.matches.start[self.points.match]
            row = np.concatenate([first, self.unmatched])
            none = np.concatenate([np.zeros(len(first), np.bool_), np.ones(len(self.unmatched), np.bool_)])
            return self._id(row, none)
        if column.name == "start" and not column.origin:
            return arrow(self.begins).cast(TIME_TYPE)
        if column.name == "end" and not column.origin:
            return arrow(self.ends).cast(TIME_TYPE)
        return self._cast(self.rows.raw(column.origin, self._given_row), column)

    @cached_property
    def _given_row(self) -> Int64s:
        return np.concatenate([self.row, self.unmatched]) if len(self.unmatched) else self.row

    def _id(self, row: Int64s, none: Bools) -> pa.Array:
        ids = self.rows.raw(self.plan.schema.event_id, row, none)
        return self._cast(ids, next(column for column in self.plan.given if column.name == "match_id"))

    def _cast(self, array: pa.Array, column: Column) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = column_type(column.type_name)
        real = pa.types.is_floating(array.type) or (pa.types.is_decimal(array.type) and not pa.types.is_decimal(kind))
        return typed(normalise(array) if real or column.name != column.origin else array, column)
