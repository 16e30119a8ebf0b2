"""The source's events as tables of words."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
import pyarrow as pa

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.kernels.rows import all_different, ascending
from trendlake.cep_core.algebra.run.programs import texts_of
from trendlake.cep_core.algebra.run.strings import Strings
from trendlake.cep_core.algebra.run.tables import Table, Words, by_group
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.normalise import distinct_reals
from trendlake.cep_core.expressions.functions import clock_of
from trendlake.cep_core.expressions.types import infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import moment

ORDERS = frozenset({"<", "<=", ">", ">="})


class Source:
    """The events of a run. Raises BadEventsError for events without the columns, times or types that they need.

    `part`: the partition of each; `first`: an event of each partition. `texts`: strings that are compared with, in
    addition to those of the plan.
    """

    def __init__(self, plan: AlgebraPlan, columns: Columns, texts: Collection[str] = ()) -> None:
        typed = plan.schema.event_type in plan.columns
        columns.check(plan.schema, plan.columns, ("event_time", "event_type") if typed else ("event_time",))
        self.plan = plan
        self.columns = columns
        self.length = columns.length
        self.end = np.array(numbers(self.column(plan.schema.event_time)), np.int64)
        self.start = self._starts()
        self.part, self.first = np.zeros(self.length, np.int64), np.zeros(min(1, self.length), np.int64)
        if plan.partition_by and self.length:
            self.part = columns.codes(plan.partition_by).astype(np.int64)
            self.first = np.zeros(int(self.part.max()) + 1, np.int64)
            self.first[self.part[::-1]] = np.arange(self.length)[::-1]
        self.order, self.bounds = by_group(self.part, len(self.first), self.end)
        families = plan.schema.families
        self.partition = {name: families[name] for name in plan.partition_by}
        self.strings = self._strings(texts)
        self._words: dict[str, Words] = {}

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column (see `cep_core.events.normalise`)."""
        return self.columns.column(name)

    def _starts(self) -> Int64s:
        if self.plan.begins is None:
            return self.end
        name, less = self.plan.begins
        column = self.column(name)
        if pa.types.is_null(column.type):
            return self.end
        start = np.where(valid(column), numbers(column, 0) - less, self.end)
        wrong = np.flatnonzero(start > self.end)
        if len(wrong):
            when = f"{moment(int(start[wrong[0]]))} and ends at {moment(int(self.end[wrong[0]]))}"
            raise BadEventsError(f"an event starts at {when}: '{name}' is later than its time")
        return start

    def _strings(self, texts: Collection[str]) -> Strings:
        plan = self.plan
        expressions = plan.expressions()
        read = {
            name
            for node in plan.nodes
            if isinstance(node, n.Base)
            for name, kind in node.attributes
            if kind == "string"
        }
        asked = {one.name for node in expressions for one in s.attributes(node)}
        read |= {name for name, kind in self.partition.items() if kind == "string" and name in asked}
        calls = {one.function for node in expressions for one in _calls(node)}
        constants = texts_of(expressions) | set(texts)
        return Strings(
            [self.column(name) for name in sorted(read)],
            constants,
            ordered=_orders_strings(self),
            cases=bool(calls & {"lower", "upper"}),
            texts="contains" in calls,
            zone=next((zone for name in sorted(calls) if (zone := clock_of(name)) is not None), None),
        )

    def words(self, name: str, family: str) -> Words:
        """A column as words, one an event."""
        if name not in self._words:
            column = self.column(name)
            null = ~valid(column)
            if pa.types.is_null(column.type):
                self._words[name] = np.zeros(self.length, np.int64), np.ones(self.length, np.bool_)
            elif family == "string":
                self._words[name] = self.strings.codes(column)
            elif family == "double":
                (reals,) = distinct_reals([column], f"the attribute '{name}'")
                values = numbers(reals.cast(pa.float64(), safe=False), 0.0) + 0.0
                self._words[name] = values.view(np.int64), null
            elif family == "boolean":
                self._words[name] = numbers(column, False).astype(np.int64), null
            else:
                self._words[name] = numbers(column, 0).astype(np.int64), null
        return self._words[name]

    @cached_property
    def different_ids(self) -> bool:
        """Whether no two events share an id, and each has one; False where that takes more than a pass to know."""
        words, null = self.words(self.plan.schema.event_id, self.plan.schema.families[self.plan.schema.event_id])
        return not null.any() and bool(all_different(words))

    def of_part(self, name: str) -> Words:
        """A column of the partition, a row a partition."""
        words, null = self.words(name, self.partition[name])
        return words[self.first], null[self.first]

    def base(self, node: n.Base) -> Table:
        """The events of a type, by partition and end: whoever sorts them so again finds them in order."""
        columns = {name: self.words(name, kind) for name, kind in node.attributes}
        whole = Table(self.part, self.start, self.end, columns)
        rows = self.order
        if node.type_name is not None:
            codes, names = self.columns.types(self.plan.schema.event_type)
            of_type = np.isin(codes, [code for code, name in enumerate(names) if name == node.type_name])
            rows = rows if of_type.all() else rows[of_type[rows]]
        if len(rows) < self.length:
            return whole.take(rows)
        return (
            whole if ascending(rows) else whole.take(rows, np.repeat(np.arange(len(self.first)), np.diff(self.bounds)))
        )

    def decoded(self, words: Words, family: str, kind: pa.DataType) -> pa.Array:
        """Words as a column of results."""
        values, null = words
        values = np.ascontiguousarray(values)
        if family == "string":
            return self.strings.column(values, null)
        if family == "double":
            return arrow(values.view(np.float64), null)
        if family == "boolean":
            return arrow(values.astype(np.bool_), null)
        if family == "null":
            return pa.nulls(len(values), kind)
        if family == "date":
            return arrow((values // 86_400_000_000).astype(np.int32), null).cast(kind)
        return arrow(values, null).cast(kind)


def _calls(node: s.Expr) -> list[s.Call]:
    inner = [one for child in s.children(node) for one in _calls(child)]
    return [node, *inner] if isinstance(node, s.Call) else inner


def _orders_strings(source: Source) -> bool:
    """Whether some expression or aggregate asks which of two strings comes first."""
    plan = source.plan
    for node in plan.nodes:
        if isinstance(node, n.Base | n.Union):
            continue
        family = n.families_of(plan.nodes, node, source.partition)
        if isinstance(node, n.Aggregate):
            arguments = [
                one for item in node.items if item.function not in ("count", "sum", "avg") for one in item.arguments
            ]
            if any(infer(one, family) == "string" for one in arguments):
                return True
        left = list(n.expressions(node))
        while left:
            one = left.pop()
            left += s.children(one)
            orders = isinstance(one, s.Binary) and one.op in ORDERS
            orders = orders or (isinstance(one, s.Call) and one.function in ("least", "greatest"))
            if orders and any(infer(child, family) == "string" for child in s.children(one)):
                return True
    return False
