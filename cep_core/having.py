"""`having`: conditions on a finished result row. A row for which one is not true is no result.

They read the row's own columns, after everything else of the pattern is computed: `output`, `limit_per_partition` and
`empty_windows` do not see them. NULL is not true. A count beyond 38 digits is NULL in its column; conditions read it as
the double of its `_log10` companion, so that no row goes because its count is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import (
    BadConditionError,
    PatternErrors,
    TypeMismatchError,
    UnknownAttributeError,
    did_you_mean,
)
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.expressions.columnar import true_where
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.patterns.resolver import Checking
from trendlake.cep_core.plan import AnyPlan


def with_having(plan: AnyPlan, pattern: Pattern) -> AnyPlan:
    """The plan with the pattern's conditions on its rows. Raises PatternErrors with every mistake in them."""
    if not pattern.having:
        return plan
    checking = _Checking(pattern, plan)
    conditions = tuple(one for index, text in enumerate(pattern.having) for one in checking.read(index, text))
    if checking.errors:
        raise PatternErrors(checking.errors)
    data: Any = plan
    whole: AnyPlan = replace(data, having=conditions, advice=(*plan.advice, *checking.adviser.advice))
    return whole


def rows_that_hold(having: Sequence[s.Expr], rows: pa.Table) -> pa.Table:
    """The rows for which all conditions are true, in their order. Raises BadEventsError: a number that does not fit."""
    if not having or not rows.num_rows:
        return rows
    read = {attribute.name for one in having for attribute in s.attributes(one)}
    exact = np.ones(rows.num_rows, bool)
    doubles = rows
    for name in read:
        if f"{name}_log10" not in rows.column_names or not pa.types.is_decimal(rows.field(name).type):
            continue
        count, log = rows.column(name), rows.column(f"{name}_log10")
        exact &= pc.or_(count.is_valid(), log.is_null()).to_numpy()
        powers = pc.power(10.0, log)
        doubles = doubles.set_column(rows.column_names.index(name), name, powers)
    holds = _true(having, rows, exact)
    if not exact.all():
        holds |= _true(having, doubles, ~exact)
    return rows.filter(arrow(holds))


def _true(having: Sequence[s.Expr], rows: pa.Table, asked: Bools) -> Bools:
    columns = Columns(rows)
    for one in having:
        asked = true_where(asked, one, lambda read: columns.column(read.name))
    return asked


class _Checking(Checking):
    """Reads conditions on the rows of a plan."""

    def __init__(self, pattern: Pattern, plan: AnyPlan) -> None:
        super().__init__(pattern, schema_of(plan.result_schema.empty_table(), roles=()))
        self.families |= dict.fromkeys(plan.result_shape.durations, "duration")
        self.lists = [field.name for field in plan.result_schema if pa.types.is_nested(field.type)]

    def read(self, index: int, text: str) -> list[s.Expr]:
        """The conjuncts of a condition; none where it has a mistake, which is reported."""
        path = ("having", index)
        condition = self.condition(text, path)
        if condition is None:
            return []
        if isinstance(condition, s.Equivalence):
            error = BadConditionError("an equivalence is of events", hint="write it in where")
            self.report(error, path, condition.span)
            return []
        kind = self.typed(condition, path)
        if kind is None:
            return []
        if kind not in ("boolean", "null"):
            self.report(TypeMismatchError(f"a condition is true or false, this is {kind}"), path, condition.span)
            return []
        parts = s.conjuncts(condition)
        for part in parts:
            if not s.attributes(part) and not self.refuse_constant(part, path):
                self.report(BadConditionError("this reads no column of the row"), path, part.span)
        return parts

    def resolve(self, attribute: s.Attribute) -> str:
        """The family of a result column. Raises ExpressionError."""
        name = attribute.name
        if attribute.variable:
            hint = f'return: {{n: ...}} and having: ["n > 3"], with a measure in place of {attribute.variable}.{name}'
            events = BadConditionError("having reads columns of the result row, not of events", hint=hint)
            raise ExpressionError(events, attribute.span)
        if name not in self.families:
            cause = UnknownAttributeError(
                f"the results have no column '{name}'", hint=did_you_mean(name, self.families)
            )
            raise ExpressionError(cause, attribute.span)
        if name in self.lists:
            hint = "compare a measure such as COUNT of it, under a name in return"
            raise ExpressionError(TypeMismatchError(f"'{name}' is a list of events", hint=hint), attribute.span)
        return self.families[name]
