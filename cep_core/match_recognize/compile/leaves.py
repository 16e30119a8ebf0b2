"""Attributes of resolved expressions: the reads of conditions and measures from the rows of a match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import expression

ZERO, NOTHING = s.Literal(0, "int"), s.Literal(None, "null")
LIST = "list of "
"""How the family of a list begins, and the name of its type."""


@dataclass(frozen=True)
class Cell(s.Attribute):
    """A column at the row at which the expression is evaluated. `family`: of its values."""

    family: str = "null"


@dataclass(frozen=True)
class Leaf(s.Attribute):
    """`family`: of its value."""

    family: str = "null"


@dataclass(frozen=True)
class Label(Leaf):
    """CLASSIFIER() of the row at which an argument is evaluated."""


@dataclass(frozen=True)
class Number(Leaf):
    """MATCH_NUMBER()."""


@dataclass(frozen=True)
class Navigation(Leaf):
    """`argument` at a row: the one `offset` places from the first (`first`) or last row of the match so far that is
    mapped to one of `variables` (() for any), and from it `shift` places on in the partition (before it where
    negative, by `sign`). `final`: of all rows of the match."""

    variables: tuple[str, ...] = ()
    first: bool = False
    offset: s.Expr = ZERO
    sign: int = 0
    shift: s.Expr = ZERO
    final: bool = False
    argument: s.Expr = NOTHING


@dataclass(frozen=True)
class Total(Leaf):
    """An aggregate over the rows of the match so far that are mapped to one of `variables` (() for any). `rows`: it
    counts rows, whatever they hold. `kinds`: the families of the arguments."""

    function: str = "COUNT"
    variables: tuple[str, ...] = ()
    arguments: tuple[s.Expr, ...] = ()
    kinds: tuple[str, ...] = ()
    distinct: bool = False
    rows: bool = False
    final: bool = False


def whole(node: s.Expr) -> int:
    """The value of an offset of a plan that runs."""
    assert isinstance(node, s.Literal)
    assert isinstance(node.value, int)
    return node.value


def inside(node: s.Expr) -> tuple[s.Expr, ...]:
    """The expressions directly within one, arguments of leaves too."""
    match node:
        case Navigation(offset=offset, shift=shift, argument=argument):
            return (argument, offset, shift)
        case Total(arguments=arguments):
            return arguments
        case _:
            return s.children(node)


def leaves(node: s.Expr) -> Iterator[Leaf]:
    """The leaves of an expression, left to right; not those in arguments of others."""
    if isinstance(node, Leaf):
        yield node
    else:
        for child in s.children(node):
            yield from leaves(child)


def every(node: s.Expr) -> Iterator[s.Expr]:
    """An expression and all in it, arguments of leaves too."""
    left = [node]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(inside(one)))


def columns_of(node: s.Expr) -> list[str]:
    """The columns of the input that an expression reads."""
    return [one.name for one in every(node) if isinstance(one, Cell)]


def family_of(read: s.Attribute) -> str:
    """The family of a resolved attribute."""
    return read.family if isinstance(read, Leaf | Cell) else "other"


def reads_labels(node: s.Expr) -> bool:
    """Whether an expression asks which variables rows are mapped to."""
    return any(isinstance(one, Label) or getattr(one, "variables", ()) for one in every(node))


def spelled(node: s.Expr, sets: Mapping[tuple[str, ...], str]) -> str:
    """An expression as a user would write it. `sets`: the names of sets of variables, by SUBSET."""
    return expression(mapped(node, lambda one: s.Attribute("", _leaf(one, sets)) if isinstance(one, Leaf) else one))


def mapped(node: s.Expr, change: Callable[[s.Expr], s.Expr]) -> s.Expr:
    """An expression with what `change` gives for each part that has no operands."""
    match node:
        case s.Unary(operand=operand):
            return replace(node, operand=mapped(operand, change))
        case s.Binary(left=left, right=right):
            return replace(node, left=mapped(left, change), right=mapped(right, change))
        case s.In(operand=operand, choices=choices):
            return replace(
                node, operand=mapped(operand, change), choices=tuple(mapped(choice, change) for choice in choices)
            )
        case s.Call(arguments=arguments):
            return replace(node, arguments=tuple(mapped(argument, change) for argument in arguments))
        case _:
            return change(node)


def _set(variables: tuple[str, ...], sets: Mapping[tuple[str, ...], str]) -> str:
    return variables[0] if len(variables) == 1 else sets.get(variables, "+".join(variables))


def _argument(node: s.Expr, variables: tuple[str, ...], sets: Mapping[tuple[str, ...], str]) -> str:
    """The argument of a leaf, its columns with the variable that it reads."""
    name = _set(variables, sets) if variables else ""

    def change(one: s.Expr) -> s.Expr:
        match one:
            case Label():
                return s.Attribute("", f"CLASSIFIER({name})")
            case Number():
                return s.Attribute("", "MATCH_NUMBER()")
            case Cell(name=column):
                return s.Attribute(name, column)
        return one

    return expression(mapped(node, change))


def _leaf(leaf: Leaf, sets: Mapping[tuple[str, ...], str]) -> str:
    match leaf:
        case Number():
            return "MATCH_NUMBER()"
        case Navigation(offset=offset, shift=shift, sign=sign, first=first, final=final):
            text = _argument(leaf.argument, leaf.variables, sets)
            far = not isinstance(offset, s.Literal) or offset.value != 0
            if first or far or final:
                word = f"{'FINAL ' if final else ''}{'FIRST' if first else 'LAST'}"
                text = f"{word}({text}{f', {expression(offset)}' if far else ''})"
            if sign:
                by = "" if isinstance(shift, s.Literal) and shift.value == 1 else f", {expression(shift)}"
                text = f"{'PREV' if sign < 0 else 'NEXT'}({text}{by})"
            return text
        case Total(function=function, arguments=arguments, variables=variables, rows=rows, distinct=distinct):
            if rows:
                inner = f"{_set(variables, sets)}.*" if variables else "*"
            else:
                listed = ", ".join(_argument(one, variables, sets) for one in arguments)
                inner = f"{'DISTINCT ' if distinct else ''}{listed}"
            return f"{'FINAL ' if leaf.final else ''}{function}({inner})"
    return "CLASSIFIER()"
