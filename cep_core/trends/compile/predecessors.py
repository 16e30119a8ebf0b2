"""Adjacent predicates: how the predecessors of an event are found, the cheapest way that is still exact.

For an event w under W, its predecessors under V are the earlier events v with every condition of (V, W) true. A
condition `f(v) op g(w)` is *split*: f and g are computed once an event. Then:

1. no condition: every earlier v counts, one running total (COGRA: state per type). 2. equalities only: a running total
per value of f, looked up by g. 3. one inequality, with or without equalities: per equality value, the v's in order of
f; those that satisfy the inequality for w are a prefix (of the order, or of its reverse for > and >=), summed by a
Fenwick tree over ranks. 4. two inequalities, with or without equalities: divide and conquer over time, see
`cep_core.trends.kernels.divide_and_conquer`. 5. anything else (more inequalities, !=, conditions that mix both events
in one side): every pair is tried.

1 to 4 are exact because the set of v's that satisfy the conditions *is* that class, or that prefix of it: nothing is
approximated, and sums over disjoint nodes of the tree are sums over the set.

Several inequalities are one range where they read one expression f of v (`f(v) > g(w) AND f(v) <= h(w)`): the v's that
satisfy them are those whose ranks in the order of f are between two bounds. Where they read one expression g of w
(`f(v) <= g(w) AND g(w) < h(v)`) each v has a range of g's order, and w asks which of them hold its rank. Both are
O(log n) (`cep_core.trends.kernels.ranges`).

A NOT between V and W is a condition of the pair too (see `cep_core.trends.run.negation`): "the same latest N" is an
equality where an N is a single event, "not before the latest start of an N" is an inequality, on time, where it is
several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from trendlake.cep_core.expressions.columnar import COMPARISONS, FLIPPED
from trendlake.cep_core.language import syntax as s


class Method(Enum):
    """How predecessors are found; the value is what `explain` prints."""

    RUNNING = "running total"
    HASH = "hash"
    ORDERED = "ordered prefix (Fenwick)"
    HASH_ORDERED = "hash plus ordered prefix (Fenwick)"
    RANGE = "range of ranks (segment tree)"
    DIVIDE = "divide and conquer"
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


@dataclass(frozen=True)
class Layer:
    """The conditions of an adjacent (V, W), those that NOTs between make included: `resets` are guards of single
    events, equalities; `bounds` are guards of several, together one inequality on time (see
    `cep_core.trends.run.negation`)."""

    earlier: str
    later: str
    resets: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()


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
        case s.Literal() | s.Parameter():
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
    def splits_only(self) -> bool:
        """Whether the conditions are equalities and inequalities between one-sided expressions."""
        return not self.mixed and len(self.splits) == len(self.equalities) + len(self.inequalities)

    @property
    def common(self) -> Literal["earlier", "later"] | None:
        """The event whose same expression all inequalities, two or more, read; None where there is none."""
        if not self.splits_only or len(self.inequalities) < 2:
            return None
        if len({split.earlier for split in self.inequalities}) == 1:
            return "earlier"
        return "later" if len({split.later for split in self.inequalities}) == 1 else None

    @property
    def method(self) -> Method:
        """How predecessors are found where no NOT stands between."""
        return self.method_with(0, 0)

    def method_with(self, equalities: int, inequalities: int) -> Method:
        """How predecessors are found under so many further conditions, made of NOTs."""
        equalities += len(self.equalities)
        if self.common is not None and not inequalities:
            return Method.RANGE
        inequalities += len(self.inequalities)
        if not self.splits_only or inequalities > 2:
            return Method.SCAN
        if inequalities == 2:
            return Method.DIVIDE
        if inequalities == 1:
            return Method.HASH_ORDERED if equalities else Method.ORDERED
        return Method.HASH if equalities else Method.RUNNING

    def reason(self, equalities: int = 0, inequalities: int = 0) -> str:
        """Why this method, for `explain`."""
        origin = " (with those that NOTs make)" if equalities or inequalities else ""
        match self.method_with(equalities, inequalities):
            case Method.RUNNING:
                return "no adjacent condition"
            case Method.HASH:
                return f"equalities only{origin}"
            case Method.ORDERED:
                return f"one inequality{origin}"
            case Method.HASH_ORDERED:
                return f"equalities and one inequality{origin}"
            case Method.RANGE:
                return f"inequalities of one value of the {self.common} event"
            case Method.DIVIDE:
                return f"two inequalities{origin}"
        if self.mixed:
            return "a condition mixes both events"
        if self.splits_only:
            return f"{len(self.inequalities) + inequalities} inequalities{origin}"
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
