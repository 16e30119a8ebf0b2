"""Conditions of contracts on a row, computed in this process where that gives the verdicts that Spark gives.

`evaluate` computes whole numbers in 64 bits, all others as doubles, and reads NaN as NULL. Where Spark would do
otherwise (overflow of a narrower type, arithmetic of decimals and of floats, NaN and infinity, letters outside ASCII)
the condition is left to Spark (`pipelines.quality.local_values`). The last digits of a logarithm are Java's own: a
comparison with one counts only where its sides are further apart than both can be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.events.array_types import Bools
from cep_core.events.arrays import arrow, numbers
from cep_core.events.normalise import doubles, normalise
from cep_core.expressions.columnar import COMPARISONS, evaluate, true_rows
from cep_core.expressions.types import infer
from cep_core.language import syntax as s
from pipelines.errors import LocalUnsupportedError
from pipelines.quality.local_values import LARGEST, Value, column_value, value_of, whole_array

LOGARITHM_ERROR = 1e-12
"""More than the last digits of a double's logarithm, which is 309 at most."""


def rows_meeting(condition: s.Expr, table: pa.Table, families: Mapping[str, str]) -> Bools:
    """Which rows a condition is true of, bool. `families`: of columns, as `schema.family`.

    Raises LocalUnsupportedError, and a TrendlakeError for a condition that has no type.
    """
    names = {node.name for node in _nodes(condition) if isinstance(node, s.Attribute)}
    columns = {name: whole_array(table.column(name)) for name in names}
    if any(isinstance(node, s.Call) and node.function in ("lower", "upper") for node in _nodes(condition)):
        _refuse_other_letters(condition, columns)
    operands = Operands(
        {name: families[name] for name in names},
        {name: column_value(column) for name, column in columns.items()},
        {name: doubles(a) if pa.types.is_decimal(a.type) else normalise(a) for name, a in columns.items()},
        table.num_rows,
    )
    condition = operands.without_logarithms(condition)
    if operands.family(condition) != "boolean":
        raise LocalUnsupportedError("no condition")
    value_of(condition, operands.values)
    for node in _nodes(condition):
        if isinstance(node, s.Binary) and node.op in COMPARISONS:
            operands.refuse_doubt(node)
    return true_rows(operands.computed(condition))


@dataclass(frozen=True)
class Operands:
    """Columns by name: `families` as `schema.family`, `values`, and `arrays` as `evaluate` takes them, of `length`
    rows."""

    families: dict[str, str]
    values: dict[str, Value]
    arrays: dict[str, pa.Array]
    length: int

    def family(self, node: s.Expr) -> str:
        return infer(node, lambda attribute: self.families[attribute.name])

    def computed(self, node: s.Expr) -> pa.Array:
        return evaluate(node, lambda attribute: self.arrays[attribute.name], self.length)

    def without_logarithms(self, node: s.Expr) -> s.Expr:
        """`log10(x) < 1` -> `y < 1`, where y is a column more. As Spark's, of 0 and less it is NULL."""
        match node:
            case s.Unary(operand=operand):
                return replace(node, operand=self.without_logarithms(operand))
            case s.Binary(left=left, right=right):
                return replace(node, left=self.without_logarithms(left), right=self.without_logarithms(right))
            case s.Call(function=function, arguments=arguments):
                arguments = tuple(map(self.without_logarithms, arguments))
                if function != "log10":
                    return replace(node, arguments=arguments)
                return self._logarithm(arguments[0] if len(arguments) == 1 else node)
        return node

    def _logarithm(self, argument: s.Expr) -> s.Expr:
        value = value_of(argument, self.values)
        if self.family(argument) not in ("int", "double") or value.error or not value.bound < LARGEST:
            raise LocalUnsupportedError("a logarithm of what is no plain number")
        numbers_of = self.computed(argument).cast(pa.float64(), safe=False)
        plain = numbers(numbers_of, 0.0)
        positive = plain > 0
        name = f"log10({len(self.values)})"
        self.families[name], self.values[name] = "double", Value("double", 400, error=LOGARITHM_ERROR)
        self.arrays[name] = arrow(np.log10(np.where(positive, plain, 1.0)), ~positive)
        return s.Attribute("", name)

    def refuse_doubt(self, node: s.Binary) -> None:
        """Raises LocalUnsupportedError where the sides of a comparison are too near each other in a row."""
        a, b = value_of(node.left, self.values), value_of(node.right, self.values)
        if not a.error + b.error:
            return
        sides = [self.computed(side).cast(pa.float64()) for side in (node.left, node.right)]
        apart: float | None = pc.min(pc.abs(pc.subtract(*sides))).as_py()
        if apart is not None and not apart > 2 * (a.error + b.error):
            raise LocalUnsupportedError("a logarithm too near to what it is compared with")


def _refuse_other_letters(condition: s.Expr, columns: Mapping[str, pa.Array]) -> None:
    texts = [node.value for node in _nodes(condition) if isinstance(node, s.Literal) and isinstance(node.value, str)]
    arrays = [column for column in columns.values() if pa.types.is_string(column.type)]
    if not all(text.isascii() for text in texts) or any(
        pc.all(pc.string_is_ascii(array)).as_py() is False for array in arrays
    ):
        raise LocalUnsupportedError("letters outside ASCII")


def _nodes(node: s.Expr) -> Iterator[s.Expr]:
    yield node
    for child in s.children(node):
        yield from _nodes(child)
