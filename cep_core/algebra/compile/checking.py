"""The part of checking CEL that all places need: mistakes with their places, operators once, expressions resolved and
typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.aggregates import check_no_aggregate
from trendlake.cep_core.algebra.compile.model import AlgebraPattern
from trendlake.cep_core.algebra.compile.scopes import AnyNames, Scope
from trendlake.cep_core.errors import BadConditionError, BadEventsError, TrendlakeError, TypeMismatchError
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.expressions.columnar import constant, evaluate
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.parameters import Parameters, UnknownHereError, typed, why_text

PATH = ("pattern",)


@dataclass(frozen=True)
class Known:
    """A stream of the text. `node`: its place in the list of operators, None where mistakes leave it without;
    `families`: its attributes."""

    node: int | None
    families: Mapping[str, str]

    @property
    def open(self) -> bool:
        """Whether mistakes leave its attributes unknown."""
        return isinstance(self.families, AnyNames)


UNKNOWN = Known(None, AnyNames())


class Checking:
    """Collects mistakes; equal operators are one. `partition`: its columns; `base`: the attributes of base events."""

    def __init__(self, pattern: AlgebraPattern, schema: EventSchema) -> None:
        self.pattern = pattern
        self.schema = schema
        self.errors: list[TrendlakeError] = []
        self.nodes: list[n.Node] = []
        self.places: dict[n.Node, int] = {}
        self.statements: list[int] = []
        self.statement_number = 1
        families = schema.families
        self.partition = {name: families[name] for name in pattern.partition_by if name in families}
        own = {name: kind for name, kind in families.items() if name not in ("start", "end")}
        self.base = {name: kind for name, kind in own.items() if name not in pattern.partition_by}

    def report(self, error: TrendlakeError, span: s.Span, path: tuple[str | int, ...] = PATH) -> None:
        error.place = self.pattern.document.place(path, offset=span[0], width=span[1] - span[0])
        self.errors.append(error)

    def add(self, node: n.Node) -> int:
        """The place of an operator."""
        if node not in self.places:
            self.places[node] = len(self.nodes)
            self.nodes.append(node)
            self.statements.append(self.statement_number)
        return self.places[node]

    def stream_of(self, node: n.Node) -> Known:
        return Known(self.add(node), dict(n.attributes_of(node)))

    def expression(self, node: s.Expr, scope: Scope) -> s.Expr | None:
        """The expression with each attribute resolved. If there are mistakes, all are reported, and the result is
        None."""
        before = len(self.errors)
        try:
            node = typed(node, self.pattern.parameters)
        except UnknownHereError as missing:
            if not self.pattern.unread_parameters:
                self.report(missing.cause, (missing.offset, missing.offset + missing.width))
            return None
        for error in check_no_aggregate(node):
            self.report(error.cause, (error.offset, error.offset + error.width))

        def change(read: s.Attribute) -> s.Attribute:
            try:
                return scope.resolve(read)
            except ExpressionError as error:
                tables = self.schema.tables
                of_some = tables is not None and read.name in tables.names and read.name not in self.schema.families
                self.report(self.schema.unknown(read.name) if of_some else error.cause, read.span)
                return read

        resolved = on_clock(n.mapped(node, change), self.pattern.time_zone, scope.family)
        return resolved if len(self.errors) == before else None

    def family(self, node: s.Expr, scope: Scope) -> str | None:
        """Of a resolved expression; None if its types do not fit, which is reported."""
        try:
            kind = infer(node, scope.family)
            _check_constants(node, self.pattern.parameters)
            return kind
        except ExpressionError as error:
            error.cause.hint = error.cause.hint or why_text(node, self.pattern.parameters)
            self.report(error.cause, (error.offset, error.offset + error.width))
            return None

    def condition(self, node: s.Expr | None, scope: Scope) -> s.Expr | None:
        """A resolved condition; None if there is none or it has mistakes."""
        resolved = None if node is None else self.expression(node, scope)
        if node is None or resolved is None:
            return None
        kind = self.family(resolved, scope)
        if kind not in ("boolean", "null", None):
            self.report(TypeMismatchError(f"a condition is true or false, this is {described(kind)}"), node.span)
        for part in s.conjuncts(resolved):
            if s.parameters(part) and not s.attributes(part):
                hint = "leave the row out of for_each instead"
                self.report(BadConditionError("this reads parameters and no event", hint=hint), part.span)
        return resolved if kind in ("boolean", "null") else None


def described(kind: str) -> str:
    """A family in words."""
    return {"int": "an integer", "null": "NULL", "other": "of an unknown type"}.get(kind, f"a {kind}")


def _check_constants(node: s.Expr, parameters: Parameters | None) -> None:
    """Raises ExpressionError for a whole number, written or computed of such and of parameters, that does not fit 64
    bits."""
    if isinstance(node, s.Literal) and type(node.value) is int and not -(2**63) <= node.value < 2**63:
        raise ExpressionError(TypeMismatchError("this number does not fit 64 bits"), node.span)
    for child in s.children(node):
        _check_constants(child, parameters)
    if s.children(node) and not s.attributes(node):
        try:
            _compute(node, parameters)
        except BadEventsError as error:
            whose = _whose(node, parameters)
            raise ExpressionError(TypeMismatchError(f"{error.message}{whose}"), node.span) from None


def _compute(node: s.Expr, parameters: Parameters | None) -> None:
    """Computes an expression without attributes, of all rows of parameters at once. Raises BadEventsError."""
    if parameters is None or not s.parameters(node):
        constant(node)
        return
    columns = dict(zip(parameters.names, zip(*parameters.rows, strict=True), strict=True))
    of_rows = s.replaced(node, lambda parameter: s.Attribute("", parameter.name))
    evaluate(of_rows, lambda read: pa.array(columns[read.name]), len(parameters.rows))


def _whose(node: s.Expr, parameters: Parameters | None) -> str:
    """In words the first row of parameters for which an expression cannot be computed."""
    if parameters is None or not s.parameters(node):
        return ""
    for row in parameters.rows:
        try:
            _compute(node, replace(parameters, rows=(row,)))
        except BadEventsError:
            return f" (where {parameters.described(row)})"
    return ""
