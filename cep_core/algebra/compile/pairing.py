"""How the candidates of NEXT and FOLD are found: the condition on pairs, taken apart.

A condition is true exactly when each part of its conjunction is. Parts that can leave 64 bits are evaluated only for
pairs that satisfy all other parts: an error depends on the events, not on how they are searched (ADR 25).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from trendlake.cep_core.algebra.compile.nodes import Fold, Next
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND, Dur
from trendlake.cep_core.expressions.types import Resolve, infer
from trendlake.cep_core.language import syntax as s

WHOLE = frozenset({"int", "duration", "timestamp"})
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
FOREVER = 2**62


@dataclass(frozen=True)
class Key:
    """`left = right`: an attribute of the left stream or of the instance, and one of the right; `real`: as doubles."""

    left: s.Attribute
    right: s.Attribute
    real: bool


@dataclass(frozen=True)
class Bound:
    """`right op left`, op one of < <= > >=."""

    op: str
    left: s.Attribute
    right: s.Attribute
    real: bool


@dataclass
class Pairing:
    """`left`, `right`: parts on events of one stream, known before any pair. `low`, `high`: the durations, inclusive,
    that the whole may have. `safe`, `risky`: parts on pairs that cannot, and that can, leave 64 bits."""

    left: list[s.Expr] = field(default_factory=list)
    right: list[s.Expr] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    low: int = 0
    high: int = FOREVER
    bound: Bound | None = None
    safe: list[s.Expr] = field(default_factory=list)
    risky: list[s.Expr] = field(default_factory=list)


def risky(node: s.Expr, family: Resolve) -> bool:
    """Whether a whole number in it may leave 64 bits."""
    if not s.attributes(node):
        return False
    grows = (isinstance(node, s.Binary) and node.op in ("+", "-", "*")) or (
        (isinstance(node, s.Unary) and node.op == "-") or (isinstance(node, s.Call) and node.function == "abs")
    )
    return (grows and infer(node, family) in WHOLE) or any(risky(child, family) for child in s.children(node))


def parted(condition: s.Expr | None, family: Resolve) -> tuple[list[s.Expr], list[s.Expr]]:
    """The parts of a condition that cannot leave 64 bits, and those that can."""
    parts = [] if condition is None else s.conjuncts(condition)
    return [one for one in parts if not risky(one, family)], [one for one in parts if risky(one, family)]


def pairing(node: Next | Fold, family: Resolve, held: Collection[str]) -> Pairing:
    """The candidates of a NEXT, or of the steps of a FOLD. `held`: the attributes of the right stream."""
    result = Pairing()
    safe, result.risky = parted(node.condition if isinstance(node, Next) else node.keep, family)
    keys: list[tuple[Key, s.Expr]] = []
    for part in safe:
        sides = {read.variable if not isinstance(read, Dur) else f"{read.variable}.DUR" for read in s.attributes(part)}
        key = _key(part, family)
        if key is not None and (key.left.variable == FIRST or key.left.name in held):
            keys.append((key, part))
        elif sides and sides <= {FIRST, f"{FIRST}.DUR"}:
            result.left.append(part)
        elif sides and sides <= {SECOND, f"{SECOND}.DUR"}:
            result.right.append(part)
        elif (limits := _durations(part)) is not None:
            result.low, result.high = max(result.low, limits[0]), min(result.high, limits[1])
        elif isinstance(node, Next) and result.bound is None and (bound := bound_of(part, family)) is not None:
            result.bound = bound
        else:
            result.safe.append(part)
    now = [pair for pair in keys if pair[0].left.variable == NOW]
    result.keys = [key for key, _ in now or keys]
    result.safe += [part for key, part in keys if key not in result.keys]
    return result


def _compared(part: s.Expr, ops: tuple[str, ...], family: Resolve) -> tuple[str, s.Attribute, s.Attribute, bool] | None:
    """(op, attribute of the left side or the instance, attribute of the right, as doubles): `right op left`."""
    if not isinstance(part, s.Binary) or part.op not in ops:
        return None
    a, b, op = part.left, part.right, part.op
    if not isinstance(a, s.Attribute) or not isinstance(b, s.Attribute) or isinstance(a, Dur) or isinstance(b, Dur):
        return None
    if a.variable != SECOND:
        a, b, op = b, a, FLIPPED[op]
    if a.variable != SECOND or b.variable not in (FIRST, NOW) or "null" in (family(a), family(b)):
        return None
    return op, b, a, "double" in (family(a), family(b))


def _key(part: s.Expr, family: Resolve) -> Key | None:
    match = _compared(part, ("=",), family)
    return None if match is None else Key(*match[1:])


def bound_of(part: s.Expr, family: Resolve) -> Bound | None:
    """An inequality between an attribute of each stream, or of the right one and the instance."""
    match = _compared(part, ("<", "<=", ">", ">="), family)
    return None if match is None else Bound(*match)


def compared(parts: Sequence[s.Expr], family: Resolve, held: Collection[str]) -> tuple[list[Bound], list[s.Expr]]:
    """Of a FOLD's conjunction the inequalities between the next event and the last one, attributes `held` by the right
    stream, which are asked without a program; and the other parts."""
    taken: list[Bound] = []
    rest: list[s.Expr] = []
    for part in parts:
        bound = bound_of(part, family)
        simple = bound is not None and bound.left.variable == NOW and bound.left.name in held
        if bound is not None and simple and bound.right.name in held:
            taken.append(bound)
        else:
            rest.append(part)
    return taken, rest


def neighbours(node: Fold, ways: Pairing, family: Resolve, held: Collection[str]) -> list[Bound] | None:
    """The comparisons of the next event with the last one by which a FOLD goes on, where it computes nothing, skips
    nothing of its group and asks nothing else: then it is the events that decide how far an instance goes on, not what
    it began with. None for another FOLD."""
    safe, may_fail = parted(node.go, family)
    taken, rest = compared(safe, family, held)
    moves = any(key.left.variable == NOW and key.left.name != key.right.name for key in ways.keys)
    others = node.values or ways.safe or ways.risky or rest or may_fail
    return None if others or moves or ways.low > 0 else taken


def _durations(part: s.Expr) -> tuple[int, int] | None:
    """The durations that `DUR op constant` allows, inclusive."""
    if not isinstance(part, s.Binary):
        return None
    a, b, op = part.left, part.right, part.op
    if isinstance(b, Dur):
        a, b, op = b, a, FLIPPED.get(op, op)
    if not (isinstance(a, Dur) and not a.variable and isinstance(b, s.Literal) and type(b.value) is int):
        return None
    us = b.value
    limits = {"=": (us, us), "<": (0, us - 1), "<=": (0, us), ">": (us + 1, FOREVER), ">=": (us, FOREVER)}
    return limits.get(op)
