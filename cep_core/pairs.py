"""Adjacent predicates: how the predecessors of an event are found, the cheapest way that is still exact.

For an event w under W, its predecessors under V are the earlier events v with every condition of (V, W) true. A
condition `f(v) op g(w)` is *split*: f and g are computed once an event. Then:

1. no condition: every earlier v counts, one running total (COGRA: state per type).
2. equalities only: a running total per value of f, looked up by g.
3. one inequality, with or without equalities: per equality value, the v's in order of f; those that satisfy the
   inequality for w are a prefix (of the order, or of its reverse for > and >=), summed by a Fenwick tree over ranks.
4. anything else (several inequalities, !=, conditions that mix both events in one side): every pair is tried.

1 to 3 are exact because the set of v's that satisfy the conditions *is* that class, or that prefix of it: nothing is
approximated, and sums over disjoint nodes of the tree are sums over the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from cep_core import syntax as s
from cep_core.values import COMPARISONS, FLIPPED


class Method(Enum):
    """How predecessors are found; the value is what `explain` prints."""

    RUNNING = "running total"
    HASH = "hash"
    ORDERED = "ordered prefix (Fenwick)"
    HASH_ORDERED = "hash plus ordered prefix (Fenwick)"
    SCAN = "pairwise scan"


@dataclass(frozen=True)
class Split:
    """`earlier op later`: `earlier` reads the V-event only, `later` the W-event only."""

    earlier: s.Expr
    op: str
    later: s.Expr

    @property
    def symmetric(self) -> bool:
        """Whether both sides are the same expression, of either event."""
        return _without_next(self.earlier) == _without_next(self.later)


def _without_next(node: s.Expr) -> s.Expr:
    match node:
        case s.Attribute():
            return replace(node, next=False)
        case s.Unary(operand=operand):
            return replace(node, operand=_without_next(operand))
        case s.Binary(left=left, right=right):
            return replace(node, left=_without_next(left), right=_without_next(right))
        case s.In(operand=operand, choices=choices):
            return replace(node, operand=_without_next(operand), choices=tuple(map(_without_next, choices)))
        case s.Call(arguments=arguments):
            return replace(node, arguments=tuple(map(_without_next, arguments)))
        case s.Literal():
            return node


@dataclass(frozen=True)
class PairPredicate:
    """All conditions on an adjacent (V, W) pair; `mixed` are those that do not split."""

    earlier: str
    later: str
    splits: tuple[Split, ...] = ()
    mixed: tuple[s.Expr, ...] = ()

    @property
    def equalities(self) -> tuple[Split, ...]:
        return tuple(split for split in self.splits if split.op == "=")

    @property
    def inequalities(self) -> tuple[Split, ...]:
        return tuple(split for split in self.splits if split.op in ("<", "<=", ">", ">="))

    @property
    def method(self) -> Method:
        others = len(self.splits) - len(self.equalities) - len(self.inequalities)
        if self.mixed or others or len(self.inequalities) > 1:
            return Method.SCAN
        if not self.splits:
            return Method.RUNNING
        if not self.inequalities:
            return Method.HASH
        return Method.HASH_ORDERED if self.equalities else Method.ORDERED

    @property
    def reason(self) -> str:
        """Why this method, for `explain`."""
        match self.method:
            case Method.RUNNING:
                return "no adjacent condition"
            case Method.HASH:
                return "equalities only"
            case Method.ORDERED:
                return "one inequality"
            case Method.HASH_ORDERED:
                return "equalities and one inequality"
        if self.mixed:
            return "a condition mixes both events"
        if len(self.inequalities) > 1:
            return f"{len(self.inequalities)} inequalities"
        return "a != does not order"


def pair_predicate(earlier: str, later: str, conditions: tuple[s.Expr, ...]) -> PairPredicate:
    """Sort the conditions of an adjacent pair into split and mixed ones."""
    splits: list[Split] = []
    mixed: list[s.Expr] = []
    for condition in conditions:
        split = _split(condition)
        if split is None:
            mixed.append(condition)
        elif split not in splits:
            splits.append(split)
    return PairPredicate(earlier, later, tuple(splits), tuple(mixed))


def _split(condition: s.Expr) -> Split | None:
    if not isinstance(condition, s.Binary) or condition.op not in COMPARISONS:
        return None
    left, right = _sides(condition.left), _sides(condition.right)
    if left == {False} and right == {True}:
        return Split(condition.left, condition.op, condition.right)
    if left == {True} and right == {False}:
        return Split(condition.right, FLIPPED[condition.op], condition.left)
    return None


def _sides(node: s.Expr) -> set[bool]:
    return {attribute.next for attribute in s.attributes(node)}
