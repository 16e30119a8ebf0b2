"""Expressions of kind automaton, read and evaluated with Python's own numbers: a parser of its own, on purpose.

A value is int, float, str, bool or None (NULL); times and durations are ints, in microseconds. SQL's three-valued
logic: AND and OR are Kleene's, any other operator with a NULL operand is NULL; division by zero is NULL. Every part of
an expression is evaluated. A whole number outside 64 bits raises OverflowedError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

Value: TypeAlias = int | float | str | bool | None
Scope: TypeAlias = Callable[[str | None, str], Value]
"""(`e` for the event, None for the register; name) -> value."""
Evaluate: TypeAlias = Callable[[Scope], Value]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 6 * 10**7, "hour": 36 * 10**8}
UNITS |= {"day": 864 * 10**8, "week": 7 * 864 * 10**8}
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|!=|<>|[-+*/%=<>(),.]))"
)
WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "INTERVAL", "TIMESTAMP"}


class OverflowedError(Exception):
    """A whole number that does not fit its type."""


def microseconds(text: str) -> int:
    """An ISO 8601 time, UTC where no zone is given."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def duration(text: str) -> int:
    """`7 seconds`, `1 hour 30 minutes`."""
    parsed = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b", text.lower())
    return sum(round(float(amount) * UNITS[unit]) for amount, unit in parsed)


def whole(value: int) -> int:
    """The value, if it fits 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise OverflowedError(value)
    return value


def real(value: float) -> float | None:
    """NaN reads as NULL, -0.0 as 0.0."""
    return None if math.isnan(value) else value + 0.0


class Reader:
    """Recursive descent over the tokens of one expression; each method gives a function of the scope."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            parsed = TOKEN.match(text, at)
            if not parsed:
                raise ValueError(f"no token at {text[at:]!r}")
            kind = str(parsed.lastgroup)
            word = parsed[kind]
            self.tokens.append(("word" if kind == "name" and word.upper() in WORDS else kind, word))
            at = parsed.end()
        self.at = 0

    def parts(self) -> list[Evaluate]:
        """The parts that AND joins outermost, each on its own."""
        parsed = [self.negated()]
        while self.next_is("AND"):
            self.take()
            parsed.append(self.negated())
        if self.at == len(self.tokens):
            return parsed
        self.at = 0
        return [self.read()]

    def next_is(self, *words: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1].upper() in words

    def take(self, *words: str) -> str:
        if words and not self.next_is(*words):
            raise ValueError(f"{words} expected in {self.tokens}")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def read(self) -> Evaluate:
        parsed = self.either()
        if self.at != len(self.tokens):
            raise ValueError(f"{self.tokens[self.at :]} left over")
        return parsed

    def either(self) -> Evaluate:
        parsed = self.both()
        while self.next_is("OR"):
            self.take()
            parsed = operation("or", parsed, self.both())
        return parsed

    def both(self) -> Evaluate:
        parsed = self.negated()
        while self.next_is("AND"):
            self.take()
            parsed = operation("and", parsed, self.negated())
        return parsed

    def negated(self) -> Evaluate:
        if not self.next_is("NOT"):
            return self.compared()
        self.take()
        return inverted(self.negated())

    def compared(self) -> Evaluate:
        left = self.sum()
        if self.next_is("=", "!=", "<>", "<", "<=", ">", ">="):
            op = self.take()
            return operation("!=" if op == "<>" else op, left, self.sum())
        if self.next_is("IS"):
            self.take()
            negative = self.next_is("NOT") and bool(self.take())
            self.take("NULL")
            parsed: Evaluate = lambda scope: left(scope) is None  # noqa: E731
            return inverted(parsed) if negative else parsed
        negative = self.next_is("NOT") and bool(self.take())
        if self.next_is("BETWEEN"):
            self.take()
            low = self.sum()
            self.take("AND")
            parsed = operation("and", operation(">=", left, low), operation("<=", left, self.sum()))
            return inverted(parsed) if negative else parsed
        if self.next_is("IN"):
            self.take()
            self.take("(")
            parsed = operation("=", left, self.either())
            while self.next_is(","):
                self.take()
                parsed = operation("or", parsed, operation("=", left, self.either()))
            self.take(")")
            return inverted(parsed) if negative else parsed
        return left

    def sum(self) -> Evaluate:
        parsed = self.product()
        while self.next_is("+", "-"):
            parsed = operation(self.take(), parsed, self.product())
        return parsed

    def product(self) -> Evaluate:
        parsed = self.unary()
        while self.next_is("*", "/", "%"):
            parsed = operation(self.take(), parsed, self.unary())
        return parsed

    def unary(self) -> Evaluate:
        if not self.next_is("-"):
            return self.value()
        self.take()
        inner = self.unary()
        return lambda scope: negative(inner(scope))

    def value(self) -> Evaluate:
        kind, text = self.tokens[self.at]
        self.take()
        if text == "(":
            parsed = self.either()
            self.take(")")
            return parsed
        if kind == "number":
            number: Value = int(text) if text.isdigit() else float(text)
            if self.at < len(self.tokens) and self.tokens[self.at][1].lower().rstrip("s") in UNITS:
                number = round(float(text) * UNITS[self.take().lower().rstrip("s")])
            return lambda scope: number
        if kind == "text":
            literal = text[1:-1].replace("''", "'")
            return lambda scope: literal
        if kind == "word":
            return self.word(text.upper())
        if self.next_is("("):
            self.take()
            arguments = [self.either()]
            while self.next_is(","):
                self.take()
                arguments.append(self.either())
            self.take(")")
            return lambda scope: call(text.lower(), [argument(scope) for argument in arguments])
        if self.next_is("."):
            self.take()
            name = self.take()
            if text != "e":
                raise ValueError(f"{text}.{name}: the event is e")
            return lambda scope: scope("e", name)
        return lambda scope: scope(None, text)

    def word(self, word: str) -> Evaluate:
        if word == "TIMESTAMP":
            moment = microseconds(self.take()[1:-1])
            return lambda scope: moment
        if word == "INTERVAL":
            length = duration(f"{self.take()[1:-1]} {self.take()}")
            return lambda scope: length
        constant = {"TRUE": True, "FALSE": False, "NULL": None}[word]
        return lambda scope: constant


