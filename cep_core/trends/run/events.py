"""A table of events as the engine reads it: roles, columns on demand, which variables each event may be."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.events.arrays import arrow, numbers
from cep_core.events.codes import group_codes, ordered_codes
from cep_core.events.normalise import normalise
from cep_core.events.schema import check_events
from cep_core.expressions.columnar import evaluate, true_where
from cep_core.language import syntax as s
from cep_core.trends.compile.plan import Plan
from cep_core.trends.kernels.row_order import counts_up

Array = Any


class Events:
    """`table` with `length` rows. `time` is int64 microseconds; `matches` has bit b set where variable b may bind
    the row."""

    def __init__(self, plan: Plan, table: pa.Table) -> None:
        self.plan = plan
        self.table = table
        self.length = table.num_rows
        self._columns: dict[str, Array] = {}
        schema = plan.schema
        check_events(table, schema, plan.columns, ("event_time", "event_type"))
        self.time = numbers(self.column(schema.event_time))
        self.matches = self._matches()

    def column(self, name: str) -> Array:
        """The normalised array of a column (see `cep_core.events.normalise`)."""
        if name not in self._columns:
            self._columns[name] = normalise(self.table.column(name))
        return self._columns[name]

    def group_value(self, name: str) -> Array:
        """A column as results show it: doubles and decimals normalised, all else as it came."""
        column = self.table.column(name)
        real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        return self.column(name) if real else column

    def value(self, node: s.Expr, rows: Array) -> Array:
        """An expression over attributes of one event, for `rows` (ascending indices where they are all rows)."""
        if len(rows) == self.length and counts_up(rows):
            return evaluate(node, lambda attribute: self.column(attribute.name), self.length)
        index = arrow(rows)
        return evaluate(node, lambda attribute: self.column(attribute.name).take(index), len(rows))

    def taken(self, name: str, rows: Array) -> Array:
        """The normalised array of a column, for `rows`."""
        column = self.column(name)
        return column if len(rows) == self.length and counts_up(rows) else column.take(arrow(rows))

    def restricted(self, name: str, variables: frozenset[str], value: int) -> Events:
        """The same events, `variables` binding only those whose `name` has the code `value`."""
        bits = np.uint64(sum(1 << self.plan.variables.index(v) for v in variables))
        other = copy(self)
        other.matches = np.where(self.codes((name,)) == value, self.matches, self.matches & ~bits)
        return other

    def codes(self, names: tuple[str, ...]) -> Array:
        """int64 codes: rows agree on all of `names` exactly when their codes do."""
        return group_codes([self._keyed(name) for name in names], self.length)

    def _keyed(self, name: str) -> Array:
        """A column for `group_codes`: a dictionary is not read value by value."""
        column = self.table.column(name)
        if pa.types.is_dictionary(column.type):
            return column.unify_dictionaries().combine_chunks()
        return self.column(name)

    def _matches(self) -> Array:
        matches: Array = np.zeros(self.length, dtype=np.uint64)
        if self.plan.never:
            return matches
        column = self.table.column(self.plan.schema.event_type).unify_dictionaries().combine_chunks()
        if pa.types.is_null(column.type):
            return matches
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        names = [str(name) for name in column.dictionary.to_pylist()]
        of_type = np.zeros(max(1, len(names)), dtype=np.uint64)
        for code, name in enumerate(names):
            of_type[code] = sum(1 << bit for bit, (_, kind) in enumerate(self.plan.types) if kind == name)
        if not len(column):
            return matches
        matches = np.take(of_type, numbers(column.indices))
        for name, condition in self.plan.local:
            bit = np.uint64(1 << self.plan.variables.index(name))
            value = true_where((matches & bit) != 0, condition, lambda attribute: self.column(attribute.name))
            matches[~value] &= ~bit
        return matches

    def successors(self) -> Array:
        """For each row the row just after it in the total order (time, then sequence or id) of the whole stream, or
        of its
        partition; -1 for the last. Events of equal time are in order too, but never adjacent: those give -1."""
        schema = self.plan.schema
        name = schema.sequence or schema.event_id
        tie = ordered_codes(self.column(name))[0][0]
        keys = [tie, self.time]
        if schema.sequence is not None:
            # a sequence that repeats leaves an order open: the events' own values settle it, not that of the rows
            keys = [*(ordered_codes(self.column(other))[0][0] for other in self.plan.columns), *keys]
        partition = np.zeros(self.length, dtype=np.int64)
        if self.plan.select == "partition_contiguous":
            partition = self.codes(self.plan.shard_key)
            keys.append(partition)
        order = np.lexsort(keys)
        after = np.full(self.length, -1, dtype=np.int64)
        earlier, later = order[:-1], order[1:]
        linked = (partition[earlier] == partition[later]) & (self.time[earlier] < self.time[later])
        after[earlier[linked]] = later[linked]
        return after
