"""One query of a file: its two blocks, conditions and columns, read from their texts; every mistake with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from trendlake.cep_core.documents.path_parser import parse_path
from trendlake.cep_core.documents.path_tokens import Namespaces, PathError, Token, tokens
from trendlake.cep_core.documents.paths import Path
from trendlake.cep_core.errors import (
    BadConditionError,
    BadPatternError,
    BadValueError,
    NotSupportedError,
    PatternSyntaxError,
    TextError,
    TrendlakeError,
    UnknownKeyError,
    UnknownVariableError,
    did_you_mean,
)
from trendlake.cep_core.events.windows import AGES
from trendlake.cep_core.language.parse import parse_duration
from trendlake.cep_core.xml_join.compile.model import QUERY_KEYS, RESERVED_COLUMNS
from trendlake.cep_core.xml_join.compile.query import Block, Form, Operand, Query

Key = tuple[str | int, ...]
Report = Callable[..., None]

NAME = re.compile(r"[a-z][a-z0-9_]{0,127}")
NAME_RULE = "lower-case letters, digits and _, beginning with a letter"
DEFAULT_COLUMNS = ("left_node", "right_node")


_parse = lru_cache(maxsize=1 << 16)(parse_path)


class QueryReader:
    """Reads the queries of one file. `report(error, path, offset, width)` collects mistakes."""

    def __init__(self, namespaces: Namespaces, report: Report) -> None:
        self.namespaces = namespaces
        self.report = report

    def read(self, body: Any, at: Key) -> Query | None:
        """The query of a mapping at `at` of the document; None where it has mistakes, which are reported."""
        if not isinstance(body, Mapping):
            self.report(BadValueError("a query is a mapping of left, right, operator, where and within"), at)
            return None
        return _Reader(self, at).query(body)


class _Reader:
    def __init__(self, reader: QueryReader, at: Key) -> None:
        self.namespaces, self.send, self.at = reader.namespaces, reader.report, at
        self.mistakes = 0
        self.blocks: dict[bool, Block] = {}

    def report(self, error: TrendlakeError, path: Key, offset: int = 0, width: int = 0, key: bool = False) -> None:
        self.mistakes += 1
        self.send(error, (*self.at, *path), offset, width, key)

    def bad(self, message: str, *path: str | int, hint: str | None = None, key: bool = False) -> None:
        self.report(BadValueError(message, hint=hint), path, key=key)

    def query(self, body: Mapping[str, Any]) -> Query | None:
        for name in body:
            if name not in QUERY_KEYS:
                hint = did_you_mean(str(name), QUERY_KEYS)
                self.report(UnknownKeyError(f"unknown key '{name}' of a query", hint=hint), (name,), key=True)
        left, right = (self.block(body.get(side), side) for side in ("left", "right"))
        self.blocks = {True: left, False: right}
        for name in right.names:
            if name in left.names:
                self.bad(f"the left block has a variable '{name}', too: variables are unique", "right", name, key=True)
        followed = self.operator(body.get("operator"))
        within = self.within(body.get("within"))
        where = self.conditions(body.get("where"))
        columns = self.columns(body)
        if self.mistakes:
            return None
        return Query(left, right, where, columns, followed, within)

    def block(self, given: Any, side: str) -> Block:
        names: list[str] = []
        parents: list[int] = []
        paths: list[Path] = []
        if given is None:
            self.bad(f"'{side}' is missing")
        elif not isinstance(given, Mapping) or not given:
            self.bad(f"{side}: expected variables and their paths, such as book: //book", side)
        else:
            for name, text in given.items():
                self.variable(side, str(name), text, names, parents, paths)
            if -1 not in parents and names and not self.mistakes:
                self.report(BadPatternError("a block has a main variable, an absolute path such as //book"), (side,))
        return Block(tuple(names), tuple(parents), tuple(paths))

    def variable(
        self, side: str, name: str, text: Any, names: list[str], parents: list[int], paths: list[Path]
    ) -> None:
        at = (side, name)
        if not NAME.fullmatch(name):
            self.bad(f"'{name}' is no name of a variable: {NAME_RULE}", *at, key=True)
        if not isinstance(text, str):
            self.bad(f"{name}: expected a path such as //book or $book/title", *at)
            return
        try:
            above, path = _parse(text, self.namespaces)
        except PathError as error:
            self.report(
                error.error.__class__(error.error.message, hint=error.error.hint), at, error.offset, error.width
            )
            names.append(name)
            parents.append(-2)
            paths.append(Path(()))
            return
        parent = -1
        if above is not None:
            if above not in names:
                hint = did_you_mean(above, names) if names else "a block begins with an absolute path, such as //book"
                message = f"'{side}' has no variable '{above}' above this one"
                self.report(UnknownVariableError(message, hint=hint), at, 0, len(above) + 1)
                parent = -2
            else:
                parent = names.index(above)
                if paths[parent].of_attribute:
                    message = f"'{above}' is an attribute: it has nothing below it"
                    self.report(BadPatternError(message), at, 0, len(above) + 1)
        elif -1 in parents:
            main = names[parents.index(-1)]
            message = f"a block is one tree: its main variable is '{main}' already"
            self.report(BadPatternError(message, hint=f"write a path from it: ${main}{text}"), at)
        names.append(name)
        parents.append(parent)
        paths.append(path)

    def operator(self, given: Any) -> bool:
        words = ("followed_by", "join")
        if given is None:
            self.bad("'operator' is missing", hint="followed_by or join")
        elif given not in words:
            self.bad("operator: expected followed_by or join", "operator", hint=did_you_mean(str(given), words))
        return bool(given == words[0])

    def within(self, given: Any) -> int:
        if given == "unbounded":
            return AGES
        if given is None:
            self.bad("'within' is missing", hint="a duration such as 7 days, or unbounded")
        elif not isinstance(given, str):
            self.bad("within: expected a duration such as 7 days, or unbounded", "within")
        else:
            try:
                return parse_duration(given)
            except TextError as error:
                error = TextError(error.message, error.offset, error.width, error.hint)
                self.report(BadValueError(error.message, hint=error.hint), ("within",), error.offset, error.width)
        return 1

    def conditions(self, given: Any) -> tuple[tuple[Operand, Operand], ...]:
        if given is None or given == [] or given == ():
            message = "a join has at least one condition in 'where', such as $author = $blogger"
            self.report(BadConditionError(message), ("where",) if given is not None else ())
            return ()
        if not isinstance(given, list | tuple):
            self.bad("where: expected a list of conditions such as $author = $blogger", "where")
            return ()
        pairs = []
        for i, text in enumerate(given):
            if not isinstance(text, str):
                self.bad("a condition is a text such as $author = $blogger", "where", i)
            elif (pair := self.parsed(text, ("where", i), self.condition)) is not None:
                pairs.append(pair)
        return tuple(pairs)

    def parsed(self, text: str, at: Key, parse: Callable[[list[Token]], Any]) -> Any:
        try:
            return parse(tokens(text))
        except PathError as error:
            self.report(error.error, at, error.offset, error.width)
            return None

    def condition(self, listed: list[Token]) -> tuple[Operand, Operand] | None:
        first, at = self.operand(listed, 0, condition=True)
        equals = listed[at]
        if equals.text != "=":
            if equals.kind == "end":
                raise PathError(PatternSyntaxError("it ends too early", hint="$a = $b"), equals.offset)
            if equals.text in ("!=", "<", "<=", ">", ">="):
                message = f"documents are joined by equal values: '{equals.text}' is not supported"
                raise PathError(NotSupportedError(message), equals.offset, len(equals.text))
            raise self.path_or_syntax(equals)
        second, at = self.operand(listed, at + 1, condition=True)
        if listed[at].kind != "end":
            token = listed[at]
            if token.text in ("and", "or"):
                message = f"'{token.text}' in a condition is not supported"
                hint = "each entry of 'where' is one equality; all of them hold"
                raise PathError(NotSupportedError(message, hint=hint), token.offset, len(token.text))
            raise self.path_or_syntax(token)
        if first is None or second is None:
            return None
        if first.left == second.left:
            message = "a condition compares a value of the left block with one of the right block"
            raise PathError(BadConditionError(message), 0, listed[-1].offset)
        return (first, second) if first.left else (second, first)

    def path_or_syntax(self, token: Token) -> PathError:
        if token.text in ("/", "//", "["):
            hint = "bind a variable to the path in the block, and use it here"
            return PathError(NotSupportedError("a path in a condition is not supported", hint=hint), token.offset)
        return PathError(PatternSyntaxError(f"'{token.text}' is not expected here"), token.offset, len(token.text))

    def operand(self, listed: list[Token], at: int, condition: bool) -> tuple[Operand | None, int]:
        """`$v`, `normalize-space($v)`, and in `return` `node($v)`, with the place after it."""
        token = listed[at]
        form: Form = "text"
        called = token.kind == "name" and listed[min(at + 1, len(listed) - 1)].text == "("
        if called:
            if token.text == "normalize-space":
                form = "normal"
            elif token.text == "node" and not condition:
                form = "node"
            else:
                hint = f"supported: $v, normalize-space($v){'' if condition else ', node($v)'}"
                message = f"the function {token.text}() is not supported here"
                raise PathError(NotSupportedError(message, hint=hint), token.offset, len(token.text))
            at += 2
        variable = listed[at]
        if variable.kind != "variable":
            if variable.kind in ("text", "number") and condition:
                hint = "compare with a literal in a predicate: $book/title[. = 'x']"
                raise PathError(
                    NotSupportedError("a literal in 'where'", hint=hint), variable.offset, len(variable.text)
                )
            if variable.kind == "end":
                raise PathError(PatternSyntaxError("it ends too early", hint="expected $v"), variable.offset)
            raise self.path_or_syntax(variable)
        if called:
            if listed[at + 1].text != ")":
                raise (
                    self.path_or_syntax(listed[at + 1])
                    if listed[at + 1].kind != "end"
                    else PathError(PatternSyntaxError("expected ')'"), listed[at + 1].offset)
                )
            at += 1
        return self.named(variable, form), at + 1

    def named(self, token: Token, form: Form) -> Operand:
        name = token.text[1:]
        for left, block in self.blocks.items():
            if name in block.names:
                return Operand(left, block.names.index(name), form)
        hint = did_you_mean(name, [*self.blocks[True].names, *self.blocks[False].names])
        raise PathError(
            UnknownVariableError(f"no block has a variable '{name}'", hint=hint), token.offset, len(name) + 1
        )

    def columns(self, body: Mapping[str, Any]) -> tuple[tuple[str, Operand], ...]:
        given = body.get("return")
        if given is None:
            if "return" in body:
                self.bad("return: expected columns; {} for none", "return")
            mains = ((True, DEFAULT_COLUMNS[0]), (False, DEFAULT_COLUMNS[1]))
            return tuple((name, Operand(left, 0, "node")) for left, name in mains)
        if not isinstance(given, Mapping):
            self.bad("return: expected columns and what they hold, such as author: $author", "return")
            return ()
        columns = []
        for name, text in given.items():
            at = ("return", str(name))
            if not NAME.fullmatch(str(name)):
                self.bad(f"'{name}' is no name of a column: {NAME_RULE}", *at, key=True)
            elif name in RESERVED_COLUMNS:
                self.bad(f"'{name}' is a column of every results table of kind xml_join", *at, key=True)
            if not isinstance(text, str):
                self.bad(f"{name}: expected $v, normalize-space($v) or node($v)", *at)
            elif (operand := self.parsed(text, at, self.column)) is not None:
                columns.append((str(name), operand))
        return tuple(columns)

    def column(self, listed: list[Token]) -> Operand | None:
        operand, at = self.operand(listed, 0, condition=False)
        if listed[at].kind != "end":
            raise self.path_or_syntax(listed[at])
        return operand
