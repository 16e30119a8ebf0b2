"""What the pattern alone says: can it be empty, which variables begin, end and may follow one another."""

from __future__ import annotations

from dataclasses import dataclass

from cep_core import syntax as s
from tests.reference.values import OutsideLanguageError


@dataclass(frozen=True)
class Shape:
    """`follows` holds (V, U) when some accepted sequence has U right after V. NOT parts take no place."""

    nullable: bool
    first: frozenset[str]
    last: frozenset[str]
    follows: frozenset[tuple[str, str]]


_NOTHING: frozenset[str] = frozenset()


def shape_of(node: s.PatternNode) -> Shape:
    """The shape of a pattern. Raises OutsideLanguageError for an inner AND, and for NOT of an empty one."""
    match node:
        case s.Atom(variable=variable):
            return Shape(False, frozenset({variable}), frozenset({variable}), frozenset())
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


def _pairs(lasts: frozenset[str], firsts: frozenset[str]) -> frozenset[tuple[str, str]]:
    return frozenset((last, first) for last in lasts for first in firsts)
