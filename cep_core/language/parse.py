"""Text to syntax tree: patterns, conditions, measures and durations, by the grammar in `grammar.lark`.

Every function raises `PatternSyntaxError` whose `offset` tells the place in the text; `cep_core.yaml.source` turns it
into a file, line and column.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from trendlake.cep_core.cache_folder import cache_folder
from trendlake.cep_core.errors import TextError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.tree_builder import MAX_DURATION, Builder

MAX_TEXT = 10_000
"""Characters in one pattern or condition: nesting beyond it is refused, not run out of stack on."""
MAX_DEPTH = 60
"""Nested parentheses."""
MAX_TREE = 150
"""Nested operators: a chain such as a + b + c nests as deep as it is long. A function that walks a tree calls
itself."""
CHAINS = ("conjunction", "disjunction")
"""Rules whose nodes hold a whole chain, which becomes one operator in another."""

_EXPECTED = {
    "pattern": "a pattern such as  A+ ,  SEQ(A+, NOT C, B)  or  Stock S{3,}",
    "condition": "a condition such as  S.price > NEXT(S).price ,  S.volume > 1000  or  [company, sector]",
    "measure": "a measure: COUNT(*), COUNT(V), MIN|MAX|SUM|AVG(V.attribute), MAX(LENGTH(*))",
    "duration_text": "a duration such as  10 minutes ,  1 day  or  INTERVAL '5' MINUTE",
}


def parse_pattern(text: str) -> s.PatternNode:
    """The pattern's tree."""
    return cast(s.PatternNode, _parse("pattern", text))


def parse_condition(text: str) -> s.Condition:
    """A `where` line's tree."""
    return cast(s.Condition, _parse("condition", text))


def parse_measure(text: str) -> s.Measure:
    """A `return` entry's tree."""
    return cast(s.Measure, _parse("measure", text))


def parse_duration(text: str) -> int:
    """A duration in microseconds, more than 0."""
    literal = cast(s.Literal, _parse("duration_text", text))
    if not isinstance(literal.value, int) or literal.value <= 0:
        raise TextError("a duration is more than zero", 0, len(text))
    if literal.value > MAX_DURATION:
        raise TextError("longer than 10,000 years", 0, len(text))
    return literal.value


def grammar_text() -> str:
    """The shared grammar. A kind with a language of its own appends its rules."""
    return resources.files("trendlake.cep_core.language").joinpath("grammar.lark").read_text(encoding="utf-8")


def lark_of(grammar: str, starts: list[str]) -> Lark:
    """The parser of a grammar, for the rules `starts`. Its tables are cached: lark compares the grammar and its own
    version with theirs, and makes them again where they cannot be read."""
    file = cache_folder("grammars") / f"{'-'.join(starts)}.lark"
    return Lark(
        grammar, parser="lalr", start=starts, propagate_positions=True, maybe_placeholders=False, cache=str(file)
    )


@cache
def _lark() -> Lark:
    return lark_of(grammar_text(), list(_EXPECTED))


@lru_cache(maxsize=2_000)  # the same texts again in the rows of a family, in a batch, at each step of a run
def _parse(start: str, text: str) -> object:
    return parse_with(_lark(), start, text, _EXPECTED[start], Builder)


def parse_with(lark: Lark, start: str, text: str, expected: str, builder: type[Builder]) -> object:
    """The nodes that `builder` makes of `text`. `expected`: an example, for errors. Raises TextError."""
    if len(text) > MAX_TEXT:
        raise TextError(f"longer than {MAX_TEXT} characters", MAX_TEXT)
    depth = 0
    for offset, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if depth > MAX_DEPTH:
            raise TextError(f"nested deeper than {MAX_DEPTH}", offset)
    try:
        tree = lark.parse(text, start=start)
    except UnexpectedEOF:
        raise TextError("it ends too early", len(text), hint=f"expected {expected}") from None
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise TextError("it ends too early", len(text), hint=f"expected {expected}") from None
        offset = error.token.start_pos or 0
        raise TextError(
            f"'{error.token}' is not expected here", offset, len(error.token), f"expected {expected}"
        ) from None
    except UnexpectedCharacters as error:
        offset = error.pos_in_stream or 0
        raise TextError(f"'{text[offset]}' is not expected here", offset, 1, f"expected {expected}") from None
    except UnexpectedInput as error:  # pragma: no cover - lark has no other kind today
        raise TextError(str(error), 0) from None
    _check_depth(tree)
    try:
        return builder(text).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, TextError):
            raise error.orig_exc from None
        raise


def _check_depth(tree: Tree[Token]) -> None:
    """Raises TextError for a tree that is too deep to be walked."""
    left = [(tree, 1)]
    while left:
        node, depth = left.pop()
        if node.data in CHAINS:
            depth += len(node.children) - 2
        if depth > MAX_TREE:
            message = f"more than {MAX_TREE} operators within one another"
            offset = 0 if node.meta.empty else node.meta.start_pos
            raise TextError(
                message, offset, 1, "x IN (1, 2, 3) asks for one of many; conditions may be on lines of their own"
            )
        left.extend((child, depth + 1) for child in node.children if isinstance(child, Tree))
