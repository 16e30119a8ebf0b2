"""A query of kind matches as the parts the page speaks of; all else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.reference.trends.values import OutsideLanguageError
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s

ABOUT = {"name", "description", "owner", "source", "schedule", "tags", "consistency", "kind", "limit_per_partition"}
MEANING = {"pattern", "where", "return", "within", "select", "output"}
SELECTIONS = ("skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous")

EACH, FIRST, LATER, LAST = "each", "first", "later", "last"
"""Which events of a part a condition is about, and so when its last variable binds: at every event of the part, at its
first, at every one but the first, or when the part is left."""


@dataclass(frozen=True)
class Part:
    """A part of the pattern that binds events."""

    variable: str
    type: str
    kleene: bool


@dataclass(frozen=True)
class Negated:
    """`NOT type variable` after `after` parts that bind events; `within`: so many microseconds of its gap, or None."""

    variable: str
    type: str
    after: int
    within: int | None = None


@dataclass(frozen=True)
class Condition:
    """A conjunct of `where` that speaks of no NOT; it belongs to the moment (`part`, `when`)."""

    expression: s.Expr
    part: int
    when: str


@dataclass(frozen=True)
class Query:
    """A query of kind matches. Times are microseconds."""

    parts: tuple[Part, ...]
    negated: tuple[Negated, ...]
    conditions: list[Condition]
    ruled_out: Mapping[str, list[s.Expr]]
    """NOT variable -> what an event must meet to rule a match out."""
    shared: list[str]
    """Attributes all events agree on."""
    scoped: list[tuple[str, frozenset[str]]]
    """(attribute, variables whose events agree on it)."""
    possible: bool
    """No constant condition is false."""
    measures: Mapping[str, s.Expr]
    within: int
    select: str
    output: str


def read(query: Mapping[str, Any]) -> Query:
    """The query's parts. Raises OutsideLanguageError for what has no meaning."""
    if query.get("kind") != "matches" or set(query) - ABOUT - MEANING:
        raise OutsideLanguageError(f"no query of kind matches: {query}")
    parts, negated = _pattern(parse.parse_pattern(query["pattern"]))
    lines = [parse.parse_condition(line) for line in query.get("where") or []]
    shared, scoped = _equivalences([line for line in lines if isinstance(line, s.Equivalence)])
    conjuncts = [part for line in lines if not isinstance(line, s.Equivalence) for part in s.conjuncts(line)]
    known = {part.variable for part in parts} | {part.variable for part in negated}
    ruled_out: dict[str, list[s.Expr]] = {part.variable: [] for part in negated}
    conditions: list[Condition] = []
    possible = True
    for conjunct in conjuncts:
        names = {read.variable for read in s.attributes(conjunct)}
        if names - known:
            raise OutsideLanguageError(f"unknown variables {names - known}")
        nots = names & ruled_out.keys()
        if len(nots) > 1:
            raise OutsideLanguageError(f"a condition of two NOTs: {nots}")
        if nots:
            ruled_out[nots.pop()].append(conjunct)
        elif not names:
            from tests.reference.trends.values import evaluate

            possible = possible and evaluate(conjunct, lambda read: None) is True
        else:
            conditions.append(_condition(conjunct, parts))
    select, output = query.get("select") or "skip_till_next_match", query.get("output") or "all"
    if select not in SELECTIONS or output not in ("all", "non_overlap"):
        raise OutsideLanguageError(f"{select}, {output}")
    measures = {name: _expression(text) for name, text in (query.get("return") or {}).items()}
    within = parse.parse_duration(query["within"])
    return Query(parts, negated, conditions, ruled_out, shared, scoped, possible, measures, within, select, output)


def _expression(text: str) -> s.Expr:
    actual = parse.parse_condition(text)
    if isinstance(actual, s.Equivalence):
        raise OutsideLanguageError(f"{text} is no measure")
    return actual


def _pattern(tree: s.PatternNode) -> tuple[tuple[Part, ...], tuple[Negated, ...]]:
    parts: list[Part] = []
    negated: list[Negated] = []
    for node in tree.parts if isinstance(tree, s.Seq) else (tree,):
        match node:
            case s.Atom(type_name=kind, variable=variable):
                parts.append(Part(variable, kind, False))
            case s.Repeat(body=s.Atom(type_name=kind, variable=variable), low=1, high=None):
                parts.append(Part(variable, kind, True))
            case s.Not(body=s.Atom(type_name=kind, variable=variable), within=within):
                if within is not None and not parts:
                    raise OutsideLanguageError("a limit counts from the event before the NOT")
                negated.append(Negated(variable, kind, len(parts), within))
            case _:
                raise OutsideLanguageError(f"no part of kind matches: {node}")
    names = [part.variable for part in (*parts, *negated)]
    if len(set(names)) < len(names) or not parts:
        raise OutsideLanguageError("a variable stands twice, or nothing is bound")
    return tuple(parts), tuple(negated)


def _equivalences(lines: list[s.Equivalence]) -> tuple[list[str], list[tuple[str, frozenset[str]]]]:
    shared: list[str] = []
    scoped: list[tuple[str, frozenset[str]]] = []
    for line in lines:
        for name in dict.fromkeys(name for _, name, _ in line.entries):
            scope = {variable for variable, other, _ in line.entries if other == name}
            if None in scope:
                shared.append(name)
            else:
                scoped.append((name, frozenset(str(variable) for variable in scope)))
    return shared, scoped


def _condition(conjunct: s.Expr, parts: tuple[Part, ...]) -> Condition:
    """The latest of the moments at which what it reads is bound."""
    place = {part.variable: number for number, part in enumerate(parts)}
    reads = s.attributes(conjunct)
    last = max(place[read.variable] for read in reads)
    if not parts[last].kleene:
        return Condition(conjunct, last, EACH)
    indices = {read.index if isinstance(read, s.Indexed) else "" for read in reads if place[read.variable] == last}
    when = LAST if "LEN" in indices else EACH if "" in indices else FIRST if indices == {"1"} else LATER
    return Condition(conjunct, last, when)
