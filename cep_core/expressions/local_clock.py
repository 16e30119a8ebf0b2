"""`hour`, `dayofweek` and `date` of a pattern with a time zone: they read its clock.

    hour(S.at)  ->  hour(clock America/New_York(S.at))

The clock is a function of its own, of a moment: what it shows, as microseconds from 1970. No text has its name.
"""

from __future__ import annotations

from dataclasses import replace

from trendlake.cep_core.expressions.functions import READ_CLOCKS, clock_name
from trendlake.cep_core.expressions.types import ExpressionError, Resolve, infer
from trendlake.cep_core.language import syntax as s


def on_clock(node: s.Expr, zone: str | None, resolve: Resolve) -> s.Expr:
    """An expression whose functions of moments read the clock of a zone; itself without a zone, and where its types do
    not fit, which is for others to report."""
    if zone is None:
        return node
    try:
        return _on_clock(node, clock_name(zone), resolve)
    except ExpressionError:
        return node


def _on_clock(node: s.Expr, clock: str, resolve: Resolve) -> s.Expr:
    def part(child: s.Expr) -> s.Expr:
        return _on_clock(child, clock, resolve)

    match node:
        case s.Unary(operand=operand):
            return replace(node, operand=part(operand))
        case s.Binary(left=left, right=right):
            return replace(node, left=part(left), right=part(right))
        case s.In(operand=operand, choices=choices):
            return replace(node, operand=part(operand), choices=tuple(map(part, choices)))
        case s.Call(function=function, arguments=arguments):
            within = tuple(map(part, arguments))
            if function in READ_CLOCKS and [infer(one, resolve) for one in arguments] == ["timestamp"]:
                within = (s.Call(clock, within, within[0].span),)
            return replace(node, arguments=within)
        case _:
            return node
