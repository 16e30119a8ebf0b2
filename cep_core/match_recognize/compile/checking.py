"""The part of checking a row pattern that all clauses need: mistakes with their places, columns found in any case,
parameters with their types, expressions typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from trendlake.cep_core.errors import (
    BadPatternError,
    TrendlakeError,
    TypeMismatchError,
    UnknownAttributeError,
    did_you_mean,
)
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.expressions.advice import Adviser
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.sql_functions import CASE, SQL_FUNCTIONS
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import LIST, Cell, Leaf, family_of, mapped
from trendlake.cep_core.match_recognize.compile.model import MatchRecognizePattern
from trendlake.cep_core.match_recognize.compile.plan import Column
from trendlake.cep_core.patterns.parameters import UnknownHereError, typed, why_text

PATH = ("pattern",)
TIMES = ("timestamp", "date")
SHOWN = {"int": "a bigint", "null": "NULL", "string": "a varchar", "other": "of an unknown type"}
TYPE_NAMES = {"int": "bigint", "duration": "bigint"}


def described(family: str) -> str:
    """A family in words of SQL."""
    return "a list" if family.startswith(LIST) else SHOWN.get(family, f"a {family}")


def type_of(family: str) -> str:
    """The type of a computed column."""
    return TYPE_NAMES.get(family, family)


class Table:
    """Columns by name, found in any case. `what`: whose they are, in a message; `roles`: those that every table has."""

    def __init__(self, columns: Mapping[str, Column], what: str, roles: Iterable[str] = ()) -> None:
        self.columns, self.what = dict(columns), what
        self.own = [name for name in self.columns if name not in roles]
        self.names: dict[str, list[str]] = {}
        for name in self.columns:
            self.names.setdefault(same_name(name), []).append(name)

    def find(self, name: str) -> Column | None:
        """The column that a text calls so. Raises UnknownAttributeError where several are."""
        if name in self.columns:
            return self.columns[name]
        names = self.names.get(same_name(name), [])
        if len(names) > 1:
            raise UnknownAttributeError(f"'{name}' may be {' or '.join(names)}", hint="write it in their case")
        return self.columns[names[0]] if names else None

    def column(self, name: str, span: s.Span) -> Column:
        """As `find`. Raises ExpressionError where there is none."""
        try:
            result = self.find(name)
        except UnknownAttributeError as error:
            raise ExpressionError(error, span) from None
        if result is None:
            hint = f"did you mean '{self.own[0]}'?" if len(self.own) == 1 else did_you_mean(name, self.columns)
            raise ExpressionError(UnknownAttributeError(f"{self.what} has no column '{name}'", hint=hint), span)
        return result


class Checking:
    """Collects the mistakes of one text."""

    def __init__(self, pattern: MatchRecognizePattern, schema: EventSchema) -> None:
        self.pattern, self.schema = pattern, schema
        self.errors: list[TrendlakeError] = []
        self.warnings: list[str] = []
        self.adviser = Adviser(pattern.parameters.empty if pattern.parameters else None)

    def report(self, where: str, error: TrendlakeError, span: s.Span) -> None:
        """A mistake in the part `where` of the text ("" for none)."""
        message = f"{where}: {error.message}" if where else error.message
        place = self.pattern.document.place(PATH, offset=span[0], width=max(1, span[1] - span[0]))
        self.errors.append(type(error)(message, place=place, hint=error.hint))

    def cause(self, error: TrendlakeError, name: str) -> TrendlakeError:
        """The error of a column; of several tables it says which do not have it."""
        tables = self.schema.tables
        if tables is None or not isinstance(error, UnknownAttributeError) or name in self.schema.families:
            return error
        attribute = next((one for one in tables.names if same_name(one) == same_name(name)), None)
        return error if attribute is None or attribute in self.schema.families else self.schema.unknown(attribute)

    def warn(self, message: str, hint: str, span: s.Span) -> None:
        place = self.pattern.document.place(PATH, offset=span[0], width=max(1, span[1] - span[0]))
        self.warnings.append(str(BadPatternError(message, place=place, hint=hint)))

    def expression(self, where: str, node: s.Expr, leaf: Callable[[s.Attribute], s.Expr]) -> tuple[s.Expr, str] | None:
        """An expression with what `leaf` gives for its attributes, and its family; None where it has mistakes, which
        are reported. `leaf` raises ExpressionError."""
        before = len(self.errors)
        node = self._resolved(where, node, leaf)
        if len(self.errors) > before:
            return None
        try:
            node, family = settled(on_clock(node, self.pattern.time_zone, family_of))
        except ExpressionError as error:
            hint = error.cause.hint or why_text(node, self.pattern.parameters)
            cause = type(error.cause)(error.cause.message, hint=hint)
            self.report(where, cause, (error.offset, error.offset + error.width))
            return None
        self.adviser.look(
            node,
            family_of,
            lambda span: self.pattern.document.place(PATH, offset=span[0], width=span[1] - span[0]),
            lambda read: (read.name,) if isinstance(read, Cell) and read.name in self.schema.families else (),
        )
        return node, family

    def condition(self, where: str, node: s.Expr, leaf: Callable[[s.Attribute], s.Expr]) -> s.Expr | None:
        """As `expression`, of one that is true or false."""
        result = self.expression(where, node, leaf)
        if result is None:
            return None
        if result[1] not in ("boolean", "null"):
            error = TypeMismatchError(f"a condition is expected, this is {described(result[1])}")
            self.report(where, error, node.span)
            return None
        return result[0]

    def _resolved(self, where: str, node: s.Expr, leaf: Callable[[s.Attribute], s.Expr]) -> s.Expr:
        """All mistakes in attributes and parameters are reported."""

        def change(one: s.Expr) -> s.Expr:
            try:
                if isinstance(one, s.Parameter):
                    return self._parameter(one)
                if isinstance(one, s.Attribute):
                    return leaf(one)
            except (UnknownHereError, ExpressionError) as error:
                unread = isinstance(error, UnknownHereError) and self.pattern.unread_parameters
                if not unread:
                    name = one.name if isinstance(one, s.Attribute) else ""
                    self.report(where, self.cause(error.cause, name), (error.offset, error.offset + error.width))
                else:  # the mistakes of for_each are reported already
                    self.errors.append(error.cause)
            return one

        return mapped(node, change)

    def _parameter(self, node: s.Parameter) -> s.Expr:
        known: s.Expr = typed(node, self.pattern.parameters)
        return known


def settled(node: s.Expr) -> tuple[s.Expr, str]:
    """An expression in which a difference of times is a whole number, durations that meet whole numbers are such, and
    casts know what they cast; and its family. Raises ExpressionError."""
    match node:
        case s.Unary(operand=operand):
            node = replace(node, operand=settled(operand)[0])
            if node.op == "isnull":
                return node, "boolean"
        case s.Binary(op=op, left=left, right=right):
            (left, a), (right, b) = settled(left), settled(right)
            if op == "-" and a in TIMES and b in TIMES:
                return s.SqlCall("time_difference", (left, right), node.span), "int"
            if {a, b} == {"int", "duration"} and op not in ("*", "and", "or"):
                left, right = (_whole(one) if kind == "duration" else one for one, kind in ((left, a), (right, b)))
            elif a == b == "duration" and op in ("/", "%"):
                left, right = _whole(left), _whole(right)
            node = replace(node, left=left, right=right)
        case s.In(operand=operand, choices=choices):
            node = replace(node, operand=settled(operand)[0], choices=tuple(settled(one)[0] for one in choices))
        case s.SqlCall(function=function, arguments=arguments) if function.startswith("cast_"):
            return _cast(node, function.removeprefix("cast_"), *settled(arguments[0]))
        case s.Call(arguments=arguments):
            node = replace(node, arguments=tuple(settled(one)[0] for one in arguments))
    _check_constant(node)
    for child in s.children(node):
        if isinstance(child, Leaf) and child.family.startswith(LIST):
            raise ExpressionError(TypeMismatchError("a list stands alone: nothing is computed of it"), child.span)
    return node, infer(node, family_of)


def _whole(node: s.Expr) -> s.Expr:
    return s.SqlCall("microseconds", (node,), node.span)


def _cast(node: s.Expr, to: str, value: s.Expr, family: str) -> tuple[s.Expr, str]:
    if family in (to, "null"):
        return (value, to) if family == to else (s.SqlCall(CASE, (value,), node.span), to)
    name = f"cast_{family}_{to}"
    if name not in SQL_FUNCTIONS:
        hint = "a difference of times is a whole number" if family in TIMES and to == "int" else None
        message = f"{described(family)} cannot be cast to {to if to != 'int' else 'bigint'}"
        raise ExpressionError(TypeMismatchError(message, hint=hint), node.span)
    return s.SqlCall(name, (value,), node.span), to


def _check_constant(node: s.Expr) -> None:
    if isinstance(node, s.Literal) and type(node.value) is int and not -(2**63) <= node.value < 2**63:
        raise ExpressionError(TypeMismatchError("this number does not fit 64 bits"), node.span)
