"""Expressions that are legal in a pattern and rarely meant: a comparison with NULL, and texts compared by their order.

    x.price = NULL            ->  is never true: write x.price IS NULL
    x.isig < NEXT(x).isig     ->  compares letter by letter, '10' before '9', where isig is a text

The second matters only where the texts look like numbers, which the values of the column say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from trendlake.cep_core.errors import BadConditionError, Place, TypeMismatchError
from trendlake.cep_core.events.number_texts import NumberTexts, number_texts
from trendlake.cep_core.events.tables import plain_name
from trendlake.cep_core.expressions.types import Resolve, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import expression

ORDERS = ("<", "<=", ">", ">=")
_NEVER = "this is never true: nothing equals NULL, and nothing differs from it"


@dataclass(frozen=True)
class Advice:
    """One such part of a pattern. `columns`: text columns that are compared by their order, which is meant where their
    values do not look like numbers; none for what is rarely meant. `some`: of some rows of `for_each` only, or meant by
    some: `evaluate` does not warn of it."""

    message: str
    hint: str
    place: Place | None = None
    columns: tuple[str, ...] = ()
    some: bool = False

    def __str__(self) -> str:
        kind = TypeMismatchError if self.columns else BadConditionError
        return str(kind(self.message, place=self.place, hint=self.hint))


class Adviser:
    """Collects advice on the expressions of one file. `empty`: parameter -> in how many rows of `for_each` it is
    NULL."""

    def __init__(self, empty: Mapping[str, int] | None = None) -> None:
        self.empty = empty or {}
        self.advice: list[Advice] = []

    def look(
        self,
        node: s.Expr,
        resolve: Resolve,
        place: Callable[[s.Span], Place],
        columns: Callable[[s.Attribute], Iterable[str]] = lambda read: (read.name,),
    ) -> None:
        """Advice on an expression whose types are right. `place`: of a span of the text that contains it; `columns`:
        the columns of the source whose values an attribute has."""
        for child in s.children(node):
            self.look(child, resolve, place, columns)
        match node:
            case s.Binary(op=op, left=left, right=right) if op in (*ORDERS, "=", "!="):
                self._of_null(node, op, left, right, place)
                self._of_null(node, op, right, left, place)
                if op in ORDERS and {infer(left, resolve), infer(right, resolve)} == {"string"}:
                    self.order(op, _texts(node, resolve, columns), place(node.span))
            case s.In(operand=operand, choices=choices):
                for choice in choices:
                    self._in_list(operand, choice, place)
            case s.Call(function=function, arguments=arguments) if function in ("least", "greatest"):
                if "string" in [infer(one, resolve) for one in arguments]:
                    self.order(function.upper(), _texts(node, resolve, columns), place(node.span))
            case s.Indexed(function=function) if function in ("min", "max") and resolve(node) == "string":
                self.order(function.upper(), tuple(columns(node)), place(node.span))

    def order(self, what: str, columns: Iterable[str], place: Place) -> None:
        """Advice on texts of columns that `what`, an operator or aggregate, puts in order."""
        names = tuple(dict.fromkeys(columns))
        if not names:
            return
        written = " and ".join(map(plain_name, names))
        message = f"{what} compares {written} letter by letter, as texts: '10' comes before '9'"
        self.add(Advice(message, "for numbers: logicalType: number in the contract", place, names))

    def _of_null(self, node: s.Expr, op: str, side: s.Expr, other: s.Expr, place: Callable[[s.Span], Place]) -> None:
        if side == s.Literal(None, "null"):
            shown = expression(other)
            ways = {"=": f"write {shown} IS NULL", "!=": f"write {shown} IS NOT NULL"}
            hint = ways.get(op, f"where a value is missing, {shown} IS NULL is true")
            self.add(Advice(_NEVER, hint, place(node.span)))
        elif isinstance(side, s.Parameter) and (rows := self.empty.get(side.name)):
            message = f"this is never true where ${side.name} is NULL, as in {rows:,} of the rows of for_each"
            hint = f"leave these rows out, or write {expression(other)} IS NULL"
            self.add(Advice(message, hint, place(node.span), some=True))

    def _in_list(self, operand: s.Expr, choice: s.Expr, place: Callable[[s.Span], Place]) -> None:
        if choice == s.Literal(None, "null"):
            shown = expression(operand)
            message = "NULL in a list: IN finds no missing value, and NOT IN is never true"
            self.add(
                Advice(message, f"write {shown} IS NULL OR ..., or {shown} IS NOT NULL AND ...", place(choice.span))
            )

    def add(self, advice: Advice) -> None:
        """Adds advice once."""
        if advice not in self.advice:
            self.advice.append(advice)


def _texts(node: s.Expr, resolve: Resolve, columns: Callable[[s.Attribute], Iterable[str]]) -> list[str]:
    """The columns of the texts that an expression reads."""
    return [name for read in s.attributes(node) if resolve(read) == "string" for name in columns(read)]


def advice_on(events: pa.Table, advice: Iterable[Advice]) -> Iterator[str]:
    """The advice on a pattern over these events, in words."""

    def like(name: str) -> NumberTexts | None:
        return number_texts(events.column(name)) if name in events.column_names else None

    return in_words(advice, cache(like))


def in_words(advice: Iterable[Advice], columns: Callable[[str], NumberTexts | None], where: str = "") -> Iterator[str]:
    """The advice that the values of columns do not make needless, as it is shown. `where`: the values are, in words."""
    for one in advice:
        likes = {name: like for name in one.columns if (like := columns(name)) is not None}
        if not one.columns:
            yield str(one)
        elif likes:
            values = "; ".join(f"{name}{where}: {like}" for name, like in likes.items())
            words = json.dumps([like.other for like in likes.values() if like.other is not None])
            hint = one.hint if words == "[]" else f"{one.hint}, and nullWords: {words}"
            yield str(replace(one, message=f"{one.message}. {values}", hint=hint))
