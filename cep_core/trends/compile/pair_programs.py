"""Conditions that mix both events in one side of a comparison, as programs for
`cep_core.trends.kernels.pair_predicates`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cep_core.errors import NotSupportedError
from cep_core.expressions import pair_opcodes as k
from cep_core.expressions.functions import FUNCTIONS
from cep_core.expressions.types import ExpressionError, infer
from cep_core.language import syntax as s

_BINARY = {
    "+": k.ADD, "-": k.SUBTRACT, "*": k.MULTIPLY, "/": k.DIVIDE, "%": k.REMAINDER, "and": k.AND, "or": k.OR,
    "=": k.EQ, "!=": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE,
}  # fmt: skip
_UNARY = {"-": k.NEGATE, "not": k.NOT, "isnull": k.IS_NULL}

_WHOLE = frozenset({"int", "duration", "timestamp"})


@dataclass
class Program:
    """`code`: (operation, leaf). `leaves`: (subexpression, whether it reads the later event), strings first coded
    together."""

    code: list[tuple[int, int]] = field(default_factory=list)
    leaves: list[tuple[s.Expr, bool]] = field(default_factory=list)
    depth: int = 0
    deepest: int = 0


def compile_program(condition: s.Expr, family: Callable[[s.Attribute], str]) -> Program:
    """Raises ExpressionError (NotSupportedError) for a function without a pair operation (lower, upper) of something
    that mixes both events, and for nesting beyond the stack."""
    program = Program()
    _emit(program, condition, family)
    if program.deepest > k.STACK:
        raise ExpressionError(NotSupportedError("the condition is nested too deep"), condition.span)
    return program


def _emit(program: Program, node: s.Expr, family: Callable[[s.Attribute], str]) -> None:
    sides = {attribute.next for attribute in s.attributes(node)}
    if len(sides) < 2:
        later = sides == {True}
        if (node, later) not in program.leaves:
            program.leaves.append((node, later))
        _push(program, k.LATER if later else k.EARLIER, program.leaves.index((node, later)), 1)
        return
    match node:
        case s.Unary(op=op, operand=operand):
            _emit(program, operand, family)
            _push(program, _UNARY[op], 0, 0)
        case s.Binary(op=op, left=left, right=right):
            _emit(program, left, family)
            _emit(program, right, family)
            _push(program, _BINARY[op], 0, -1)
        case s.In(operand=operand, choices=choices):
            for number, choice in enumerate(choices):
                _emit(program, operand, family)
                _emit(program, choice, family)
                _push(program, k.EQ, 0, -1)
                if number:
                    _push(program, k.OR, 0, -1)
            return
        case s.Call(function=name, arguments=arguments):
            function = FUNCTIONS[name]
            if function.pair_operation is None:
                message = f"{name} of an expression of both events"
                raise ExpressionError(NotSupportedError(message, hint="apply it to each event's attribute"), node.span)
            for number, argument in enumerate(arguments):
                _emit(program, argument, family)
                if number or function.takes:
                    _push(program, function.pair_operation, 0, -1 if number else 0)
    if isinstance(node, s.Binary | s.Unary) and infer(node, family) in _WHOLE:
        _push(program, k.CHECK, 0, 0)


def _push(program: Program, operation: int, leaf: int, change: int) -> None:
    program.code.append((operation, leaf))
    program.depth += change
    program.deepest = max(program.deepest, program.depth)