def inverted(inner: Evaluate) -> Evaluate:
    """NOT."""

    def value(scope: Scope) -> Value:
        parsed = inner(scope)
        return None if parsed is None else not parsed

    return value


def operation(op: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Both sides, always, then the operator."""

    def value(scope: Scope) -> Value:
        a, b = left(scope), right(scope)
        return binary(op, a, b)

    return value


def negative(value: Any) -> Value:
    if value is None:
        return None
    return real(-value) if isinstance(value, float) else whole(-value)


def binary(op: str, a: Any, b: Any) -> Value:
    """One operator on two values."""
    if op == "and":
        return False if a is False or b is False else None if a is None or b is None else True
    if op == "or":
        return True if a is True or b is True else None if a is None or b is None else False
    if a is None or b is None:
        return None
    if isinstance(a, float) != isinstance(b, float):
        a, b = float(a), float(b)
    match op:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        case "/":
            return None if b == 0 else real(float(a) / float(b))
        case "%":
            return None if b == 0 else remainder(a, b)
    parsed = a + b if op == "+" else a - b if op == "-" else a * b
    return real(parsed) if isinstance(parsed, float) else whole(parsed)


def remainder(a: Any, b: Any) -> Value:
    """It has the dividend's sign."""
    if isinstance(a, float):
        return None if math.isinf(a) else real(math.fmod(a, b))
    rest = abs(a) % abs(b)
    return rest if a >= 0 else -rest


def call(function: str, arguments: list[Any]) -> Value:
    """A function of the language."""
    present = [argument for argument in arguments if argument is not None]
    if any(isinstance(argument, float) for argument in present):
        present = [float(argument) for argument in present]
    if function == "coalesce":
        return present[0] if present else None
    if function in ("least", "greatest"):
        return (min(present) if function == "least" else max(present)) if present else None
    if not present:
        return None
    (value,) = present
    if function == "abs":
        return abs(value) if isinstance(value, float) else whole(abs(value))
    if function in ("lower", "upper"):
        return value.lower() if function == "lower" else value.upper()
    if function == "hour":
        return (EPOCH + timedelta(microseconds=value)).hour
    if function == "dayofweek":
        return (EPOCH + timedelta(microseconds=value)).isoweekday() % 7 + 1
    raise ValueError(f"no function {function}")


def conjuncts(text: object) -> list[Evaluate]:
    """The parts of a condition that AND joins outermost."""
    return Reader(text).parts() if isinstance(text, str) else [read(text)]


def read(text: object) -> Evaluate:
    """An expression as a pattern file has it; a YAML number or boolean is itself."""
    if isinstance(text, str):
        return Reader(text).read()
    constant: Any = text
    return lambda scope: constant
