"""A query (a mapping as in a pattern file) as the parts the definition speaks of; all else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tests.reference.trends.shape import shape_of
from tests.reference.trends.values import OutsideLanguageError, microseconds
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.tree_builder import timestamp_us

ABOUT = {"name", "description", "owner", "source", "schedule", "consistency", "kind"}
MEANING = {"pattern", "where", "return", "group_by", "within", "slide", "origin", "select", "output", "empty_windows"}
SELECTIONS = ("skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous")


SHAPES = {
    ("count", False, False, "", False),
    ("count", True, False, "", False),
    ("longest", False, False, "", False),
    *((name, True, True, "", False) for name in ("min", "max", "sum", "avg", "first", "last")),
    *((name, True, True, "", True) for name in ("min_by", "max_by")),
    *((name, of, False, "length", False) for name in ("min", "max", "sum", "avg") for of in (False, True)),
    *((name, False, False, "duration", False) for name in ("min", "max", "sum", "avg")),
}
"""Measures: (function, has a variable, has an attribute, of what function of a trend, has a second attribute)."""


@dataclass(frozen=True)
class Agreement:
    """The events under the variables of `scope` (None: all events, those of NOT too) agree on `attribute`."""

    attribute: str
    scope: frozenset[str] | None


@dataclass(frozen=True)
class Adjacent:
    """What holds between a `left` event and the `right` event that follows it."""

    left: str
    right: str
    condition: s.Expr


@dataclass(frozen=True)
class Query:
    """A query of kind trends. `sides` are AND's parts, or the one pattern; times are microseconds."""

    sides: tuple[s.PatternNode, ...]
    types: Mapping[str, str]  # variable -> event type
    local: Mapping[str, list[s.Expr]]
    adjacent: list[Adjacent]
    agreements: list[Agreement]
    partition: list[str]  # unscoped equivalence of `where` alone: partition_contiguous looks here
    measures: Mapping[str, s.Measure]
    group_by: list[str]
    within: int
    slide: int
    origin: int
    select: str
    output: str
    empty_windows: bool


def read(query: Mapping[str, Any]) -> Query:
    """The query's parts. Raises OutsideLanguageError for what has no meaning."""
    if query.get("kind") != "trends":
        raise OutsideLanguageError(f"kind {query.get('kind')!r} is not trends")
    if unknown := set(query) - ABOUT - MEANING:
        raise OutsideLanguageError(f"unknown keys: {sorted(unknown)}")
    tree = parse.parse_pattern(query["pattern"])
    sides = tree.parts if isinstance(tree, s.And) else (tree,)
    if len(sides) > 2:
        raise OutsideLanguageError("AND joins two patterns")
    if any(shape_of(side).nullable for side in sides):
        raise OutsideLanguageError("the pattern can match the empty sequence")

    lines = [parse.parse_condition(line) for line in query.get("where") or []]
    equivalences = [line for line in lines if isinstance(line, s.Equivalence)]
    local, adjacent = _conditions(
        [part for line in lines if not isinstance(line, s.Equivalence) for part in s.conjuncts(line)],
        {atom.variable for atom in s.atoms(tree)},
    )
    agreements = [pair for line in equivalences for pair in _agreements(line)]
    group_by = list(query.get("group_by") or [])
    spoken_of = {agreement.attribute for agreement in agreements}
    return Query(
        sides=sides,
        types=_types(tree),
        local=local,
        adjacent=adjacent,
        agreements=agreements + [Agreement(name, None) for name in group_by if name not in spoken_of],
        partition=[agreement.attribute for agreement in agreements if agreement.scope is None],
        measures=_measures(query["return"], tree),
        group_by=group_by,
        within=parse.parse_duration(query["within"]),
        slide=parse.parse_duration(query.get("slide") or query["within"]),
        origin=_origin(query.get("origin")),
        select=_one_of(query.get("select") or SELECTIONS[0], SELECTIONS),
        output=_one_of(query.get("output") or "all", ("all", "maximal")),
        empty_windows=bool(query.get("empty_windows", False)),
    )


def _one_of(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise OutsideLanguageError(f"{word!r} is none of {words}")
    return word


def _origin(raw: Any) -> int:
    match raw:
        case None:
            return 0
        case str():
            return timestamp_us(raw)
        case date():
            return microseconds(raw)
    raise OutsideLanguageError(f"{raw!r} is no time")


def _types(tree: s.PatternNode) -> dict[str, str]:
    types: dict[str, str] = {}
    for atom in s.atoms(tree):
        if types.setdefault(atom.variable, atom.type_name) != atom.type_name:
            raise OutsideLanguageError(f"{atom.variable} is a {types[atom.variable]} and a {atom.type_name}")
    return types


def _conditions(parts: list[s.Expr], known: set[str]) -> tuple[dict[str, list[s.Expr]], list[Adjacent]]:
    """Each conjunct of `where` is local (one variable) or adjacent (one variable and one under NEXT)."""
    local: dict[str, list[s.Expr]] = {}
    adjacent: list[Adjacent] = []
    for part in parts:
        variables = sorted({read.variable for read in s.attributes(part) if not read.next})
        there = sorted({read.variable for read in s.attributes(part) if read.next})
        if unknown := {*variables, *there} - known:
            raise OutsideLanguageError(f"unknown variables {sorted(unknown)}")
        if len(variables) == 1 and len(there) == 1:
            adjacent.append(Adjacent(variables[0], there[0], part))
        elif len(variables) == 1 and not there:
            local.setdefault(variables[0], []).append(part)
        else:
            raise OutsideLanguageError(f"neither local nor adjacent: it speaks of {variables} and NEXT {there}")
    return local, adjacent


def _agreements(line: s.Equivalence) -> list[Agreement]:
    """One for each attribute: `[P.v, Q.v]` asks P's and Q's events to agree together, `v` asks all events."""
    scopes: dict[str, set[str | None]] = {}
    for variable, attribute, _ in line.entries:
        scopes.setdefault(attribute, set()).add(variable)
    return [
        Agreement(attribute, None if None in scope else frozenset(filter(None, scope)))
        for attribute, scope in scopes.items()
    ]


def _measures(texts: Mapping[str, str], tree: s.PatternNode) -> dict[str, s.Measure]:
    measures = {name: parse.parse_measure(text) for name, text in texts.items()}
    positive = {atom.variable for atom in s.atoms(tree, negated=False)}
    for name, measure in measures.items():
        if isinstance(tree, s.And) and measure != s.Measure("count", None, None):
            raise OutsideLanguageError(f"{name}: AND goes with COUNT(*) only")
        shape = (measure.function, bool(measure.variable), bool(measure.attribute), measure.of, bool(measure.by))
        if shape not in SHAPES or measure.distinct:
            raise OutsideLanguageError(f"{name}: no such measure")
        if measure.variable is not None and measure.variable not in positive:
            raise OutsideLanguageError(f"{name}: {measure.variable} has no events in a trend")
    return measures
