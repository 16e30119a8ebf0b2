"""Which events each of several plans may bind, from indexes of the columns that they compare with constants.

Where each event finds the predicates that it satisfies (Hong 2009, chapter 5), here each predicate finds its events:
all events of a batch are known at once, so a column is ordered once, and the events of `a = c`, IN, `<` and BETWEEN are
slices of it. The shortest slice of the conditions on a variable is read, the others are asked of its rows only.

A plan may be given these rows alone where no other event means anything to it: its `bindings` say whether that is true.
That
no error is missed: conditions that can be one, and all that come after them, are left to the plan, which asks them of
the same events as ever; what is asked of the whole table is asked of it still (`Columns`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.array_types import Int64s, UInt64s
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.normalise import long_decimal
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import AnyPlan, Binding
from trendlake.cep_core.sharing.comparisons import Comparison, comparison_of, harmless
from trendlake.cep_core.sharing.index import Index, index_of
from trendlake.cep_core.sharing.lanes import Lane, Path

FEW = 5
"""Comparisons of so many plans make the index of a column of whole numbers or text worth its cost."""
FEW_SORTED = 25
"""The same of a column of float64s, which is sorted."""
MOST = 0.5
"""The share of the table's events from which on a plan is given the whole table."""


@dataclass(frozen=True)
class Interest:
    """The rows that a plan may bind: `parts` by binding, in order; and by binding the conditions that are not asked
    yet."""

    parts: tuple[Int64s, ...]
    left: tuple[tuple[s.Expr, ...], ...]

    @cached_property
    def rows(self) -> Int64s:
        """The rows that any binding may take, ascending."""
        if len(self.parts) == 1:
            return self.parts[0]
        rows = np.concatenate([np.zeros(0, np.int64), *self.parts])
        rows.sort(kind="stable")  # merges the parts, each ascending; np.unique hashes every row
        first = np.ones(len(rows), np.bool_)
        first[1:] = rows[1:] != rows[:-1]
        return rows[first]

    @property
    def bits(self) -> UInt64s:
        """uint64 of each of `rows`: bit b where binding b may take it."""
        bits = np.zeros(len(self.rows), np.uint64)
        for b, part in enumerate(self.parts):
            bits[np.searchsorted(self.rows, part)] |= np.uint64(1 << b)
        return bits


class Interests:
    """The interest of several plans in the rows of `columns`; `bindings` of each, None where every event matters.
    `always`: an index is made of each column that is compared, however few plans do; `unique_ids`: that no two events
    share an id is known."""

    def __init__(
        self,
        columns: Columns,
        plans: Sequence[AnyPlan],
        bindings: Sequence[tuple[Binding, ...] | None],
        *,
        always: bool = False,
        unique_ids: bool = False,
    ) -> None:
        self.columns, self.unique_ids = columns, unique_ids
        self.tests: list[list[_Tests] | None] = [
            [self._tests(binding) for binding in of_plan] if of_plan is not None and self._exact(plan) else None
            for plan, of_plan in zip(plans, bindings, strict=True)
        ]
        named = Counter(name for tests in self.tests for name in {c.name for one in tests or () for c in one.compared})
        self.indexed = {name for name, count in named.items() if always or count >= self._few(name)}
        self.plans = plans

    def of(self, number: int) -> Interest | None:
        """The interest of a plan, by its number; None where it is to be given all events."""
        lane = self.lane(number)
        return None if lane is None else self.of_lane(lane)

    def of_lane(self, lane: Lane) -> Interest | None:
        """The rows of a plan whose indexes gave `lane`; None where it is to be given all events."""
        if lane.most > MOST * self.columns.length:
            return None
        return Interest(tuple(_rows(paths) for paths in lane.paths), lane.left)

    def lane(self, number: int) -> Lane | None:
        """The indexes' answer about the events of a plan, however many these are; None where they say nothing."""
        tests, schema = self.tests[number], self.plans[number].schema
        if tests is None or not any(c.name in self.indexed for one in tests for c in one.compared):
            return None
        left = tuple(tuple(x for x, c in one.conditions if c is None or c.name not in self.indexed) for one in tests)
        return Lane(tuple(tuple(self._paths(one, schema.event_type)) for one in tests), left)

    def _exact(self, plan: AnyPlan) -> bool:
        """Whether what is wrong with an event that a plan may not bind would be seen without it."""
        columns, schema = self.columns, plan.schema
        try:
            if any(long_decimal(columns.type(name)) for name in plan.columns):
                return False  # two that are one double are an error wherever they are
            return self.unique_ids or not schema.reads_ids(plan.columns) or columns.distinct(schema.id_order)
        except (KeyError, TrendlakeError):
            return False

    def _tests(self, binding: Binding) -> _Tests:
        conditions = [(node, comparison_of(node, self._type)) for node in binding.conditions]
        first = list(takewhile(lambda pair: pair[1] is not None or harmless(pair[0], self._type), conditions))
        rest = [(node, None) for node, _ in conditions[len(first) :]]
        return _Tests(binding.type_name, (*first, *rest))

    def _type(self, name: str) -> Any:
        return self.columns.type(name)

    def _few(self, name: str) -> int:
        return FEW_SORTED if str(self._type(name)) == "double" else FEW

    def _paths(self, tests: _Tests, event_type: str) -> list[Path]:
        """The indexes that know something of a binding's events, each with what it knows, the shortest first."""
        of_types = Comparison(event_type, "=", (tests.type_name,))
        asked = [of_types, *(c for c in tests.compared if c.name in self.indexed)]
        paths = []
        for comparison in asked:
            index = self._index(comparison.name)
            paths.append((index, index.between(comparison)))
        return sorted(paths, key=lambda path: path[0].count(path[1]))

    def _index(self, name: str) -> Index:
        raw = self.columns.raw(name)
        coded = pa.types.is_dictionary(raw.type) and pa.types.is_string(raw.type.value_type)
        return self.columns.once(("index", name), lambda: index_of(raw if coded else self.columns.column(name)))


@dataclass(frozen=True)
class _Tests:
    """The type of a binding and its conditions in order, each with the comparison that it is, where an index may
    answer it."""

    type_name: str
    conditions: tuple[tuple[s.Expr, Comparison | None], ...]

    @property
    def compared(self) -> list[Comparison]:
        return [comparison for _, comparison in self.conditions if comparison is not None]


def _rows(paths: tuple[Path, ...]) -> Int64s:
    (index, stretches), *others = paths
    rows = index.chosen(stretches)
    for other, inside in others:
        if not len(rows):
            break
        rows = other.among(rows, inside)
    return rows
