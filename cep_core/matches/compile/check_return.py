"""`return` of kind matches: values that a match has one of."""

from __future__ import annotations

from trendlake.cep_core.errors import BadConditionError, TypeMismatchError
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.check_where import ConditionChecker
from trendlake.cep_core.matches.compile.plan import Measure, aggregated, iterates
from trendlake.cep_core.yaml.source import Path_

AGGREGATES = ("count", "sum", "avg", "min", "max")


class MeasureChecker(ConditionChecker):
    """Reads measures."""

    def read_measure(self, name: str, text: str) -> Measure | None:
        path: Path_ = ("return", name)
        parsed = self.parsed(parse.parse_condition, text, path)
        if parsed is None or not self.types:
            return None
        if isinstance(parsed, s.Equivalence):
            self.report(BadConditionError("a measure is a value, not an equivalence"), path, parsed.span)
            return None
        try:
            expression = on_clock(self._reduced(self.named_in(parsed)), self.query.time_zone, self.resolve)
            family = infer(expression, self.resolve)
            self._of_one_match(expression)
        except ExpressionError as error:
            self.report(error.cause, path, (error.offset, error.offset + error.width))
            return None
        if family in ("other", "null"):
            self.report(TypeMismatchError(f"a measure cannot be of type {family}"), path, expression.span)
            return None
        self.advise(expression, path)
        return Measure(name, expression, family)

    def _reduced(self, node: s.Expr) -> s.Expr:
        """COUNT(a), SUM|AVG|MIN|MAX(a.x) as attributes with the index `all`."""
        match node:
            case s.Call(function=function, arguments=(s.Attribute() as read,), span=span) if function in AGGREGATES:
                if isinstance(read, s.Indexed):
                    cause = BadConditionError(f"{function.upper()} is over all of {read.variable}'s events")
                    raise ExpressionError(cause, span)
                if function == "count":
                    if read.variable:
                        hint = f"write COUNT({read.variable})"
                        raise ExpressionError(BadConditionError("COUNT takes a variable", hint=hint), span)
                    self.variable(read.name, read.span)
                    return s.Indexed(read.name, "", False, span, "all", function)
                if not read.variable:
                    hint = f"such as {function.upper()}({next(iter(self.types), 'a')}.{read.name})"
                    cause = BadConditionError(f"{function.upper()} takes a variable's attribute", hint=hint)
                    raise ExpressionError(cause, span)
                self.variable(read.variable, read.span)
                aggregated(read, self.column(read.name, read.span, read.variable), function)
                return s.Indexed(read.variable, read.name, False, span, "all", function)
            case s.Unary(op=op, operand=operand, span=span):
                return s.Unary(op, self._reduced(operand), span)
            case s.Binary(op=op, left=left, right=right, span=span):
                return s.Binary(op, self._reduced(left), self._reduced(right), span)
            case s.In(operand=operand, choices=choices, span=span):
                return s.In(self._reduced(operand), tuple(map(self._reduced, choices)), span)
            case s.Call(function=function, arguments=arguments, span=span):
                return s.Call(function, tuple(map(self._reduced, arguments)), span)
        return node

    def _of_one_match(self, expression: s.Expr) -> None:
        """Refuses what has no one value in a match."""
        kleene = {part.variable for part in self.parts if part.kleene}
        for read in s.attributes(expression):
            if read.variable in self.of_nots:
                cause = BadConditionError(f"'{read.variable}' is under NOT: no match has events of it")
                raise ExpressionError(cause, read.span)
            if read.variable in kleene and iterates(read):
                v, x = read.variable, read.name
                hint = f"write {v}[1].{x}, {v}[{v}.LEN].{x} or an aggregate such as AVG({v}.{x})"
                raise ExpressionError(BadConditionError(f"a match has several events of {v}", hint=hint), read.span)
