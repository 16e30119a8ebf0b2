"""CEL text as nested tuples: a recursive descent of its own, over the expressions of the automaton's reference.

A stream is ("name", name) | ("filter", condition, stream) | ("union", left, right) | ("next", left, right, p)
| ("fold", left, right, p, q, [(name, x)]) | ("select", items, stream, published); `items` is None for all attributes,
else a list of ("*",), ("item", name, x) and ("aggregate", function, [x, ...], name). Expressions are functions of a
scope, (decorator or None, name) -> value; the duration is the name `DUR`.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from tests.reference.automaton.expression import WORDS, Evaluate, Reader, Scope, Value

Node: TypeAlias = tuple[Any, ...]

TOKEN = re.compile(
    r"\s*(?:--(?=\s|$)[^\n]*)?\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*)|(?P<quoted>`[^`]+`)|(?P<decorator>\$[12]?)"
    r"|(?P<sign><=|>=|!=|<>|[-+*/%=<>(),.{}]))"
)
AGGREGATES = {"COUNT", "SUM", "AVG", "MIN", "MAX", "MAX_BY", "MIN_BY"}
TRUE: Evaluate = lambda scope: True  # noqa: E731


class CelReader(Reader):
    """Recursive descent over the tokens of a whole pattern."""

    def __init__(self, text: str) -> None:
        self.tokens = []
        self.at = 0
        place = 0
        text = re.sub(r"--(?=\s|$)[^\n]*", "", text) if "'" not in text else text
        while text[place:].strip():
            token = TOKEN.match(text, place)
            if not token:
                if re.fullmatch(r"\s*(--(?=\s|$)[^\n]*\s*)*", text[place:]):
                    break
                comment = re.match(r"\s*--(?=\s|$)[^\n]*", text[place:])
                if comment is None:
                    raise ValueError(f"no token at {text[place:]!r}")
                place += comment.end()
                continue
            kind = str(token.lastgroup)
            word = token[kind]
            if kind == "quoted":
                kind, word = "name", word.strip("`")
            self.tokens.append(("word" if kind == "name" and word.upper() in WORDS else kind, word))
            place = token.end()

    # --- streams
    def file(self) -> list[Node]:
        """Every statement, in the order in which they are written."""
        statements = [self.statement()]
        while self.at < len(self.tokens):
            statements.append(self.statement())
        return statements

    def statement(self) -> Node:
        items: list[Node] | None = None
        if self.next_is("SELECT"):
            self.take()
            items = [self.item()]
            while self.next_is(","):
                self.take()
                items.append(self.item())
        self.take("FROM")
        stream = self.stream()
        published = None
        if self.next_is("PUBLISH"):
            self.take()
            published = self.take()
        return ("select", items, stream, published)

    def item(self) -> Node:
        if self.next_is("*"):
            self.take()
            return ("*",)
        if self.next_is(*AGGREGATES) and self.tokens[self.at + 1 : self.at + 2] == [("sign", "(")]:
            function = self.take().lower()
            self.take("(")
            arguments: list[Evaluate] = []
            if self.next_is("*"):
                self.take()
            else:
                arguments.append(self.either())
                while self.next_is(","):
                    self.take()
                    arguments.append(self.either())
            self.take(")")
            self.take("AS")
            return ("aggregate", function, arguments, self.take())
        start = self.at
        value = self.either()
        name = self.tokens[start][1]
        if self.next_is("AS"):
            self.take()
            name = self.take()
        return ("item", name, value)

    def stream(self) -> Node:
        left = self.primary()
        while self.next_is("UNION", "NEXT", "FOLD"):
            operator = self.take().upper()
            p = q = TRUE
            aggregates: list[tuple[str, Evaluate]] = []
            if operator == "NEXT" and self.next_is("{"):
                self.take("{")
                p = TRUE if self.next_is("}") else self.either()
                self.take("}")
            if operator == "FOLD":
                self.take("{")
                p = TRUE if self.next_is(",") else self.either()
                self.take(",")
                q = TRUE if self.next_is(",", "}") else self.either()
                if self.next_is(","):
                    self.take()
                    while not self.next_is("}"):
                        value = self.either()
                        self.take("AS")
                        aggregates.append((self.take(), value))
                        if not self.next_is("}"):
                            self.take(",")
                self.take("}")
            right = self.primary()
            if operator == "UNION":
                left = ("union", left, right)
            elif operator == "NEXT":
                left = ("next", left, right, p)
            else:
                left = ("fold", left, right, p, q, aggregates)
        return left

    def primary(self) -> Node:
        if self.next_is("("):
            return self.inner()
        name = self.take()
        if name.upper() == "FILTER" and self.next_is("{"):
            self.take("{")
            condition = self.either()
            self.take("}")
            return ("filter", condition, self.inner())
        return ("name", name)

    def inner(self) -> Node:
        self.take("(")
        node = self.statement() if self.next_is("SELECT", "FROM") else self.stream()
        self.take(")")
        return node

    # --- what expressions have here and not in an automaton
    def value(self) -> Evaluate:
        kind, text = self.tokens[self.at]
        if kind == "decorator":
            self.take()
            self.take(".")
            name = self.take()
            return lambda scope: scope(text, name)
        if kind == "name" and text.lower() == "contains":
            self.take()
            self.take("(")
            whole = self.either()
            self.take(",")
            part = self.either()
            self.take(")")
            return lambda scope: _contains(whole(scope), part(scope))
        if kind == "name" and self.tokens[self.at + 1 : self.at + 2] != [("sign", "(")]:
            self.take()
            return lambda scope: scope(None, text)
        return super().value()


def _contains(whole: Any, part: Any) -> Value:
    return None if whole is None or part is None else part in whole


__all__ = ["CelReader", "Node", "Scope"]
