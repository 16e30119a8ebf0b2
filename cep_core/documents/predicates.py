"""Predicates and string values on one document, by plain search from a node: the paths of predicates are short.

A node is an element of lxml, or (element, name) for one of its attributes.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from trendlake.cep_core.documents.paths import All, AnyOf, Compare, Exists, Name, Not, Path, Predicate, Step, TextTest

Node: TypeAlias = Any
Test: TypeAlias = Callable[[Node], bool]

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_SPACES = re.compile("[ \t\r\n]+")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def number(text: str) -> float:
    """XPath 1.0's `number` of a string value; NaN where it is none."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) if match else math.nan


def normalised(text: str) -> str:
    """Spaces, tabs, CR and LF trimmed and collapsed; no other space."""
    return _SPACES.sub(" ", text.strip(" \t\r\n"))


def string_value(node: Node) -> str:
    """All text in an element, in document order; an attribute's value."""
    if isinstance(node, tuple):
        return str(node[0].attrib[node[1]])
    if len(node):
        return "".join(node.itertext())
    return str(node.text or "")


def named(element: Any, name: Name) -> Iterator[Node]:
    """The attributes of an element that a name test takes."""
    for attribute in element.attrib:
        if name.holds(attribute):
            yield element, attribute


def compiled(predicate: Predicate) -> Test:
    """A predicate as a function of a node."""
    if isinstance(predicate, Exists):
        select = selector(predicate.path)
        return lambda node: next(select(node), None) is not None
    if isinstance(predicate, Compare):
        return _comparison(predicate)
    if isinstance(predicate, TextTest):
        value = predicate.value
        if predicate.function == "contains":
            return lambda node: value in string_value(node)
        return lambda node: string_value(node).startswith(value)
    if isinstance(predicate, Not):
        inner = compiled(predicate.test)
        return lambda node: not inner(node)
    tests = [compiled(test) for test in predicate.tests]
    if isinstance(predicate, All):
        return lambda node: all(test(node) for test in tests)
    assert isinstance(predicate, AnyOf)
    return lambda node: any(test(node) for test in tests)


def _comparison(predicate: Compare) -> Test:
    select, compare, value = selector(predicate.path), _COMPARE[predicate.operator], predicate.value
    if isinstance(value, str):
        return lambda node: any(compare(string_value(one), value) for one in select(node))
    return lambda node: any(compare(number(string_value(one)), value) for one in select(node))


def selector(path: Path) -> Callable[[Node], Iterator[Node]]:
    """A path as a function from a node to the nodes it selects; one may come several times."""
    steps = [(step, [compiled(predicate) for predicate in step.predicates]) for step in path.steps]

    def select(node: Node, at: int = 0) -> Iterator[Node]:
        if at == len(steps):
            yield node
            return
        step, tests = steps[at]
        for one in _reached(node, step):
            if all(test(one) for test in tests):
                yield from select(one, at + 1)

    return select


def _reached(node: Node, step: Step) -> Iterator[Node]:
    if isinstance(node, tuple):
        return
    if step.attribute:
        for element in node.iter() if step.axis == "//" else (node,):
            yield from named(element, step.name)
    elif step.axis == "/":
        for child in node:
            if step.name.holds(child.tag):
                yield child
    else:
        below = node.iter()
        next(below)
        for element in below:
            if step.name.holds(element.tag):
                yield element
