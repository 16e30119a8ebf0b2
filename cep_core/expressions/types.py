"""Types of expressions: what each operator and function takes and gives. Families as in `schema.FAMILIES` plus
`duration`."""

from __future__ import annotations

from collections.abc import Callable

from trendlake.cep_core.errors import TextError, TrendlakeError, TypeMismatchError, UnknownParameterError, did_you_mean
from trendlake.cep_core.expressions.functions import FUNCTIONS, clock_of, function_of
from trendlake.cep_core.expressions.sql_functions import CASE, SQL_FUNCTIONS
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import expression

NUMERIC = frozenset({"int", "double"})
ORDERED = frozenset({"int", "double", "string", "timestamp", "date", "duration", "boolean"})

AGGREGATES = ("count", "sum", "avg", "min", "max")

Resolve = Callable[[s.Attribute], str]
"""The family of an attribute; raises a TrendlakeError when there is none."""


class ExpressionError(TextError):
    """A mistake at a span of an expression."""

    def __init__(self, cause: TrendlakeError, span: s.Span) -> None:
        super().__init__(cause.message, span[0], span[1] - span[0], cause.hint)
        self.cause = cause


def _mismatch(node: s.Expr, message: str, hint: str | None = None) -> ExpressionError:
    return ExpressionError(TypeMismatchError(message, hint=hint), node.span)


def infer(node: s.Expr, resolve: Resolve) -> str:
    """The family of an expression's value. Raises ExpressionError at the part that does not fit."""
    match node:
        case s.Literal(kind=kind):
            return kind
        case s.Parameter(name=name, kind=kind):
            if not kind:
                message, hint = (
                    f"'${name}' has no value here",
                    "a parameter of for_each stands in `where`, `when` and `set`, of kind algebra in `pattern`",
                )
                raise ExpressionError(UnknownParameterError(message, hint=hint), node.span)
            return kind
        case s.Attribute():
            return resolve(node)
        case s.Unary(op=op, operand=operand):
            return _unary(node, op, infer(operand, resolve))
        case s.Binary(op=op, left=left, right=right):
            a, b = infer(left, resolve), infer(right, resolve)
            if op in ("and", "or"):
                for side, kind in ((left, a), (right, b)):
                    if kind not in ("boolean", "null"):
                        raise _mismatch(side, f"{op.upper()} takes conditions, this is {_a(kind)}")
                return "boolean"
            if op in ("+", "-", "*", "/", "%"):
                return _arithmetic(node, op, a, b)
            return _comparison(node, op, a, b)
        case s.In(operand=operand, choices=choices):
            kind = infer(operand, resolve)
            for choice in choices:
                _comparison(choice, "=", kind, infer(choice, resolve))
            return "boolean"
        case s.Call(function=function, arguments=(moment,)) if clock_of(function) is not None:
            return infer(moment, resolve)
        case s.SqlCall(function=function, arguments=arguments):
            return _sql_call(node, function, [infer(a, resolve) for a in arguments])
        case s.Call(function=function, arguments=arguments):
            _refuse_unknown(node, function)
            return _call(node, function, [infer(a, resolve) for a in arguments])


def _a(kind: str) -> str:
    return {"int": "an integer", "null": "NULL"}.get(kind, f"a {kind}")


def _unary(node: s.Unary, op: str, kind: str) -> str:
    if op == "isnull":
        return "boolean"
    if op == "not":
        if kind not in ("boolean", "null"):
            raise _mismatch(node.operand, f"NOT takes a condition, this is {_a(kind)}")
        return "boolean"
    if kind not in (*NUMERIC, "duration", "null"):
        raise _mismatch(node.operand, f"- takes a number or a duration, this is {_a(kind)}")
    return kind


def _arithmetic(node: s.Binary, op: str, a: str, b: str) -> str:
    if "null" in (a, b):
        other = b if a == "null" else a
        if other in (*NUMERIC, "null"):
            return "double"
        return other
    if a in NUMERIC and b in NUMERIC:
        return "double" if op == "/" or "double" in (a, b) else "int"
    table = {
        ("+", "timestamp", "duration"): "timestamp",
        ("+", "duration", "timestamp"): "timestamp",
        ("-", "timestamp", "duration"): "timestamp",
        ("-", "timestamp", "timestamp"): "duration",
        ("+", "duration", "duration"): "duration",
        ("-", "duration", "duration"): "duration",
        ("*", "duration", "int"): "duration",
        ("*", "int", "duration"): "duration",
    }
    kind = table.get((op, a, b))
    if kind is None:
        raise _mismatch(node, f"{op} does not take {_a(a)} and {_a(b)}")
    return kind


