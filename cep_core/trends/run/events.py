"""Events as the engine reads them: roles, columns on demand, which variables each event may be."""

from __future__ import annotations

from copy import copy

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Codes, Int32s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.expressions.columnar import evaluate, true_where
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import ANY
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.kernels.row_order import counts_up


class Events:
    """Events in `length` rows. `time` is int64 microseconds; `matches` has bit b set where variable b may bind the
    row. `may`: such bits as an index gives them, where `plan.local` is what it left to be asked; None: types say it."""

    def __init__(self, plan: Plan, columns: Columns, may: UInt64s | None = None) -> None:
        self.plan = plan
        self.columns = columns
        self.length = columns.length
        schema = plan.schema
        columns.check(schema, plan.columns, ("event_time", "event_type"))
        self.time = numbers(self.column(schema.event_time))
        self.matches = self._matches(may)

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column (see `cep_core.events.normalise`)."""
        return self.columns.column(name)

    def group_value(self, name: str) -> pa.Array:
        """A column as results show it: doubles and decimals normalised, all else as it came."""
        column = self.columns.raw(name)
        real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        return self.column(name) if real else column

    def value(self, node: s.Expr, rows: Int64s) -> pa.Array:
        """An expression over attributes of one event, for `rows` (ascending indices where they are all rows)."""
        if len(rows) == self.length and counts_up(rows):
            return evaluate(node, lambda attribute: self.column(attribute.name), self.length)
        index = arrow(rows)
        return evaluate(node, lambda attribute: self.column(attribute.name).take(index), len(rows))

    def taken(self, name: str, rows: Int64s) -> pa.Array:
        """The normalised array of a column, for `rows`."""
        column = self.column(name)
        return column if len(rows) == self.length and counts_up(rows) else column.take(arrow(rows))

    def restricted(self, name: str, variables: frozenset[str], value: int) -> Events:
        """The same events, `variables` binding only those whose `name` has the code `value`."""
        bits = np.uint64(sum(1 << self.plan.variables.index(v) for v in variables))
        other = copy(self)
        other.matches = np.where(self.codes((name,)) == value, self.matches, self.matches & ~bits)
        return other

    def codes(self, names: tuple[str, ...]) -> Int32s:
        """int64 codes: rows agree on all of `names` exactly when their codes do."""
        return self.columns.codes(names)

    def _matches(self, may: UInt64s | None) -> UInt64s:
        if self.plan.never:
            return np.zeros(self.length, np.uint64)
        if may is not None:
            return self._asked(may)
        key = self.plan.schema.event_type, self.plan.types, self.plan.local
        return self.columns.latest("matches", key, lambda: self._asked(self._of_types()))

    def _asked(self, matches: UInt64s) -> UInt64s:
        """`matches` where the local conditions are true."""
        for name, condition in self.plan.local:
            bit = np.uint64(1 << self.plan.variables.index(name))
            value = true_where((matches & bit) != 0, condition, lambda attribute: self.column(attribute.name))
            matches = np.where(value, matches, matches & ~bit)
        return matches

    def _of_types(self) -> UInt64s:
        codes, names = self.columns.types(self.plan.schema.event_type)
        of_type = np.zeros(len(names) + 1, np.uint64)
        for code, name in enumerate(names):
            of_type[code] = sum(1 << bit for bit, (_, kind) in enumerate(self.plan.types) if kind in (name, ANY))
        return np.take(of_type, codes)

    def chosen(self, function: str, attribute: str, by: str | None) -> tuple[Int64s, pa.Array]:
        """For FIRST, LAST, MIN_BY and MAX_BY: of each row a rank, -1 where a NULL keeps it out, such that the largest
        among some rows is that of the one whose `attribute` is shown; and the attribute by rank.

        FIRST: the earliest, of equal times that of the smallest id. LAST: the latest, of equal times that of the
        largest id. MIN_BY, MAX_BY: by the attribute `by`, of equal ones as FIRST."""
        what = f"{function} of {attribute} by {by}"  # each is kept: runs of one plan ask for them in turn
        ranks, values = self.columns.latest(what, self.plan.schema, lambda: self._chosen(function, attribute, by))
        return ranks, values

    def _chosen(self, function: str, attribute: str, by: str | None) -> tuple[Int64s, pa.Array]:
        (own,), _ = ordered_codes(self.column(attribute))
        (name,), _ = ordered_codes(self.column(self.plan.schema.id_order))
        sign = 1 if function == "last" else -1
        keys = [sign * own.astype(np.int64), sign * name.astype(np.int64), sign * self.time]
        known = own >= 0
        if by is not None:
            (chooses,), _ = ordered_codes(self.column(by))
            known &= chooses >= 0
            keys.append(chooses.astype(np.int64) * (1 if function == "max_by" else -1))
        rows = np.flatnonzero(known)
        order = rows[np.lexsort([key[rows] for key in keys])]
        ranks = np.full(self.length, -1, dtype=np.int64)
        ranks[order] = np.arange(len(order))
        values = self.group_value(attribute)
        return ranks, (values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values).take(arrow(order))

    def order(self) -> Int64s:
        """The place of each row in the total order: time, then `sequence`, then id."""
        return self.columns.latest("order", self.plan.schema, self._order)

    def _order(self) -> Int64s:
        schema = self.plan.schema
        names = [schema.id_order, *([schema.sequence] if schema.sequence is not None else [])]
        keys = [ordered_codes(self.column(name))[0][0] for name in names]
        places = np.empty(self.length, np.int64)
        places[np.lexsort([*keys, self.time])] = np.arange(self.length)
        return places

    def successors(self) -> Int64s:
        """For each row the row just after it in the total order (time, then sequence or id) of the whole stream, or
        of its
        partition; -1 for the last. Events of equal time are in order too, but never adjacent: those give -1."""
        schema = self.plan.schema
        name = schema.sequence or schema.event_id
        tie = ordered_codes(self.column(name))[0][0]
        keys = [tie, self.time]
        if schema.tables is not None:
            keys = [ordered_codes(self.column(schema.id_order))[0][0], *keys]
        elif schema.sequence is not None:
            # a sequence that repeats leaves an order open: the events' own values settle it, not that of the rows
            keys = [*(ordered_codes(self.column(other))[0][0] for other in self.plan.columns), *keys]
        partition: Codes = np.zeros(self.length, dtype=np.int64)
        if self.plan.select == "partition_contiguous":
            partition = self.codes(self.plan.shard_key)
            keys.append(partition)
        order = np.lexsort(keys)
        after = np.full(self.length, -1, dtype=np.int64)
        earlier, later = order[:-1], order[1:]
        linked = (partition[earlier] == partition[later]) & (self.time[earlier] < self.time[later])
        after[earlier[linked]] = later[linked]
        return after
