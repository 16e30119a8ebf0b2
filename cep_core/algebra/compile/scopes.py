"""The meaning of names in the places where expressions are: in FILTER, in SELECT, between the two streams of NEXT and
FOLD.

`resolve` rewrites an attribute to the stream that it is of (see `nodes`); `family` is for rewritten ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from trendlake.cep_core.algebra.compile.syntax import DURATION, FIRST, NOW, SECOND, Dur
from trendlake.cep_core.errors import (
    BadConditionError,
    TrendlakeError,
    UnknownAttributeError,
    UnknownVariableError,
    did_you_mean,
)
from trendlake.cep_core.expressions.types import NUMERIC, ExpressionError
from trendlake.cep_core.language import syntax as s


class Scope(Protocol):
    """Names of one place."""

    def resolve(self, read: s.Attribute) -> s.Attribute:
        """The attribute of its stream. Raises ExpressionError."""

    def family(self, read: s.Attribute) -> str:
        """Of a resolved attribute."""


def refused(error: TrendlakeError, read: s.Attribute) -> ExpressionError:
    return ExpressionError(error, read.span)


def check_form(read: s.Attribute) -> None:
    """Raises ExpressionError for what other kinds have: NEXT(V).x, a[1].x, V.x."""
    if read.next or isinstance(read, s.Indexed):
        raise refused(BadConditionError("kind algebra has no NEXT(V).x and no a[1].x: write $1.x and $2.x"), read)
    if read.variable not in ("", FIRST, NOW, SECOND):
        hint = f"write {read.name}, or $1.{read.name} and $2.{read.name} in NEXT and FOLD"
        raise refused(UnknownVariableError(f"there is no variable '{read.variable}'", hint=hint), read)


def unknown(read: s.Attribute, names: Iterable[str], whose: str) -> ExpressionError:
    hint = did_you_mean(read.name, [*names, DURATION])
    return refused(UnknownAttributeError(f"{whose} has no attribute '{read.name}'", hint=hint), read)


class AnyNames(dict[str, str]):
    """The attributes of a stream that mistakes leave unknown: it has every name, and nothing more is said of it."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "null"


@dataclass(frozen=True)
class Single:
    """FILTER, SELECT (`selects`) and aggregates: one stream."""

    families: Mapping[str, str]
    partition: Mapping[str, str]
    selects: bool = False

    def resolve(self, read: s.Attribute) -> s.Attribute:
        check_form(read)
        if self.selects and read.variable:
            hint = f"write {read.name}"
            raise refused(BadConditionError("SELECT has no decorators: one stream is read", hint=hint), read)
        if read.variable == NOW:
            raise refused(BadConditionError("$ is the instance of a FOLD: there is none here"), read)
        if read.variable == SECOND:
            raise refused(BadConditionError("$2 is the right stream of NEXT or FOLD: here is one stream"), read)
        if not isinstance(read, Dur) and read.name not in self.families and read.name not in self.partition:
            raise unknown(read, (*self.families, *self.partition), "the stream")
        return replace(read, variable="")

    def family(self, read: s.Attribute) -> str:
        if isinstance(read, Dur):
            return "duration"
        return self.partition[read.name] if read.name in self.partition else self.families[read.name]


@dataclass
class Pair:
    """The conditions of NEXT, and the conditions and values of FOLD. `now`: of FOLD, the families of what an instance
    has before a step (None: NEXT). `changes`: the names of it that steps change."""

    left: Mapping[str, str]
    right: Mapping[str, str]
    partition: Mapping[str, str]
    now: dict[str, str] | None = None
    changes: frozenset[str] = frozenset()

    def resolve(self, read: s.Attribute) -> s.Attribute:
        check_form(read)
        if read.variable == NOW and self.now is None:
            hint = "in NEXT the streams are $1 and $2"
            raise refused(BadConditionError("$ is the instance of a FOLD: this is a NEXT", hint=hint), read)
        if isinstance(read, Dur):
            return read
        if read.name in self.partition:
            return replace(read, variable=FIRST)
        if not read.variable:
            return self._plain(read)
        names = self.right if read.variable == SECOND else self.left
        if read.name not in names:
            raise unknown(read, (*names, *self.partition), f"the {'right' if names is self.right else 'left'} stream")
        return self._current(read) if read.variable == NOW else read

    def _current(self, read: s.Attribute) -> s.Attribute:
        return replace(read, variable=NOW if read.name in self.changes and self.now is not None else FIRST)

    def _plain(self, read: s.Attribute) -> s.Attribute:
        """A name without a decorator: of the only stream that has it."""
        on_left, on_right = read.name in self.left, read.name in self.right
        if isinstance(self.left, AnyNames) or isinstance(self.right, AnyNames):
            return replace(read, variable=FIRST if on_left and not isinstance(self.left, AnyNames) else SECOND)
        if on_left and on_right:
            ways = "$1.{0}, $.{0} or $2.{0}" if self.now is not None else "$1.{0} or $2.{0}"
            hint = f"write {ways.format(read.name)}"
            raise refused(BadConditionError(f"both streams have an attribute '{read.name}'", hint=hint), read)
        if not on_left and not on_right:
            raise unknown(read, dict.fromkeys((*self.left, *self.right, *self.partition)), "neither stream")
        if on_right:
            return replace(read, variable=SECOND)
        return replace(read, variable=FIRST) if self.now is None else self._current(read)

    def family(self, read: s.Attribute) -> str:
        if isinstance(read, Dur):
            return "duration"
        if read.name in self.partition:
            return self.partition[read.name]
        if read.variable == NOW and self.now is not None:
            return self.now[read.name]
        return (self.right if read.variable == SECOND else self.left)[read.name]


def joined(a: str, b: str) -> str | None:
    """The family that holds values of both, None where none does."""
    if a == b or b == "null":
        return a
    if a == "null":
        return b
    return "double" if {a, b} <= NUMERIC else None


def moved(left: Iterable[str], right: Iterable[str]) -> dict[str, str]:
    """The names of the left stream's attributes in the output of NEXT and FOLD. One that the right stream has too gets
    `_1`, and so does one whose name such an attribute takes, in turn."""
    left, right = list(left), set(right)
    names = {name: f"{name}_1" for name in left if name in right}
    taken = list(names.values())
    while taken:
        name = taken.pop()
        if name in left and name not in names:
            names[name] = f"{name}_1"
            taken.append(names[name])
    return {name: names.get(name, name) for name in left}
