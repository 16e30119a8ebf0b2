"""Conditions of contracts on a row, in the pattern language's own expressions."""

from __future__ import annotations

from cep_core.errors import TextError, did_you_mean
from cep_core.expressions import functions
from cep_core.language import syntax as s
from cep_core.language.parse import parse_condition

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
