"""The syntax tree of patterns, conditions and measures. Frozen data; every node knows its span in its own text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end offset (characters) in the text the node was parsed from."""

_NOWHERE: Span = (0, 0)


# --- patterns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """One event of `type_name`, bound to `variable`."""

    type_name: str
    variable: str
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Repeat:
    """`body{low,high}`; `high` None means no bound: `+` is {1,}, `*` {0,}, `?` {0,1}."""

    body: PatternNode
    low: int
    high: int | None
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Seq:
    """`SEQ(part, ...)`; a part may be a `Not`."""

    parts: tuple[PatternNode, ...]
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Or:
    """Union of alternatives."""

    options: tuple[PatternNode, ...]
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class And:
    """Unordered pairs of different trends (outermost only)."""

    parts: tuple[PatternNode, ...]
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Not:
    """No trend of `body` in the gap (inside `Seq` only); `within`: in so many microseconds of it, None: all of it."""

    body: PatternNode
    span: Span = field(default=_NOWHERE, compare=False)
    within: int | None = None


PatternNode: TypeAlias = Atom | Repeat | Seq | Or | And | Not


# --- expressions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Literal:
    """A number (int, Decimal kept as float), string, boolean, NULL, or a duration in microseconds."""

    value: int | float | str | bool | None
    kind: str  # int | double | string | boolean | null | duration | timestamp
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Parameter:
    """`$name`: a value that each row of `for_each` gives; `kind`: its type as of a literal, "" before it is checked. No
    plan that runs has any: `bound` puts literals in their place."""

    name: str
    kind: str = ""
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Attribute:
    """`variable.name`, or `NEXT(variable).name` when `next`; `name` alone (variable "") in conditions on a row."""

    variable: str
    name: str
    next: bool = False
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Indexed(Attribute):
    """Kind matches: an attribute of one event of a Kleene variable, by `index`: `1`, `i`, `i-1` or `LEN`; or, with the
    index `..i-1`, a running aggregate `function` (avg, sum, min, max, count) over the events before the i-th."""

    index: str = "1"
    function: str = ""


@dataclass(frozen=True)
class Unary:
    """`-x`, `NOT x`, `x IS NULL` (op `isnull`)."""

    op: str
    operand: Expr
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Binary:
    """`+ - * / %`, comparisons `= != < <= > >=`, `and`, `or`."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class In:
    """`operand IN (choices)`."""

    operand: Expr
    choices: tuple[Expr, ...]
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Call:
    """`function(arguments)`, function in lower case."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class SqlCall(Call):
    """A function that texts of SQL have and no other kind's: see `cep_core.expressions.sql_functions`."""


Expr: TypeAlias = Literal | Parameter | Attribute | Unary | Binary | In | Call


@dataclass(frozen=True)
class Equivalence:
    """`[attr, V.attr]`: pairs (variable or None, attribute) with their spans."""

    entries: tuple[tuple[str | None, str, Span], ...]
    span: Span = field(default=_NOWHERE, compare=False)


Condition: TypeAlias = Expr | Equivalence


@dataclass(frozen=True)
class Measure:
    """`COUNT(*)` (variable None), `COUNT(V)`, `MIN|MAX|SUM|AVG(V.attr)`. `of`: the function of a trend that is
    aggregated, as in `MAX(LENGTH(*))` and `MAX(LENGTH(V))`. `by`: the second attribute of `MAX_BY(V.a, V.b)`, with its
    variable. `distinct`: as in `COUNT(DISTINCT V.attr)`. `where`: the condition of FILTER; `LENGTH(*)` is a call
    without arguments there."""

    function: str  # in lower case
    variable: str | None
    attribute: str | None
    span: Span = field(default=_NOWHERE, compare=False)
    of: str = ""
    by: tuple[str, str] | None = None
    distinct: bool = False
    where: Expr | None = None


def children(node: Expr) -> tuple[Expr, ...]:
    """The operands of an expression node, left to right."""
    match node:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case In(operand=operand, choices=choices):
            return (operand, *choices)
        case Call(arguments=arguments):
            return arguments
        case _:
            return ()


def attributes(node: Expr) -> list[Attribute]:
    """Every attribute an expression reads, left to right."""
    if isinstance(node, Attribute):
        return [node]
    return [attribute for child in children(node) for attribute in attributes(child)]


def parameters(node: Expr) -> list[Parameter]:
    """Every parameter an expression reads, left to right."""
    if isinstance(node, Parameter):
        return [node]
    return [parameter for child in children(node) for parameter in parameters(child)]


def parameters_in(data: Any) -> Iterator[Parameter]:
    """Every parameter that frozen data has: expressions, and what is made of them."""
    if isinstance(data, Parameter):
        yield data
    elif isinstance(data, tuple):
        for part in data:
            yield from parameters_in(part)
    elif is_dataclass(data):
        for one in fields(data):
            yield from parameters_in(getattr(data, one.name))


def replaced(node: Expr, value: Callable[[Parameter], Expr]) -> Expr:
    """An expression with what `value` gives in place of each parameter."""
    match node:
        case Parameter():
            return value(node)
        case Unary(operand=operand):
            return replace(node, operand=replaced(operand, value))
        case Binary(left=left, right=right):
            return replace(node, left=replaced(left, value), right=replaced(right, value))
        case In(operand=operand, choices=choices):
            return replace(node, operand=replaced(operand, value), choices=tuple(replaced(c, value) for c in choices))
        case Call(arguments=arguments):
            return replace(node, arguments=tuple(replaced(argument, value) for argument in arguments))
        case _:
            return node


def conjuncts(node: Expr) -> list[Expr]:
    """`a AND b AND c` as [a, b, c]: sound because a conjunction is true exactly when each part is true."""
    if isinstance(node, Binary) and node.op == "and":
        return conjuncts(node.left) + conjuncts(node.right)
    return [node]


def atoms(node: PatternNode, *, negated: bool | None = None) -> list[Atom]:
    """The atoms of a pattern in reading order: all (None), only those under NOT (True) or only the others (False)."""

    def walk(part: PatternNode, under_not: bool) -> list[Atom]:
        match part:
            case Atom():
                return [part] if negated is None or negated == under_not else []
            case Not(body=body):
                return walk(body, True)
            case Repeat(body=body):
                return walk(body, under_not)
            case Seq(parts=parts) | And(parts=parts) | Or(options=parts):
                return [attribute for child in parts for attribute in walk(child, under_not)]

    return walk(node, False)


def repeats(node: PatternNode) -> Iterator[Repeat]:
    """The repeated parts of a pattern outside of NOT, outer ones first."""
    match node:
        case Repeat(body=body):
            yield node
            yield from repeats(body)
        case Seq(parts=parts) | And(parts=parts) | Or(options=parts):
            for part in parts:
                yield from repeats(part)


def number(text: str) -> Literal:
    """A numeric literal: an integer, or a double when it has a point or an exponent."""
    if text.isdigit():
        return Literal(int(text), "int")
    return Literal(float(Decimal(text)), "double")
