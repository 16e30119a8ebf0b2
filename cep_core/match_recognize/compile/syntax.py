"""The syntax tree of a row pattern's text. Frozen data; every node knows its span in the text.

Conditions and measures are the expressions of `cep_core.language.syntax`; navigations, aggregates, CLASSIFIER and
MATCH_NUMBER are attributes in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from trendlake.cep_core.language import syntax as s

_NOWHERE: s.Span = (0, 0)

NOTHING = s.Literal(None, "null")
NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT")
SAME = {"LAG": "PREV", "LEAD": "NEXT"}
"""Words of Snowflake for those of the standard."""
AGGREGATES = {
    "COUNT": 1,
    "SUM": 1,
    "AVG": 1,
    "MIN": 1,
    "MAX": 1,
    "BOOL_AND": 1,
    "BOOL_OR": 1,
    "ANY_VALUE": 1,
    "ARRAY_AGG": 1,
    "STRING_AGG": 2,
    "MAX_BY": 2,
    "MIN_BY": 2,
}
"""Aggregates and how many arguments each takes."""


# --- PATTERN


@dataclass(frozen=True)
class Variable:
    name: str
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Empty:
    """`()`."""

    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Anchor:
    """`^`, or `$` where `last`."""

    last: bool
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Part, ...]
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Alternatives:
    options: tuple[Part, ...]
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Permute:
    parts: tuple[Part, ...]
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Excluded:
    """`{- body -}`."""

    body: Part
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Repeat:
    """`body{low,high}`; `high` None: no bound. `greedy`: one more iteration is preferred to stopping."""

    body: Part
    low: int
    high: int | None
    greedy: bool = True
    span: s.Span = field(default=_NOWHERE, compare=False)


Part: TypeAlias = Variable | Empty | Anchor | Sequence | Alternatives | Permute | Excluded | Repeat


def inner(part: Part) -> tuple[Part, ...]:
    """The parts that a part is made of."""
    match part:
        case Sequence(parts=parts) | Alternatives(options=parts) | Permute(parts=parts):
            return parts
        case Excluded(body=body) | Repeat(body=body):
            return (body,)
        case _:
            return ()


def walk(part: Part) -> Iterator[Part]:
    """A part and all in it, in reading order."""
    left = [part]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(inner(one)))


def variables_of(part: Part) -> tuple[str, ...]:
    """The names of variables in reading order, each once."""
    return tuple(dict.fromkeys(one.name for one in walk(part) if isinstance(one, Variable)))


# --- what only row patterns have in expressions


@dataclass(frozen=True)
class Navigate(s.Attribute):
    """`[RUNNING|FINAL] FIRST|LAST(argument, offset)`, `PREV|NEXT(argument, offset)`."""

    function: str = "LAST"
    argument: s.Expr = NOTHING
    offset: s.Expr | None = None
    semantics: str = ""


@dataclass(frozen=True)
class Aggregate(s.Attribute):
    """`[RUNNING|FINAL] function([DISTINCT] arguments)`; `all_of`: the variable of `COUNT(v.*)`, "" of `COUNT(*)`, None
    for any other."""

    function: str = "COUNT"
    arguments: tuple[s.Expr, ...] = ()
    distinct: bool = False
    all_of: str | None = None
    semantics: str = ""


@dataclass(frozen=True)
class Classifier(s.Attribute):
    """`CLASSIFIER()`, `CLASSIFIER(variable)`."""


@dataclass(frozen=True)
class MatchNumber(s.Attribute):
    """`MATCH_NUMBER()`."""


# --- the text


@dataclass(frozen=True)
class Name:
    """A word of the text as written. `variable`: the same as the name of a variable."""

    text: str
    variable: str
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Item:
    """An item of a list: `*` (no value), or a value and its name, None where it has none."""

    value: s.Expr | None
    name: Name | None
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Key:
    """A key of ORDER BY. `nulls_first`: None where the text does not say."""

    column: Name
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Input:
    """The input between FROM and MATCH_RECOGNIZE: a table, or `(SELECT items FROM table WHERE condition)`."""

    table: Name
    items: tuple[Item, ...] | None = None
    condition: s.Expr | None = None


@dataclass(frozen=True)
class Skip:
    """`mode`: past_last, next, first or last; `target`: the variable of the last two."""

    mode: str = "past_last"
    target: Name | None = None
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Query:
    """A whole text. `empty`: show, omit or unmatched, with ALL ROWS."""

    pattern: Part | None
    input: Input | None = None
    partition_by: tuple[Name, ...] = ()
    order_by: tuple[Key, ...] = ()
    measures: tuple[Item, ...] = ()
    all_rows: bool = False
    empty: str = "show"
    rows_span: s.Span = _NOWHERE
    skip: Skip = Skip()
    within: tuple[int, s.Span] | None = None
    subsets: tuple[tuple[Name, tuple[Name, ...]], ...] = ()
    defines: tuple[tuple[Name, s.Expr | None], ...] = ()
    items: tuple[Item, ...] | None = None
    condition: s.Expr | None = None
    called: str = ""
