"""CEL text read for the evaluation moment by moment: tokens, expressions and statements, by recursive descent.

Shares nothing with the engine. Expressions are functions of a scope that is asked for (decorator, name); the decorator
is "$1", "$2", "$" or None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tests.reference.automaton.expression import UNITS, WORDS, Evaluate, Reader, Scope, Value, call

TOKEN = re.compile(
    r"\s*(?:--[^\n]*(?:\n|$)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<decorator>\$[12]?)|(?P<sign><=|>=|!=|<>|[-+*/%=<>(),.{}]))"
)
AGGREGATES = {"COUNT", "SUM", "AVG", "MIN", "MAX", "MAX_BY", "MIN_BY"}


@dataclass(frozen=True)
class Named:
    """A base stream, or one published before."""

    name: str


@dataclass(frozen=True)
class Filter:
    condition: Evaluate
    inner: Stream


@dataclass(frozen=True)
class Item:
    """An entry of SELECT. `star`: all attributes. `aggregate`: its function, of `arguments`."""

    name: str = ""
    value: Evaluate | None = None
    star: bool = False
    aggregate: str = ""
    arguments: tuple[Evaluate, ...] = ()


@dataclass(frozen=True)
class Select:
    """`items`: None without SELECT. `publish`: "" without PUBLISH."""

    items: tuple[Item, ...] | None
    inner: Stream
    publish: str


@dataclass(frozen=True)
class Union:
    left: Stream
    right: Stream


@dataclass(frozen=True)
class Next:
    left: Stream
    right: Stream
    condition: Evaluate | None


@dataclass(frozen=True)
class Fold:
    left: Stream
    right: Stream
    skip: Evaluate | None
    stop: Evaluate | None
    sets: tuple[tuple[str, Evaluate], ...]


Stream: TypeAlias = Named | Filter | Select | Union | Next | Fold


class Text(Reader):
    """The statements of a pattern. Names of streams and operators are upper case words as they stand."""

    def __init__(self, text: str) -> None:
        self.tokens = []
        at = 0
        while text[at:].strip():
            token = TOKEN.match(text, at)
            if not token:
                raise ValueError(f"no token at {text[at:]!r}")
            at = token.end()
            if token.lastgroup:
                kind, word = token.lastgroup, token[token.lastgroup]
                self.tokens.append(("word" if kind == "name" and word.upper() in WORDS else kind, word))
        self.at = 0

    def statements(self) -> list[Select]:
        parsed = [self.statement()]
        while self.at < len(self.tokens):
            parsed.append(self.statement())
        return parsed

    def statement(self) -> Select:
        items = None
        if self.next_is("SELECT"):
            self.take()
            items = [self.item()]
            while self.next_is(","):
                self.take()
                items.append(self.item())
        self.take("FROM")
        inner = self.stream()
        publish = ""
        if self.next_is("PUBLISH"):
            self.take()
            publish = self.take()
        return Select(None if items is None else tuple(items), inner, publish)

    def item(self) -> Item:
        if self.next_is("*"):
            self.take()
            return Item(star=True)
        kind, word = self.tokens[self.at]
        following = self.tokens[self.at + 1][1] if self.at + 1 < len(self.tokens) else ""
        if kind == "name" and word in AGGREGATES and following == "(":
            self.take()
            self.take("(")
            arguments = []
            if self.next_is("*"):
                self.take()
            else:
                arguments.append(self.either())
                while self.next_is(","):
                    self.take()
                    arguments.append(self.either())
            self.take(")")
            self.take("AS")
            return Item(self.take(), aggregate=word, arguments=tuple(arguments))
        value = self.either()
        if self.next_is("AS"):
            self.take()
            return Item(self.take(), value)
        return Item(word, value)

    def stream(self) -> Stream:
        left = self.primary()
        while self.next_is("UNION", "NEXT", "FOLD"):
            operator = self.take()
            if operator == "UNION":
                left = Union(left, self.primary())
            elif operator == "NEXT":
                condition = None
                if self.next_is("{"):
                    self.take()
                    condition = None if self.next_is("}") else self.either()
                    self.take("}")
                left = Next(left, self.primary(), condition)
            else:
                self.take("{")
                skip = None if self.next_is(",") else self.either()
                self.take(",")
                stop = None if self.next_is(",", "}") else self.either()
                sets: list[tuple[str, Evaluate]] = []
                if self.next_is(","):
                    self.take()
                    while not self.next_is("}"):
                        value = self.either()
                        self.take("AS")
                        sets.append((self.take(), value))
                        if not self.next_is("}"):
                            self.take(",")
                self.take("}")
                left = Fold(left, self.primary(), skip, stop, tuple(sets))
        return left

    def primary(self) -> Stream:
        if self.next_is("FILTER"):
            self.take()
            self.take("{")
            condition = self.either()
            self.take("}")
            return Filter(condition, self.enclosed())
        if self.next_is("("):
            return self.enclosed()
        return Named(self.take())

    def enclosed(self) -> Stream:
        self.take("(")
        inner = self.statement() if self.next_is("SELECT", "FROM") else self.stream()
        self.take(")")
        return inner

    def value(self) -> Evaluate:
        kind, word = self.tokens[self.at]
        if kind == "decorator":
            self.take()
            self.take(".")
            return reading(word, self.take())
        if kind == "number":
            parsed = super().value()
            while self.at + 1 < len(self.tokens) and self.tokens[self.at][0] == "number":
                if not is_unit(self.tokens[self.at + 1][1]):
                    break
                parsed = added(parsed, super().value())
            return parsed
        if kind == "name":
            self.take()
            if not self.next_is("("):
                return reading(None, word)
            self.take()
            arguments = [self.either()]
            while self.next_is(","):
                self.take()
                arguments.append(self.either())
            self.take(")")
            if word.lower() == "contains":
                return lambda scope: contains(*(argument(scope) for argument in arguments))
            return lambda scope: call(word.lower(), [argument(scope) for argument in arguments])
        return super().value()


def is_unit(word: str) -> bool:
    return word.lower().rstrip("s") in UNITS


def reading(decorator: str | None, name: str) -> Evaluate:
    return lambda scope: scope(decorator, name)


def added(first: Evaluate, second: Evaluate) -> Evaluate:
    def total(scope: Scope) -> Value:
        a, b = first(scope), second(scope)
        assert isinstance(a, int)
        assert isinstance(b, int)
        return a + b

    return total


def contains(text: Value, part: Value) -> bool | None:
    if text is None or part is None:
        return None
    return str(part) in str(text)
