"""A query of kind matches as the parts the page speaks of; all else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.reference.matches.remainder import following, repeated, skipped, whole
from tests.reference.trends.values import OutsideLanguageError
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s

ABOUT = {"name", "description", "owner", "source", "schedule", "tags", "consistency", "kind", "limit_per_partition"}
MEANING = {"pattern", "where", "return", "within", "select", "output", "derive", "having"}
SELECTIONS = ("skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous")


@dataclass(frozen=True)
class Part:
    """A variable of the pattern that binds events. `kleene`: it may bind several."""

    variable: str
    type: str
    kleene: bool


@dataclass(frozen=True)
class Negated:
    """`NOT type variable`; `within`: so many microseconds of its gap, or None."""

    variable: str
    type: str
    within: int | None = None


@dataclass(frozen=True)
class Query:
    """A query of kind matches. Times are microseconds."""

    tree: s.PatternNode
    parts: tuple[Part, ...]
    negated: Mapping[str, Negated]
    conditions: list[s.Expr]
    """The conjuncts of `where` that speak of no NOT."""
    ruled_out: Mapping[str, list[s.Expr]]
    """NOT variable -> what an event must meet to rule a match out."""
    shared: list[str]
    """Attributes all events agree on."""
    scoped: list[tuple[str, frozenset[str]]]
    """(attribute, variables whose events agree on it)."""
    possible: bool
    """No constant condition is false."""
    measures: Mapping[str, s.Expr]
    derived: Mapping[str, s.Expr]
    """New columns of each event."""
    having: list[s.Expr]
    """Conditions on a row."""
    within: int
    select: str
    output: str


def read(query: Mapping[str, Any]) -> Query:
    """The query's parts. Raises OutsideLanguageError for what has no meaning."""
    if query.get("kind") != "matches" or set(query) - ABOUT - MEANING:
        raise OutsideLanguageError(f"no query of kind matches: {query}")
    tree = parse.parse_pattern(query["pattern"])
    parts, negated = _pattern(tree)
    lines = [parse.parse_condition(line) for line in query.get("where") or []]
    shared, scoped = _equivalences([line for line in lines if isinstance(line, s.Equivalence)])
    conjuncts = [part for line in lines if not isinstance(line, s.Equivalence) for part in s.conjuncts(line)]
    known = {part.variable for part in parts} | negated.keys()
    ruled_out: dict[str, list[s.Expr]] = {name: [] for name in negated}
    conditions: list[s.Expr] = []
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
            conditions.append(conjunct)
    select, output = query.get("select") or "skip_till_next_match", query.get("output") or "all"
    if select not in SELECTIONS or output not in ("all", "non_overlap"):
        raise OutsideLanguageError(f"{select}, {output}")
    measures = {name: _expression(text) for name, text in (query.get("return") or {}).items()}
    within = parse.parse_duration(query["within"])
    derived = {name: _expression(text) for name, text in (query.get("derive") or {}).items()}
    having = [_expression(text) for text in query.get("having") or []]
    conditioned = conditions, ruled_out, shared, scoped, possible
    return Query(tree, parts, negated, *conditioned, measures, derived, having, within, select, output)


def _expression(text: str) -> s.Expr:
    actual = parse.parse_condition(text)
    if isinstance(actual, s.Equivalence):
        raise OutsideLanguageError(f"{text} is no measure")
    return actual


def _pattern(tree: s.PatternNode) -> tuple[tuple[Part, ...], dict[str, Negated]]:
    many = repeated(tree)
    parts = tuple(Part(atom.variable, atom.type_name, atom.variable in many) for atom in s.atoms(tree, negated=False))
    negated: dict[str, Negated] = {}

    def walk(node: s.PatternNode) -> None:
        match node:
            case s.Not(body=s.Atom(type_name=kind, variable=variable), within=within):
                negated[variable] = Negated(variable, kind, within)
            case s.Repeat(body=body):
                walk(body)
            case s.Seq(parts=children) | s.Or(options=children):
                for child in children:
                    walk(child)
            case s.Not() | s.And():
                raise OutsideLanguageError(f"no part of kind matches: {node}")

    walk(tree)
    names = [*(part.variable for part in parts), *(atom.variable for atom in s.atoms(tree, negated=True))]
    if len(set(names)) < len(names) or skipped(tree):
        raise OutsideLanguageError("a variable stands twice, or nothing is bound")
    for one in following(whole(tree)):
        if any(negated[name].within is not None for name in one.nots):
            raise OutsideLanguageError("a limit counts from the event before the NOT")
    return parts, negated


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
