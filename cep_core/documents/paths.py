"""Paths of the XPath 1.0 subset as data: steps, predicates, and the canonical text that identifies them.

`Path.text` names elements and attributes by namespace and local name, never by prefix, so that two paths which select
the same nodes of every document for the reason that they are written alike have one text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Axis = Literal["/", "//"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
TextFunction = Literal["contains", "starts-with"]


@dataclass(frozen=True)
class Name:
    """A name test. `uri` None: any namespace; `local` None: any name."""

    uri: str | None
    local: str | None

    @cached_property
    def text(self) -> str:
        """`{uri}local`; without the braces where the namespace is none."""
        if self.local is None:
            return "*"
        return f"*:{self.local}" if self.uri is None else f"{{{self.uri}}}{self.local}" if self.uri else self.local

    def holds(self, tag: str) -> bool:
        """Whether it is the name `tag`, as lxml writes names: `{uri}local` or `local`."""
        if self.local is None:
            return True
        if self.uri is None:
            return tag.rpartition("}")[2] == self.local
        return tag == self.text


@dataclass(frozen=True)
class Exists:
    """Whether a path selects a node."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.text


@dataclass(frozen=True)
class Compare:
    """Whether some node of `path` (the node itself where it is empty) compares with `value`: a text, or a number."""

    path: Path
    operator: Comparison
    value: str | float

    @cached_property
    def text(self) -> str:
        return f"{self.path.text or '.'}{self.operator}{self.value!r}"


@dataclass(frozen=True)
class TextTest:
    """Whether the node's string value contains `value`, or starts with it."""

    function: TextFunction
    value: str

    @cached_property
    def text(self) -> str:
        return f"{self.function}({self.value!r})"


@dataclass(frozen=True)
class Not:
    """Negation."""

    test: Predicate

    @cached_property
    def text(self) -> str:
        return f"not({self.test.text})"


@dataclass(frozen=True)
class All:
    """Every one holds."""

    tests: tuple[Predicate, ...]

    @cached_property
    def text(self) -> str:
        return f"all({','.join(test.text for test in self.tests)})"


@dataclass(frozen=True)
class AnyOf:
    """One holds."""

    tests: tuple[Predicate, ...]

    @cached_property
    def text(self) -> str:
        return f"any({','.join(test.text for test in self.tests)})"


Predicate: TypeAlias = Exists | Compare | TextTest | Not | All | AnyOf


@dataclass(frozen=True)
class Step:
    """One step: the axis (child or descendant), the name, and predicates, which must all hold, in canonical order."""

    axis: Axis
    attribute: bool
    name: Name
    predicates: tuple[Predicate, ...] = ()

    @cached_property
    def text(self) -> str:
        tests = "".join(f"[{predicate.text}]" for predicate in self.predicates)
        return f"{self.axis}{'@' if self.attribute else ''}{self.name.text}{tests}"

    def where(self, more: Iterable[Predicate]) -> Step:
        """The step with more predicates."""
        return Step(self.axis, self.attribute, self.name, canonical((*self.predicates, *more)))


@dataclass(frozen=True)
class Path:
    """Steps from a node, or from the document; none: the node itself."""

    steps: tuple[Step, ...]

    @cached_property
    def text(self) -> str:
        return "".join(step.text for step in self.steps)

    @property
    def of_attribute(self) -> bool:
        """Whether it selects attributes."""
        return bool(self.steps) and self.steps[-1].attribute

    def where(self, more: Iterable[Predicate]) -> Path:
        """The path with more predicates on its last step."""
        return Path((*self.steps[:-1], self.steps[-1].where(more)))

    def then(self, other: Path) -> Path:
        """`other`, from the nodes of this one."""
        return Path((*self.steps, *other.steps))


def canonical(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """Conjunctions taken apart, each conjunct once, sorted: no predicate depends on a position, so that order and
    repetition mean nothing. `[b and a][a]` -> `[a][b]`."""
    flat: dict[str, Predicate] = {}
    left = list(predicates)
    while left:
        one = left.pop()
        if isinstance(one, All):
            left.extend(one.tests)
        else:
            flat[one.text] = one
    return tuple(flat[text] for text in sorted(flat))


def conjunction(tests: list[Predicate]) -> Predicate:
    """All of `tests` as one predicate."""
    parts = canonical(tests)
    return parts[0] if len(parts) == 1 else All(parts)


def disjunction(tests: list[Predicate]) -> Predicate:
    """One of `tests` as one predicate."""
    parts = {test.text: test for test in tests}
    return tests[0] if len(parts) == 1 else AnyOf(tuple(parts[text] for text in sorted(parts)))
