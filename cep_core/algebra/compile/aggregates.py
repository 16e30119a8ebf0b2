"""The aggregates of instance aggregation: what they take and give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trendlake.cep_core.errors import BadConditionError, TypeMismatchError
from trendlake.cep_core.expressions.types import NUMERIC, ORDERED, ExpressionError
from trendlake.cep_core.language import syntax as s

COUNT, SUM, AVG, MIN, MAX, MAX_BY, MIN_BY = "count", "sum", "avg", "min", "max", "max_by", "min_by"
AGGREGATES = (COUNT, SUM, AVG, MIN, MAX, MAX_BY, MIN_BY)
_ARGUMENTS = {MAX_BY: 2, MIN_BY: 2}


def check_no_aggregate(node: s.Expr) -> Iterator[ExpressionError]:
    """The mistakes of an expression that holds aggregates."""
    if isinstance(node, s.Call) and node.function in AGGREGATES:
        hint = "SELECT SUM(x) AS total, ... FROM ... lists aggregates only; compute with them in another SELECT"
        message = f"{node.function.upper()} is an aggregate: SELECT lists it by itself, and nothing else has it"
        yield ExpressionError(BadConditionError(message, hint=hint), node.span)
        return
    for child in s.children(node):
        yield from check_no_aggregate(child)


def total_family(call: s.Call, kinds: Sequence[str]) -> str:
    """The family of an aggregate of arguments of these families. Raises ExpressionError."""
    name, function = call.function.upper(), call.function
    wanted = _ARGUMENTS.get(function, 1)
    if len(kinds) != wanted and not (function == COUNT and not kinds):
        message = f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(kinds) or '*'}"
        raise ExpressionError(TypeMismatchError(message), call.span)
    if function == COUNT:
        return "int"
    takes = {SUM: NUMERIC | {"duration"}, AVG: NUMERIC}.get(function, ORDERED - {"boolean"})
    if kinds[-1] not in (*takes, "null"):
        raise ExpressionError(TypeMismatchError(f"{name} does not take a {kinds[-1]}"), call.arguments[-1].span)
    if function in (MAX_BY, MIN_BY) and kinds[0] == "other":
        raise ExpressionError(TypeMismatchError(f"{name} does not take a value of this type"), call.arguments[0].span)
    return "double" if function == AVG else kinds[0]
