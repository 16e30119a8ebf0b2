"""Syntax trees back to text, for `explain`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trendlake.cep_core.language import syntax as s

_LEVEL = {"or": 1, "and": 2, "=": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


def expression(node: s.Expr) -> str:
    """A condition or value as a user would write it."""
    return _text(node, 0)


def pattern(node: s.PatternNode) -> str:
    """A pattern as a user would write it."""
    match node:
        case s.Atom(type_name=kind, variable=variable):
            return kind if kind == variable else f"{kind} {variable}"
        case s.Repeat(body=body, low=low, high=high):
            signs = {(1, None): "+", (0, None): "*", (0, 1): "?", (low, low): f"{{{low}}}"}
            sign = signs.get((low, high), f"{{{low},{'' if high is None else high}}}")
            inner = pattern(body)
            return f"{inner}{sign}" if isinstance(body, s.Atom | s.Or) else f"({inner}){sign}"
        case s.Seq(parts=parts):
            return f"SEQ({', '.join(map(pattern, parts))})"
        case s.Or(options=options):
            return f"({' OR '.join(map(pattern, options))})"
        case s.And(parts=parts):
            return f"({' AND '.join(map(pattern, parts))})"
        case s.Not(body=body, within=within):
            return f"NOT {pattern(body)}{'' if within is None else f' within {duration(within)}'}"


def _text(node: s.Expr, level: int) -> str:
    match node:
        case s.Literal(value=value, kind=kind):
            return _literal(value, kind)
        case s.Parameter(name=name):
            return f"${name}"
        case s.Indexed(variable=variable, name=name, index=index, function=function):
            if function:
                return f"{function}({variable}[..i-1].{name})"
            return f"{variable}[{f'{variable}.LEN' if index == 'LEN' else index}].{name}"
        case s.Attribute(variable=variable, name=name, next=ahead):
            if not variable:
                return name
            return f"NEXT({variable}).{name}" if ahead else f"{variable}.{name}"
        case s.Unary(op="isnull", operand=operand):
            return f"{_text(operand, 5)} IS NULL"
        case s.Unary(op="not", operand=operand):
            return f"NOT {_text(operand, 3)}"
        case s.Unary(operand=operand):
            return f"-{_text(operand, 7)}"
        case s.Binary(op=op, left=left, right=right):
            mine = _LEVEL[op]
            shown = f"{_text(left, mine)} {op.upper()} {_text(right, mine + 1)}"
            return f"({shown})" if mine < level else shown
        case s.In(operand=operand, choices=choices):
            return f"{_text(operand, 5)} IN ({', '.join(_text(c, 0) for c in choices)})"
        case s.SqlCall(function=function, arguments=arguments):
            return _sql(function, [_text(a, 0) for a in arguments])
        case s.Call(function=function, arguments=arguments):
            if " " in function:  # a clock (`cep_core.expressions.local_clock`), which the pattern's time zone says
                return _text(arguments[0], level)
            return f"{function}({', '.join(_text(a, 0) for a in arguments)})"


def _sql(function: str, arguments: list[str]) -> str:
    if function == "case":
        pairs = zip(arguments[:-1:2], arguments[1:-1:2], strict=True)
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {whens} ELSE {arguments[-1]} END"
    if function == "like" and len(arguments) == 2:
        return f"{arguments[0]} LIKE {arguments[1]}"
    if function == "time_difference":
        return f"({' - '.join(arguments)})"
    if function == "microseconds":
        return arguments[0]
    if function.startswith("cast_"):
        to = {"int": "BIGINT", "string": "VARCHAR"}.get(name := function.rsplit("_", 1)[1], name.upper())
        return f"CAST({arguments[0]} AS {to})"
    if function.startswith("date_trunc_"):
        return f"DATE_TRUNC('{function.rsplit('_', 1)[1]}', {arguments[0]})"
    return f"{function}({', '.join(arguments)})"


def _literal(value: object, kind: str) -> str:
    if value is None:
        return "NULL"
    if kind == "string":
        return "'" + str(value).replace("'", "''") + "'"
    if kind == "duration" and isinstance(value, int):
        return duration(value)
    if kind == "date" and isinstance(value, int):
        return f"DATE '{moment(value)[:10]}'"
    if kind == "timestamp" and isinstance(value, int):
        return f"TIMESTAMP '{moment(value)}'"
    return str(value).upper() if isinstance(value, bool) else str(value)


def duration(us: int) -> str:
    """Microseconds in the largest unit that divides them."""
    for unit, size in _UNITS:
        if us and us % size == 0:
            count = us // size
            return f"{count:,} {unit}{'s' if count != 1 else ''}"
    return f"{us:,} microseconds"


def moment(us: int) -> str:
    """Microseconds since the epoch as ISO 8601, UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")
