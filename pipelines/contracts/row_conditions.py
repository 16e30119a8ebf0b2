"""Conditions of contracts on a row, in the pattern language's own expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trendlake.cep_core.errors import TextError, did_you_mean
from trendlake.cep_core.expressions import functions
from trendlake.cep_core.expressions.types import NUMERIC, Resolve, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_condition

FUNCTIONS = frozenset({*functions.FUNCTIONS, "log10"})
"""Those of patterns, and one more, for columns that hold logarithms of counts."""


def parse_row_condition(text: str) -> s.Expr:
    """The tree of a condition over bare column names.

    Raises TextError (its `offset` and `width` point into `text`) for what does not parse, names a function there is
    not, or speaks of variables.
    """
    condition = parse_condition(text)
    if isinstance(condition, s.Equivalence):
        raise TextError("a condition on a row, not an equivalence", 0, len(text))
    _check(condition)
    return condition


def check_types(condition: s.Expr, families: Mapping[str, str]) -> None:
    """Raises TextError for a condition that names no column of `families` (column -> type family), or whose types do
    not go together, as in a pattern."""

    def family_of(attribute: s.Attribute) -> str:
        if attribute.name not in families:
            start, end = attribute.span
            hint = did_you_mean(attribute.name, families)
            raise TextError(f"there is no column '{attribute.name}'", start, end - start, hint)
        return families[attribute.name]

    if infer(_without_logarithms(condition, family_of), family_of) != "boolean":
        start, end = condition.span
        raise TextError("a condition is true or false", start, end - start)


def _without_logarithms(node: s.Expr, family_of: Resolve) -> s.Expr:
    """`log10(x) < 1` -> `1.0 < 1`: patterns have no logarithm, and it is a number. Raises TextError."""

    def inside(part: s.Expr) -> s.Expr:
        return _without_logarithms(part, family_of)

    match node:
        case s.Unary(operand=operand):
            return replace(node, operand=inside(operand))
        case s.Binary(left=left, right=right):
            return replace(node, left=inside(left), right=inside(right))
        case s.In(operand=operand, choices=choices):
            return replace(node, operand=inside(operand), choices=tuple(map(inside, choices)))
        case s.Call(function=function, arguments=arguments):
            node = replace(node, arguments=tuple(map(inside, arguments)))
            if function != "log10":
                return node
            if len(arguments) != 1 or infer(node.arguments[0], family_of) not in (*NUMERIC, "null"):
                raise TextError("log10 takes 1 number", node.span[0], node.span[1] - node.span[0])
            return s.Literal(1.0, "double", node.span)
    return node


def _check(node: s.Expr) -> None:
    start, end = node.span
    if isinstance(node, s.Attribute) and node.variable:
        raise TextError("a condition on a row names columns alone", start, end - start, f"write {node.name}")
    if isinstance(node, s.Parameter):
        raise TextError("a condition on a row has no parameters", start, end - start, "they are for patterns")
    if isinstance(node, s.Call) and node.function not in FUNCTIONS:
        hint = did_you_mean(node.function, FUNCTIONS)
        raise TextError(f"there is no function '{node.function}'", start, end - start, hint)
    for child in s.children(node):
        _check(child)
