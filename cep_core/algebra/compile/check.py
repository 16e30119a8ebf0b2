"""The statements and streams of CEL text: names resolved, types right, every mistake with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile import syntax as c
from trendlake.cep_core.algebra.compile.checking import UNKNOWN, Checking, Known, described
from trendlake.cep_core.algebra.compile.model import AlgebraPattern
from trendlake.cep_core.algebra.compile.scopes import AnyNames, Pair, Single, joined, moved
from trendlake.cep_core.algebra.compile.select import select
from trendlake.cep_core.errors import BadPatternError, TypeMismatchError, UnknownTypeError, did_you_mean
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import syntax as s

EVENTS = "EVENTS"
"""The stream of all events."""


class Checker(Checking):
    """`published`: the streams by name; `later`: every name that the file publishes; `types_read`: names that are taken
    for event types, where these are not known."""

    def __init__(self, pattern: AlgebraPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.published: dict[str, Known] = {}
        self.later: set[str] = set()
        self.types_read: set[str] = set()

    def file(self, statements: tuple[c.Statement, ...]) -> Known:
        """The stream of the last one."""
        self.later = {one.published.text for one in _published(statements)}
        result = UNKNOWN
        for number, statement in enumerate(statements, 1):
            self.statement_number = number
            result = self.statement(statement, last=number == len(statements))
            if statement.published is None and number < len(statements):
                hint = "only the last statement may have no name"
                error = BadPatternError(f"statement {number} is read by nothing: PUBLISH is missing", hint=hint)
                self.report(error, (statement.span[1] - 1, statement.span[1]))
        return result

    def statement(self, statement: c.Statement, *, last: bool = False) -> Known:
        source = self.stream(statement.source)
        result = source if statement.items is None else select(self, statement.items, source)
        if statement.published is not None:
            self.publish(statement.published, result, last=last)
        return result

    def publish(self, name: c.Name, stream: Known, *, last: bool) -> None:
        own = self.pattern.document.data.get("name")
        types = self.types_read if self.schema.types is None else self.schema.types
        if name.text in self.published:
            self.report(BadPatternError(f"'{name.text}' is published twice"), name.span)
        elif name.text == EVENTS or name.text in types:
            self.report(BadPatternError(f"'{name.text}' is an event type: give the stream another name"), name.span)
        elif last and own is not None and name.text != own:
            hint = f"write PUBLISH {own}, or leave it out"
            error = BadPatternError(f"the last statement is the pattern, and its name is '{own}'", hint=hint)
            self.report(error, name.span)
        self.published.setdefault(name.text, stream)

    # --- streams
    def stream(self, node: c.Stream) -> Known:
        match node:
            case c.Statement():
                return self.statement(node)
            case c.Named():
                return self.named(node)
            case c.Filtered(condition=condition, source=inner):
                return self.filter(condition, self.stream(inner))
            case c.United(left=left, right=right):
                return self.union(self.stream(left), self.stream(right), node.span)
            case c.Nexted():
                return self.next(node)
            case c.Folded():
                return self.fold(node)

    def named(self, node: c.Named) -> Known:
        name = node.name
        if name in self.published:
            return self.published[name]
        types, own = self.schema.types, self.pattern.document.data.get("name")
        hint: str | None
        if name == EVENTS or (types is not None and name in types):
            return self.stream_of(n.Base(None if name == EVENTS else name, tuple(self.base.items())))
        if name == own:
            message, hint = f"'{name}' is this pattern: it would read its own rows", "a statement reads earlier ones"
            self.report(BadPatternError(message, hint=hint), node.span)
        elif name in self.later:
            hint = "a statement reads what is published before it: move that statement up"
            self.report(BadPatternError(f"'{name}' is published later, or by this statement", hint=hint), node.span)
        elif types is not None:
            hint = did_you_mean(name, (*types, *self.published, EVENTS))
            self.report(UnknownTypeError(f"there is no stream '{name}'", hint=hint), node.span)
        else:
            self.types_read.add(name)
            return self.stream_of(n.Base(name, tuple(self.base.items())))
        return UNKNOWN

    def filter(self, condition: s.Expr, source: Known) -> Known:
        asked = self.condition(condition, Single(source.families, self.partition))
        if asked is None or source.node is None:
            return Known(None, source.families)
        return self.stream_of(n.Filter(source.node, asked, tuple(source.families.items())))

    def union(self, left: Known, right: Known, span: s.Span) -> Known:
        if left.open or right.open:
            return Known(None, right.families if left.open else left.families)
        parts = [
            f"only the {side} has {', '.join(names)}"
            for side, names in (
                ("left", [name for name in left.families if name not in right.families]),
                ("right", [name for name in right.families if name not in left.families]),
            )
            if names
        ]
        if parts:
            hint = "SELECT the attributes that both have"
            self.report(
                BadPatternError(f"UNION takes streams of the same attributes: {'; '.join(parts)}", hint=hint), span
            )
            return Known(None, left.families)
        families = {name: joined(kind, right.families[name]) for name, kind in left.families.items()}
        for name, kind in families.items():
            if kind is None:
                self.report(_two_types("UNION", name, left, right), span)
        whole = {name: kind or "null" for name, kind in families.items()}
        if None in families.values() or left.node is None or right.node is None:
            return Known(None, whole)
        return self.stream_of(n.Union(left.node, right.node, tuple(whole.items())))

    def next(self, node: c.Nexted) -> Known:
        left, right = self.stream(node.left), self.stream(node.right)
        before = len(self.errors)
        asked = self.condition(node.condition, Pair(left.families, right.families, self.partition))
        if left.open or right.open:
            return UNKNOWN
        columns = self.columns(left.families, right.families, node.span)
        if len(self.errors) > before or left.node is None or right.node is None:
            return Known(None, {column.name: column.family for column in columns})
        return self.stream_of(n.Next(left.node, right.node, asked, columns))

    def columns(self, left: Mapping[str, str], right: Mapping[str, str], span: s.Span) -> tuple[n.Column, ...]:
        """The output of NEXT."""
        names = moved(left, right)
        columns = [n.Column(names[name], kind, c.FIRST, name) for name, kind in left.items()]
        columns += [n.Column(name, kind, c.SECOND, name) for name, kind in right.items()]
        self.once(columns, span)
        return tuple(columns)

    def once(self, columns: list[n.Column], span: s.Span) -> None:
        """Reports names of an output that occur twice."""
        names = [column.name for column in columns]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1 or name in self.partition):
            hint = f"rename one of them before, such as SELECT {name} AS other"
            self.report(BadPatternError(f"the output has two attributes called '{name}'", hint=hint), span)

    def fold(self, node: c.Folded) -> Known:
        left, right = self.stream(node.left), self.stream(node.right)
        before = len(self.errors)
        if left.open or right.open:
            scope = Pair(left.families, right.families, self.partition, AnyNames())
            for one in (node.keep, node.go):
                self.condition(one, scope)
            for value, _ in node.values:
                self.expression(value, scope)
            return UNKNOWN
        missing = [name for name in right.families if name not in left.families]
        if missing:
            hint = "SELECT in the right stream what both have"
            message = f"FOLD: the left stream lacks attributes of the right one: {', '.join(missing)}"
            self.report(BadPatternError(message, hint=hint), node.span)
        values = self.computed(node, left.families, right.families)
        now = {name: joined(kind, right.families.get(name, kind)) or "" for name, kind in left.families.items()}
        for name in [name for name, kind in now.items() if not kind]:
            self.report(_two_types("FOLD", name, left, right), node.span)
            now[name] = left.families[name]
        changes = frozenset(right.families) | {name for name, _ in values}
        scope = Pair(left.families, right.families, self.partition, now, changes)
        resolved = [(name, value, self.expression(value, scope)) for name, value in values]
        self.settle(resolved, scope, now)
        keep, go = self.condition(node.keep, scope), self.condition(node.go, scope)
        names = moved(left.families, right.families)
        sides = {name: c.NOW if name in changes and name not in right.families else c.FIRST for name in left.families}
        columns = [
            n.Column(names[name], now[name] if sides[name] == c.NOW else kind, sides[name], name)
            for name, kind in left.families.items()
        ]
        columns += [n.Column(name, kind, c.SECOND, name) for name, kind in right.families.items()]
        self.once(columns, node.span)
        if len(self.errors) > before or left.node is None or right.node is None:
            return Known(None, {column.name: column.family for column in columns})
        computed = tuple(n.Value(name, now[name], value) for name, _, value in resolved if value is not None)
        return self.stream_of(n.Fold(left.node, right.node, keep, go, computed, tuple(columns)))

    def computed(self, node: c.Folded, left: Mapping[str, str], right: Mapping[str, str]) -> list[tuple[str, s.Expr]]:
        """The values that steps compute, those with a mistaken name left out."""
        values: dict[str, s.Expr] = {}
        for value, name in node.values:
            hint = None
            if name.text in values:
                message = f"FOLD computes '{name.text}' twice"
            elif name.text in self.partition:
                message = f"'{name.text}' is a column of the partition: nothing sets it"
            elif name.text in right:
                message = f"FOLD takes '{name.text}' from its right stream: it cannot be computed"
                hint = "give what is computed a name that the right stream has not"
            elif name.text not in left:
                message = f"FOLD computes '{name.text}', which its left stream does not begin"
                hint = f"begin it: (SELECT *, 0 AS {name.text} FROM ...) FOLD"
            else:
                values[name.text] = value
                continue
            self.report(BadPatternError(message, hint=hint), name.span)
            if name.text not in values:
                self.expression(value, Pair(left, right, self.partition, dict(left)))
        return list(values.items())

    def settle(self, values: list[tuple[str, s.Expr, s.Expr | None]], scope: Pair, now: dict[str, str]) -> None:
        """The families of computed values: those that hold the first value and all others."""
        wrong: set[str] = set()
        changed = True
        while changed:
            changed = False
            for name, written, value in values:
                if value is None or name in wrong:
                    continue
                kind = self.family(value, scope)
                wide = None if kind is None else joined(now[name], kind)
                if wide is None:
                    wrong.add(name)
                    if kind is not None:
                        message = f"'{name}' begins as {described(now[name])}, this is {described(kind)}"
                        self.report(TypeMismatchError(message), written.span)
                elif wide != now[name]:
                    now[name], changed = wide, True


def _two_types(operator: str, name: str, left: Known, right: Known) -> TypeMismatchError:
    kinds = [described(stream.families[name]) for stream in (left, right)]
    return TypeMismatchError(f"{operator}: '{name}' is {kinds[0]} on the left and {kinds[1]} on the right")


def _published(statements: tuple[c.Statement, ...]) -> list[Any]:
    """Every statement that is published, nested ones too."""
    statements_named: list[Any] = []
    left: list[Any] = list(statements)
    while left:
        node = left.pop()
        if isinstance(node, c.Statement) and node.published is not None:
            statements_named.append(node)
        left += [getattr(node, name) for name in ("source", "left", "right") if hasattr(node, name)]
    return statements_named
