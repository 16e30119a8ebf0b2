"""Registers of conditions (`compile.registers`) as values that the search in Python takes from row to row.

Nothing changes a value of a register.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.expressions.scalar import Reader
from trendlake.cep_core.match_recognize.compile.leaves import Total

ONE = 1 << 1074
"""Every double is a whole number of so small parts."""
ExactSum = tuple[int, int, int, int]
"""How many values, their sum (of doubles times ONE), and how often +inf and -inf were among them."""


class Stepped(Protocol):
    """`step`: its value with one row more, mapped to a variable."""

    start: Any

    def step(self, value: Any, row: int, variable: str, number: int) -> Any: ...


class SomeOf:
    """The first (or last) `count` rows that are mapped to one of `variables`, None for any; or their variables
    (`labels`)."""

    def __init__(self, variables: frozenset[str] | None, first: bool, count: int, labels: bool) -> None:
        self.variables, self.first, self.count, self.labels = variables, first, count, labels
        self.start: tuple[Any, ...] = ()

    def step(self, value: tuple[Any, ...], row: int, variable: str, number: int) -> tuple[Any, ...]:
        if self.variables is not None and variable not in self.variables:
            return value
        one = variable if self.labels else row
        if self.first:
            return value if len(value) == self.count else (*value, one)
        return (*value, one)[-self.count :]


class Chains:
    """Lists that share what they have in common: each is a number, and equal lists are one."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, Any], int] = {}
        self.links: list[tuple[int, Any]] = [(0, None)]
        self.start = 0

    def longer(self, chain: int, value: Any) -> int:
        key = (chain, (type(value), value))
        if key not in self.numbers:
            self.numbers[key] = len(self.links)
            self.links.append((chain, value))
        return self.numbers[key]

    def listed(self, chain: int) -> list[Any]:
        values = []
        while chain:
            chain, value = self.links[chain]
            values.append(value)
        return values[::-1]


class LabelChains(Chains):
    """The variables of all rows."""

    def step(self, value: int, row: int, variable: str, number: int) -> int:
        return self.longer(value, variable)


class Totals:
    """An aggregate. `arguments`: functions of the label of a row, the row, and the number of the match; `most`: where a
    count stops."""

    def __init__(
        self, total: Total, variables: frozenset[str], arguments: list[Reader], most: float = math.inf
    ) -> None:
        self.total, self.variables, self.arguments, self.most = total, variables, arguments, most
        self.chains = Chains()
        self.start = _START.get(total.function, lambda: None)() if not total.distinct else frozenset()
        if total.function in ("ARRAY_AGG", "STRING_AGG"):
            self.start = 0

    def step(self, value: Any, row: int, variable: str, number: int) -> Any:
        if variable not in self.variables:
            return value
        if self.total.rows:
            return min(value + 1, self.most)
        given = self.arguments[0](variable, row, number)
        function = self.total.function
        if function == "ARRAY_AGG":
            return self.chains.longer(value, given)
        if given is None and function not in ("MAX_BY", "MIN_BY"):
            return value
        if self.total.distinct:
            return value | {given}
        if function == "STRING_AGG":
            return self.chains.longer(value, given)
        if function in ("MAX_BY", "MIN_BY"):
            by = self.arguments[1](variable, row, number)
            if by is None or (value is not None and not (by > value[0] if function == "MAX_BY" else by < value[0])):
                return value
            return (by, given)
        if function == "COUNT":
            return min(value + 1, self.most)
        return _STEPS[function](value, given)

    def result(self, value: Any, function: str) -> Any:
        """The aggregate's value; SUM and AVG have one register."""
        kind = self.total.kinds[0] if self.total.kinds else "int"
        if function == "COUNT":
            return len(value) if self.total.distinct else value
        if function in ("SUM", "AVG"):
            if self.total.distinct:
                exact = _START[function]()
                for one in value:
                    exact = added(exact, one)
                value = exact
            return rounded(value, function, kind)
        if function in ("ARRAY_AGG", "STRING_AGG"):
            values = self.chains.listed(value)
            if not values:
                return None
            return values if function == "ARRAY_AGG" else str(self.arguments[1](None, 0, 0)).join(values)
        return value[1] if value is not None and function in ("MAX_BY", "MIN_BY") else value


def added(exact: ExactSum, value: float) -> ExactSum:
    """A sum and one value more."""
    count, total, above, below = exact
    if isinstance(value, int):
        return (count + 1, total + value, above, below)
    if math.isinf(value):
        return (count + 1, total, above + (value > 0), below + (value < 0))
    numerator, denominator = value.as_integer_ratio()
    return (count + 1, total + numerator * (ONE // denominator), above, below)


def rounded(exact: ExactSum, function: str, kind: str) -> float | int | None:
    """SUM or AVG: the exact value, rounded once. Raises BadEventsError for a whole number beyond 64 bits."""
    count, total, above, below = exact
    if not count:
        return None
    if kind == "int" and function == "SUM":
        if not -(2**63) <= total < 2**63:
            raise BadEventsError("SUM of whole numbers does not fit 64 bits")
        return total
    if above or below:
        return None if above and below else math.inf if above else -math.inf
    divisor = (1 if kind == "int" else ONE) * (count if function == "AVG" else 1)
    try:
        return total / divisor + 0.0
    except OverflowError:
        return math.inf if total > 0 else -math.inf


_START: dict[str, Callable[[], Any]] = {"COUNT": lambda: 0, "SUM": lambda: (0, 0, 0, 0), "AVG": lambda: (0, 0, 0, 0)}
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": added,
    "AVG": added,
    "MIN": lambda value, given: given if value is None or given < value else value,
    "MAX": lambda value, given: given if value is None or given > value else value,
    "BOOL_AND": lambda value, given: given if value is None else value and given,
    "BOOL_OR": lambda value, given: given if value is None else value or given,
    "ANY_VALUE": lambda value, given: given if value is None else value,
}
