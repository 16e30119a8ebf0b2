"""The rows of a run: the events that the input query leaves, by partition and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.codes import group_codes, ordered_codes
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.normalise import distinct_reals, reals
from trendlake.cep_core.events.order import order_of
from trendlake.cep_core.expressions.columnar import evaluate, true_rows
from trendlake.cep_core.expressions.scalar import Reader, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import moment
from trendlake.cep_core.match_recognize.compile.leaves import Label, Number
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan, SortKey


class Rows:
    """`order`: the event of each row, among those that the input query leaves; `bounds`: where each partition begins,
    and the end; `begins`: of each partition the row at which matching begins, its first one. Rows are numbered in the
    order of partitions. Raises BadEventsError."""

    def __init__(self, plan: RowPatternPlan, columns: Columns) -> None:
        self.plan = plan
        schema = plan.schema
        columns.check(schema, plan.columns, ("event_id", "event_time"))
        self.events = self._chosen_rows(columns)
        self.length = self.events.length
        self._inputs = {column.name: column for column in plan.inputs}
        self._known: dict[Any, Any] = {}
        self._asked: set[Any] = set()
        part = self._parts()
        times = np.asarray(numbers(self.events.column(schema.event_time)), np.int64)
        self.order = self._ordered(part, times)
        self.times: Int64s = times[self.order]
        sorted_part = part[self.order]
        edges = np.flatnonzero(np.diff(sorted_part)) + 1 if self.length else np.zeros(0, np.int64)
        self.bounds: Int64s = np.concatenate([[0], edges, [self.length]]) if self.length else np.zeros(1, np.int64)
        self.begins = self.bounds[:-1]

    def _chosen_rows(self, columns: Columns) -> Columns:
        where = self.plan.where
        if where is None:
            return columns
        chosen = true_rows(evaluate(where, lambda read: columns.column(read.name), columns.length))
        return columns if chosen.all() else columns.chosen(np.flatnonzero(chosen))

    # --- columns, by event

    def _event_column(self, name: str) -> pa.Array:
        """The normalised array of a column of the input."""
        column = self._inputs.get(name)
        if column is None or column.value is None:
            return self.events.column(name if column is None else column.origin)

        def compute() -> pa.Array:
            assert column is not None
            assert column.value is not None
            return evaluate(column.value, lambda read: self.events.column(read.name), self.length)

        return self.once(("computed", name), compute)

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The result of `compute` at the first call with this `key`."""
        self._asked.add(key)
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def forget_unused(self) -> None:
        """Forgets the results that were not asked for since the last call."""
        self._known = {key: value for key, value in self._known.items() if key in self._asked}
        self._asked.clear()

    # --- order

    def _parts(self) -> Int64s:
        names = self.plan.partition_by
        if not names:
            return np.zeros(self.length, np.int64)
        plain = [self._inputs[name] for name in names]
        if all(column.value is None for column in plain):
            return self.events.codes(tuple(column.origin for column in plain)).astype(np.int64)
        return group_codes([self._event_column(name) for name in names], self.length).astype(np.int64)

    def _ordered(self, part: Int64s, times: Int64s) -> Int64s:
        schema = self.plan.schema
        keys = [part, *(self._key(key, times) for key in self.plan.order_by)]
        if not any(key.column == schema.event_time for key in self.plan.order_by):
            keys.append(times)
        order = _sorted(keys)
        tied = np.ones(max(0, self.length - 1), np.bool_)
        for key in keys:
            values = key[order]
            tied &= values[1:] == values[:-1]
        if not tied.any():
            return order
        of_tie = np.zeros(self.length, np.bool_)
        of_tie[1:] |= tied
        of_tie[:-1] |= tied
        rows = order[of_tie]
        for name in (schema.sequence, schema.id_order):
            if name:
                ranks = np.zeros(self.length, np.int64)
                (codes,), _ = ordered_codes(self.events.column(name).take(arrow(rows)))
                ranks[rows] = codes
                keys.append(ranks)
        return _sorted(keys)

    def _key(self, key: SortKey, times: Int64s) -> Int64s:
        """Numbers in the order of a key."""
        if key.column == self.plan.schema.event_time:
            return -times if key.descending else times
        array = self._event_column(key.column)
        missing = ~valid(array)
        if pa.types.is_integer(array.type) and not missing.any():
            ranks, size = np.asarray(numbers(array), np.int64), 0
            return np.invert(ranks) if key.descending else ranks
        (codes,), size = ordered_codes(array)
        ranks = codes.astype(np.int64)
        if key.descending:
            ranks = size - 1 - ranks
        ranks[missing] = -1 if key.nulls_first else size
        return ranks

    # --- columns, by row

    def raw(self, name: str, rows: Int64s, missing: Bools | None = None) -> pa.Array:
        """A column of the input as it came, or as it was computed, at some rows; NULL where `missing`."""
        column = self._inputs.get(name)
        computed = column is not None and column.value is not None
        array = self._event_column(name) if computed else self.events.raw(name if column is None else column.origin)
        return array.take(arrow(rows if self._in_order or not self.length else self.order[rows], missing))

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column of the input, by row."""
        return self.once(("column", name), lambda: self._by_row(self._event_column(name)))

    def _by_row(self, array: pa.Array) -> pa.Array:
        return array if self._in_order else array.take(arrow(self.order))

    @cached_property
    def _in_order(self) -> bool:
        """Whether each row has the number of its event."""
        return bool((self.order[1:] > self.order[:-1]).all())

    def value(self, node: s.Expr) -> pa.Array:
        """An expression of one row's columns, for each row. Raises BadEventsError."""
        return self.once(("value", node), lambda: evaluate(node, lambda read: self.column(read.name), self.length))

    def values(self, node: s.Expr) -> Reader:
        """An expression of one row as a function of the label of the row, the row, and the number of the match. A row
        at which it cannot be computed is an error when it is asked for."""
        reader: Reader = self.once(("values", node), lambda: self._values(node))
        return reader

    def _values(self, node: s.Expr) -> Reader:
        if not _labelled(node):
            try:
                array = self.value(node)
            except BadEventsError:
                array = None
            if array is not None:
                listed = distinct_reals([array], "DEFINE")[0].to_pylist()
                return lambda label, row, number: listed[row]

        def leaf(read: s.Attribute) -> Reader:
            if isinstance(read, Label):
                return lambda label, row, number: label
            if isinstance(read, Number):
                return lambda label, row, number: number
            cells: list[Any] = self.once(("cells", read.name), lambda: reals(self.column(read.name)).to_pylist())
            return lambda label, row, number: cells[row]

        return compiled(node, leaf)

    @cached_property
    def partition_of(self) -> Int64s:
        """The partition of each row."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def described(self, row: int) -> str:
        """The partition of a row in words: `partition symbol=AAPL, `, and the empty text where there is but one."""
        if not self.plan.partition_by:
            return ""
        return f"partition {', '.join(f'{name}={self._shown(name, row)}' for name in self.plan.partition_by)}, "

    def _shown(self, name: str, row: int) -> str:
        value = self.column(name)[row].as_py()
        family = next(column.family for column in self.plan.inputs if column.name == name)
        return moment(value) if family == "timestamp" and value is not None else "NULL" if value is None else str(value)

    def id_of(self, row: int) -> str:
        """The id of a row, as it is shown."""
        index = pa.array([int(self.order[row])], pa.int64())
        return str(self.events.raw(self.plan.schema.event_id).take(index)[0].as_py())


def _labelled(node: s.Expr) -> bool:
    return isinstance(node, Label | Number) or any(_labelled(child) for child in s.children(node))


def _sorted(keys: Sequence[Int64s]) -> Int64s:
    """The rows in the order of keys, where the first key decides first; equal rows by their number."""
    order = order_of(keys[-1])
    for key in reversed(keys[:-1]):
        order = order[order_of(key[order])]
    return order
