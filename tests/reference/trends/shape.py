"""What the pattern alone says: its positions; can it be empty; which positions begin, end, may follow one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.reference.trends.values import OutsideLanguageError
from trendlake.cep_core.language import syntax as s


@dataclass(frozen=True)
class Position(s.Atom):
    """One place of an event in the pattern: an atom, or one of the copies of an atom that `{n,m}` stands for."""

    number: int = 0


def spelled_out(node: s.PatternNode, numbers: Iterator[int]) -> s.PatternNode:
    """The pattern with a `Position` for each atom, numbered by `numbers`: `P{2,3}` is P P P?, `P{2,}` is P P+.

    Only `+` and `?` are left of the repetitions. Optional copies nest, `P{1,3}` is P (P P?)?: the k-th repetition
    stands at the k-th copy. NOT parts stay as they are.
    """
    match node:
        case s.Atom():
            return Position(node.type_name, node.variable, number=next(numbers))
        case s.Seq(parts=parts):
            return s.Seq(tuple(spelled_out(part, numbers) for part in parts))
        case s.Or(options=options):
            return s.Or(tuple(spelled_out(option, numbers) for option in options))
        case s.Repeat(body=body, low=low, high=high):
            copies = [spelled_out(body, numbers) for _ in range(max(low, 1) if high is None else high)]
            if high is None:
                copies[-1] = s.Repeat(copies[-1], 1, None)
            whole: s.PatternNode = s.Seq(())
            for place in range(len(copies) - 1, -1, -1):
                whole = s.Seq((copies[place], whole))
                if place >= low:
                    whole = s.Repeat(whole, 0, 1)
            return whole
    return node


@dataclass(frozen=True)
class Shape:
    """`follows` holds (p, q) when some accepted sequence has q right after p. NOT parts take no place.

    Of a pattern that is not spelled out, atoms of one type and variable are one: pairs are then of variables.
    """

    nullable: bool
    first: frozenset[s.Atom]
    last: frozenset[s.Atom]
    follows: frozenset[tuple[s.Atom, s.Atom]]


_NOTHING: frozenset[s.Atom] = frozenset()


def shape_of(node: s.PatternNode) -> Shape:
    """The shape of a pattern. Raises OutsideLanguageError for an inner AND, and for NOT of an empty one."""
    match node:
        case s.Atom():
            return Shape(False, frozenset({node}), frozenset({node}), frozenset())
        case s.Not(body=body):
            if shape_of(body).nullable:
                raise OutsideLanguageError("a NOT of a pattern that can be empty never holds")
            return Shape(True, _NOTHING, _NOTHING, frozenset())
        case s.Repeat(body=body, low=low, high=high):
            inner = shape_of(body)
            again = high is None or high > 1
            follows = inner.follows | (_pairs(inner.last, inner.first) if again else frozenset())
            return Shape(inner.nullable or low == 0, inner.first, inner.last, follows)
        case s.Or(options=options):
            shapes = [shape_of(option) for option in options]
            return Shape(
                any(shape.nullable for shape in shapes),
                _NOTHING.union(*(shape.first for shape in shapes)),
                _NOTHING.union(*(shape.last for shape in shapes)),
                frozenset().union(*(shape.follows for shape in shapes)),
            )
        case s.Seq(parts=parts):
            whole = Shape(True, _NOTHING, _NOTHING, frozenset())
            for part in parts:
                whole = _then(whole, shape_of(part))
            return whole
    raise OutsideLanguageError("AND is allowed only outermost")


def _then(left: Shape, right: Shape) -> Shape:
    return Shape(
        left.nullable and right.nullable,
        left.first | (right.first if left.nullable else _NOTHING),
        right.last | (left.last if right.nullable else _NOTHING),
        left.follows | right.follows | _pairs(left.last, right.first),
    )


def _pairs(lasts: frozenset[s.Atom], firsts: frozenset[s.Atom]) -> frozenset[tuple[s.Atom, s.Atom]]:
    return frozenset((last, first) for last in lasts for first in firsts)
