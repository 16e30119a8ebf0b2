"""CEL text to its syntax tree, by the shared grammar and `grammar.lark` here."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, cast

from lark import Lark, Token, v_args

from trendlake.cep_core.algebra.compile import syntax as c
from trendlake.cep_core.errors import TextError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import grammar_text, lark_of, parse_with
from trendlake.cep_core.language.tree_builder import Builder

EXPECTED = "CEL such as  SELECT price_1 AS high, price AS low FROM Trade NEXT{$2.price < $1.price} Trade"


def parse_cel(text: str) -> tuple[c.Statement, ...]:
    """The statements of a pattern. Raises TextError."""
    return cast(tuple[c.Statement, ...], parse_with(_lark(), "cel", text, EXPECTED, CelBuilder))


@cache
def _lark() -> Lark:
    own = resources.files("trendlake.cep_core.algebra.compile").joinpath("grammar.lark").read_text(encoding="utf-8")
    return lark_of(f"{grammar_text()}\n{own}", ["cel"])


def _span(meta: Any) -> s.Span:
    return (0, 0) if meta.empty else (meta.start_pos, meta.end_pos)


def _name(token: Token) -> c.Name:
    start = token.start_pos or 0
    return c.Name(str(token).strip("`"), (start, start + len(token)))


@v_args(meta=True)
class CelBuilder(Builder):
    """Tree of `text` to nodes of `syntax`."""

    def cel(self, meta: Any, children: list[c.Statement]) -> tuple[c.Statement, ...]:
        return tuple(children)

    def statement(self, meta: Any, children: list[Any]) -> c.Statement:
        items = children.pop(0) if isinstance(children[0], tuple) else None
        published = children[1] if len(children) > 1 else None
        return c.Statement(items, children[0], published, _span(meta))

    def select(self, meta: Any, children: list[c.Item]) -> tuple[c.Item, ...]:
        return tuple(children)

    def every(self, meta: Any, children: list[Token]) -> c.Item:
        return c.Item(None, None, _span(meta))

    def unnamed(self, meta: Any, children: list[Any]) -> c.Item:
        return c.Item(children[0], None, _span(meta))

    def named(self, meta: Any, children: list[Any]) -> c.Item:
        return c.Item(children[0], _name(children[1]), _span(meta))

    def publish(self, meta: Any, children: list[Token]) -> c.Name:
        return _name(children[0])

    def stream_name(self, meta: Any, children: list[Token]) -> c.Named:
        return c.Named(str(children[0]), _span(meta))

    def filter(self, meta: Any, children: list[Any]) -> c.Filtered:
        return c.Filtered(children[0], children[1], _span(meta))

    def grouped(self, meta: Any, children: list[Any]) -> Any:
        return children[0]

    def union(self, meta: Any, children: list[Any]) -> c.United:
        return c.United(children[0], children[1], _span(meta))

    def next(self, meta: Any, children: list[Any]) -> c.Nexted:
        return c.Nexted(children[0], children[1], None, _span(meta))

    def next_if(self, meta: Any, children: list[Any]) -> c.Nexted:
        return c.Nexted(children[0], children[2], children[1], _span(meta))

    def fold(self, meta: Any, children: list[Any]) -> c.Folded:
        left, keep, go, *rest = children
        values = rest[0] if len(rest) == 2 else ()
        return c.Folded(left, rest[-1], keep, go, values, _span(meta))

    def step(self, meta: Any, children: list[Any]) -> Any:
        return children[0] if children else None

    def computed(self, meta: Any, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def value_as(self, meta: Any, children: list[Any]) -> tuple[Any, c.Name]:
        return children[0], _name(children[1])

    def decorated(self, meta: Any, children: list[Token]) -> s.Attribute:
        decorator, name = str(children[0]), str(children[1])
        if decorator not in (c.FIRST, c.NOW, c.SECOND):
            raise TextError(
                f"there is no stream '{decorator}'", meta.start_pos, len(decorator), "decorators are $1, $2 and $"
            )
        if name == c.DURATION:
            return c.Dur(decorator, name, False, _span(meta))
        return s.Attribute(decorator, name.strip("`"), False, _span(meta))

    def bare_attribute(self, meta: Any, children: list[Token]) -> s.Attribute:
        if str(children[0]) == c.DURATION:
            return c.Dur("", c.DURATION, False, _span(meta))
        return super().bare_attribute(meta, children)

    def count_all(self, meta: Any, children: list[Token]) -> s.Call:
        return s.Call(str(children[0]).lower(), (), _span(meta))
