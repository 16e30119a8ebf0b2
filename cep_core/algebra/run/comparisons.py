"""Comparisons of one attribute with a constant, of a whole column at once: most of what filters ask.

They mean what the machine of `cep_core.kernels.vm` makes of them: NULL and NaN compare with nothing, and a whole
number is compared with a double as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendlake.cep_core.algebra.compile.syntax import Dur
from trendlake.cep_core.algebra.run.tables import Table, Words, place_of
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s

OPERATORS: dict[str, Callable[[Any, Any], Bools]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NUMBERS = ("int", "double")
MOST_READ = 2
"""A column of another table is compared there, and then taken, unless that has more than so many times the rows."""


@dataclass(frozen=True)
class Comparison:
    """`name op value`; `family`: of the attribute, and so of the value."""

    name: str
    family: str
    op: str
    value: int | float

    def rows(self, table: Table) -> Bools:
        """For each row of a table whether it is true."""
        columns, name, rows = place_of(table.columns, self.name)
        if rows is None or len(columns[name][0]) > MOST_READ * len(rows):
            return self._true(table.columns[self.name])
        return self._true(columns[name])[rows]

    def _true(self, words: Words) -> Bools:
        values, null = words
        if self.family == "int":
            true: Bools = OPERATORS[self.op](values, self.value)
            return true & ~null
        reals = values.view(np.float64)
        return OPERATORS[self.op](reals, self.value) & ~null & ~np.isnan(reals)


def comparison_of(part: s.Expr, table: Table, family: Resolve) -> Comparison | None:
    """The comparison that a condition is; None where it is no comparison of a number of the stream with a number of the
    same kind, or one that is as good."""
    if not isinstance(part, s.Binary) or part.op not in OPERATORS:
        return None
    read, constant, op = part.left, part.right, part.op
    if isinstance(read, s.Literal):
        read, constant, op = constant, read, MIRRORED.get(op, op)
    if not isinstance(read, s.Attribute) or isinstance(read, Dur) or read.name not in table.columns:
        return None
    if not isinstance(constant, s.Literal) or constant.kind not in NUMBERS or family(read) not in NUMBERS:
        return None
    value = constant.value
    if value is None or isinstance(value, str):
        return None
    if family(read) == "double":
        return Comparison(read.name, "double", op, float(value)) if float(value) == value else None
    if isinstance(value, float):
        if op in ("=", "!=") or not math.isfinite(value):
            return None
        value = math.ceil(value) if op in ("<", ">=") else math.floor(value)
    return Comparison(read.name, "int", op, value)
