"""Documents of one shape are walked once: which nodes a plan's definitions select, and from which they are reached,
follows from the names and nesting of elements and the names of attributes, unless a predicate reads a text.

Most histories have few shapes, so that a document costs its parsing and the texts of the nodes that queries join.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, methodcaller
from typing import Any

from trendlake.cep_core.documents.paths import All, AnyOf, Exists, Not, Path, Predicate
from trendlake.cep_core.documents.predicates import string_value
from trendlake.cep_core.xml_join.compile.plan import Definition
from trendlake.cep_core.xml_join.run.walk import Walker

_TAG, _ATTRIBUTES = attrgetter("tag"), methodcaller("keys")

MOST_ELEMENTS = 1_000
"""Elements of a document whose shape is remembered: one with more has hardly its like, and its shape is long."""
MOST_SHAPES = 10_000
"""Shapes that are remembered."""


@dataclass(frozen=True)
class Shape:
    """The rows of every document of a shape, and the texts that they read.

    `rows`: definition, parent (a row of the same document, -1: the document), number of the element, attribute (None:
    the element itself) and the place in `targets`, -1 where no query asks for the text. `targets`: an element's number,
    an attribute, and whether the element has none in it. `documents` and `texts` grow: numbers of documents, and the
    texts of their targets in turn.
    """

    rows: list[tuple[int, int, int, str | None, int]]
    targets: list[tuple[int, str | None, bool]]
    documents: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class Shapes:
    """Sorts documents by shape. `asked`: of each definition whether a query asks for its text."""

    def __init__(self, definitions: Sequence[Definition], asked: Sequence[bool]) -> None:
        self.walker, self.asked = Walker(definitions), asked
        self.alike = all(of_shape(definition.path) for definition in definitions)
        self.shapes: dict[Hashable, Shape] = {}
        self.others: list[Shape] = []

    def add(self, root: Any, document: int) -> None:
        """One more document, by its root element and its number."""
        elements = list(root.iter())
        shape = None
        if self.alike and len(elements) <= MOST_ELEMENTS:
            key = tuple(map(_TAG, elements)), tuple(map(len, elements)), tuple(map(tuple, map(_ATTRIBUTES, elements)))
            shape = self.shapes.get(key)
            if shape is None and len(self.shapes) < MOST_SHAPES:
                shape = self.shapes[key] = self._walked(root)
        if shape is None:
            shape = self._walked(root)
            self.others.append(shape)
        if shape.rows:
            shape.documents.append(document)
            shape.texts.extend(
                elements[number].text or ""
                if attribute is None and leaf
                else string_value(elements[number] if attribute is None else (elements[number], attribute))
                for number, attribute, leaf in shape.targets
            )

    def all(self) -> list[Shape]:
        """The shapes of all documents that have a row."""
        return [shape for shape in (*self.shapes.values(), *self.others) if shape.documents]

    def _walked(self, root: Any) -> Shape:
        targets: dict[tuple[int, str | None], int] = {}
        elements = list(root.iter())
        rows = []
        for definition, parent, number, attribute in self.walker.walk(root):
            place = targets.setdefault((number, attribute), len(targets)) if self.asked[definition] else -1
            rows.append((definition, parent, number, attribute, place))
        return Shape(rows, [(number, attribute, not len(elements[number])) for number, attribute in targets])


def of_shape(path: Path) -> bool:
    """Whether the shape of a document decides which nodes a path selects."""
    return all(_of_shape(predicate) for step in path.steps for predicate in step.predicates)


def _of_shape(predicate: Predicate) -> bool:
    if isinstance(predicate, Exists):
        return of_shape(predicate.path)
    if isinstance(predicate, Not):
        return _of_shape(predicate.test)
    return isinstance(predicate, All | AnyOf) and all(_of_shape(test) for test in predicate.tests)