_HINTS = {
    frozenset({"timestamp", "string"}): "write times like TIMESTAMP '2013-01-31T09:00:00Z'",
    frozenset({"date", "string"}): "write dates like DATE '2013-03-10'",
    frozenset({"date", "timestamp"}): "date() gives the date of a time",
}


def _comparison(node: s.Expr, op: str, a: str, b: str) -> str:
    same = a == b or {a, b} <= NUMERIC or "null" in (a, b)
    if not same:
        hint = _HINTS.get(frozenset({a, b}))
        raise _mismatch(node, f"cannot compare {_a(a)} with {_a(b)}", hint)
    for kind in (a, b):
        if kind not in ORDERED and kind != "null":
            raise _mismatch(node, f"a column of type {kind} cannot be compared")
    if "boolean" in (a, b) and op not in ("=", "!="):
        raise _mismatch(node, f"conditions are not ordered: {op} does not take them")
    return "boolean"


def _refuse_unknown(node: s.Call, function: str) -> None:
    """Before its arguments are looked at: an aggregate of a variable is one mistake, not two."""
    if function in AGGREGATES:
        message = f"{function.upper()} is an aggregate: it goes into return, not into a condition"
        hint = f'return: {{n: {expression(node)}}} and having: ["n >= 4"]'
        raise _mismatch(node, message, hint)
    if function not in FUNCTIONS:
        raise _mismatch(node, f"there is no function '{function}'", did_you_mean(function, FUNCTIONS))


def _call(node: s.Call, function: str, kinds: list[str]) -> str:
    row = function_of(function)
    takes, gives, count = row.takes, row.gives, row.arguments
    if not kinds or (takes and len(kinds) != count):
        wanted = "at least 1 argument" if not takes else "1 argument" if count == 1 else f"{count} arguments"
        raise _mismatch(node, f"{function} takes {wanted}, not {len(kinds)}")
    if takes:
        for argument, given in zip(node.arguments, kinds, strict=True):
            if given not in (*takes, "null"):
                raise _mismatch(argument, f"{function} takes {' or '.join(map(_a, takes))}, this is {_a(given)}")
        return gives or kinds[0]
    kind = "null"
    for argument, given in zip(node.arguments, kinds, strict=True):
        if given == "null":
            continue
        if kind == "null" or kind == given:
            kind = given
        elif {kind, given} <= NUMERIC:
            kind = "double"
        else:
            raise _mismatch(argument, f"{function} takes values of one type: {_a(kind)} and {_a(given)} do not mix")
    return gives or kind


def _sql_call(node: s.SqlCall, function: str, kinds: list[str]) -> str:
    if function == CASE:
        return _case(node, kinds)
    row = SQL_FUNCTIONS[function]
    least, most = len(row.takes) - row.optional, 100 if row.many else len(row.takes)
    if not least <= len(kinds) <= most:
        wanted = f"{least}" if least == most else f"{least} or more" if row.many else f"{least} or {most}"
        plural = "s" if wanted != "1" else ""
        raise _mismatch(node, f"{function} takes {wanted} argument{plural}, not {len(kinds)}")
    takes = row.takes + row.takes[-1:] * (len(kinds) - len(row.takes))
    for argument, given, taken in zip(node.arguments, kinds, takes, strict=False):
        if given not in (*taken, "null"):
            hint = "CAST(x AS VARCHAR) makes a text of it" if taken == ("string",) else None
            raise _mismatch(argument, f"{function} takes {' or '.join(map(_a, taken))}, this is {_a(given)}", hint)
    return row.gives or (kinds[0] if kinds[0] != "null" else "double")


def _case(node: s.SqlCall, kinds: list[str]) -> str:
    for condition, given in zip(node.arguments[:-1:2], kinds[:-1:2], strict=True):
        if given not in ("boolean", "null"):
            raise _mismatch(condition, f"WHEN takes a condition, this is {_a(given)}")
    kind = "null"
    places = [*range(1, len(kinds) - 1, 2), len(kinds) - 1]
    for place in places:
        given = kinds[place]
        if given == "null" or given == kind:
            continue
        if kind == "null":
            kind = given
        elif {kind, given} <= NUMERIC:
            kind = "double"
        else:
            message = f"CASE has values of one type: {_a(kind)} and {_a(given)} do not mix"
            raise _mismatch(node.arguments[place], message)
    return kind
