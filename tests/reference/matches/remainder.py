"""A pattern as what remains of it: which events may come next, and whether a match may end here.

A remainder is a list of (node, repetitions around it). Taking an event leaves another remainder. `P{n,m}` is taken one
copy at a time, and what is left of it is `P{n-1,m-1}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from trendlake.cep_core.language import syntax as s

Around: TypeAlias = tuple[object, ...]
"""The repetitions around a part, outermost first: an object for each time that one is entered."""
Item: TypeAlias = tuple[s.PatternNode, Around, object | None]
"""A node, what is around it and, of a repetition that has been entered, its own object."""
Remainder: TypeAlias = tuple[Item, ...]


@dataclass(frozen=True)
class Next:
    """An atom that may come next: the NOTs that are passed on the way, the repetitions around it, and what remains."""

    atom: s.Atom
    nots: frozenset[str]
    around: Around
    rest: Remainder


def whole(node: s.PatternNode) -> Remainder:
    """Nothing is taken yet."""
    return ((node, (), None),)


def following(rest: Remainder) -> Iterator[Next]:
    """All that may come next."""
    if not rest:
        return
    for one in _firsts(*rest[0]):
        yield Next(one.atom, one.nots, one.around, one.rest + rest[1:])
    for passed in skipped(rest[0][0]):
        for one in following(rest[1:]):
            yield Next(one.atom, one.nots | passed, one.around, one.rest)


def endings(rest: Remainder) -> list[frozenset[str]]:
    """The NOTs that are passed where nothing more comes, one set for each way; none: something must come."""
    ways = product(*(skipped(node) for node, _, _ in rest))
    return list({frozenset().union(*way) for way in ways})


def variables(rest: Remainder) -> set[str]:
    """Those that may still bind an event."""
    return {atom.variable for node, _, _ in rest for atom in s.atoms(node)}


def skipped(node: s.PatternNode) -> list[frozenset[str]]:
    """The ways to pass a node without an event, by the NOTs that are passed."""
    match node:
        case s.Not(body=s.Atom(variable=variable)):
            return [frozenset({variable})]
        case s.Seq(parts=parts):
            return list({frozenset().union(*way) for way in product(*map(skipped, parts))})
        case s.Or(options=options):
            return list({way for option in options for way in skipped(option)})
        case s.Repeat(body=body, low=low):
            inner = skipped(body)
            return list({frozenset().union(*way) for way in product(*[inner] * min(low, 2))})
    return []


def _firsts(node: s.PatternNode, around: Around, entered: object | None) -> Iterator[Next]:
    match node:
        case s.Atom():
            yield Next(node, frozenset(), around, ())
        case s.Seq(parts=parts):
            yield from following(tuple((part, around, None) for part in parts))
        case s.Or(options=options):
            for option in options:
                yield from _firsts(option, around, None)
        case s.Repeat(body=body, low=low, high=high):
            own = entered if entered is not None else object()
            inside = around if high == 1 and entered is None else (*around, own)
            left = None if high is None else high - 1
            again = s.Repeat(body, max(low - 1, 0), left)
            rest: Remainder = () if left == 0 else ((again, around, own),)
            for one in _firsts(body, inside, None):
                yield Next(one.atom, one.nots, one.around, one.rest + rest)
            if left is None and low <= 1:
                return
            for passed in skipped(body) if rest else ():
                for one in _firsts(again, around, own):
                    yield Next(one.atom, one.nots | passed, one.around, one.rest)


def last_nots(node: s.PatternNode) -> set[str]:
    """The NOTs after which no event need come."""
    match node:
        case s.Not(body=s.Atom(variable=variable)):
            return {variable}
        case s.Seq(parts=parts):
            names: set[str] = set()
            for part in reversed(parts):
                names |= last_nots(part)
                if not skipped(part):
                    break
            return names
        case s.Or(options=options):
            return {name for option in options for name in last_nots(option)}
        case s.Repeat(body=body):
            return last_nots(body)
    return set()


def repeated(node: s.PatternNode) -> set[str]:
    """The variables that may bind several events."""
    match node:
        case s.Repeat(body=body, high=high):
            return {atom.variable for atom in s.atoms(body)} if high != 1 else repeated(body)
        case s.Seq(parts=parts) | s.Or(options=parts):
            return {name for part in parts for name in repeated(part)}
    return set()
