"""Paths read and searched on their own: text to nested tuples, then sets of nodes, step by step.

A node is ("element", e), ("attribute", e, name), or ("document", root).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.reference.xml_join.documents import Element

Node = tuple[Any, ...]
_WORD = r"[^\W\d][\w.\-]*"
_PIECES = re.compile(
    rf"\s*(\"[^\"]*\"|'[^']*'|\d+\.?\d*|\.\d+|//|!=|<=|>=|\${_WORD}|(?:{_WORD}|\*):(?:{_WORD})|{_WORD}|[-/@\[\]().,=<>*])"
)
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@cache
def read(text: str) -> tuple[str | None, tuple[Any, ...]]:
    """(variable or None, steps); a step is (axis, is attribute, name as written, predicates)."""
    pieces = [match[1] for match in _PIECES.finditer(text)]
    variable = pieces.pop(0)[1:] if pieces[0].startswith("$") else None
    steps = _steps(pieces)
    if pieces:
        raise ValueError(f"{text!r}: {pieces} is left")
    return variable, steps


def _steps(pieces: list[str]) -> tuple[Any, ...]:
    steps = []
    while pieces and pieces[0] in ("/", "//"):
        steps.append(_step(pieces.pop(0), pieces))
    return tuple(steps)


def _step(axis: str, pieces: list[str]) -> Any:
    attribute = pieces[0] == "@"
    if attribute:
        pieces.pop(0)
    name = pieces.pop(0)
    predicates = []
    while pieces and pieces[0] == "[":
        pieces.pop(0)
        predicates.append(_any(pieces))
        pieces.pop(0)
    return axis, attribute, name, tuple(predicates)


def _any(pieces: list[str]) -> Any:
    parts = [_every(pieces)]
    while pieces[0] == "or":
        pieces.pop(0)
        parts.append(_every(pieces))
    return ("or", *parts)


def _every(pieces: list[str]) -> Any:
    parts = [_test(pieces)]
    while pieces[0] == "and":
        pieces.pop(0)
        parts.append(_test(pieces))
    return ("and", *parts)


def _test(pieces: list[str]) -> Any:
    if pieces[0] == "(":
        pieces.pop(0)
        inner = _any(pieces)
        pieces.pop(0)
        return inner
    if pieces[0] == "not" and pieces[1] == "(":
        del pieces[:2]
        inner = _any(pieces)
        pieces.pop(0)
        return ("not", inner)
    if pieces[0] in ("contains", "starts-with") and pieces[1] == "(":
        function, value = pieces[0], pieces[4][1:-1]
        del pieces[:6]
        return (function, value)
    if pieces[0] == ".":
        pieces.pop(0)
        path: tuple[Any, ...] = _steps(pieces)
    else:
        path = (_step("/", pieces), *_steps(pieces))
    if pieces[0] not in COMPARE:
        return ("exists", path)
    sign = pieces.pop(0)
    value = pieces.pop(0)
    if value[0] in "\"'":
        return ("compare", path, sign, value[1:-1])
    return ("compare", path, sign, -float(pieces.pop(0)) if value == "-" else float(value))


def value(node: Node) -> str:
    """The string value."""
    return node[1].attributes[node[2]] if node[0] == "attribute" else node[1].text


def select(nodes: list[Node], steps: tuple[Any, ...], namespaces: Mapping[str, str]) -> list[Node]:
    """The nodes that a path selects from some nodes, each once."""
    for axis, attribute, name, predicates in steps:
        reached: list[Node] = []
        for node in nodes:
            for one in _axis(node, axis, attribute):
                if (
                    _named(one, name, namespaces)
                    and all(holds(p, one, namespaces) for p in predicates)
                    and one not in reached
                ):
                    reached.append(one)
        nodes = reached
    return nodes


def _axis(node: Node, axis: str, attribute: bool) -> list[Node]:
    if node[0] == "attribute":
        return []
    if node[0] == "document":
        elements = [node[1]] if axis == "/" else [node[1], *node[1].descendants]
        owners: list[Element] = [] if axis == "/" else elements
    else:
        elements = node[1].children if axis == "/" else node[1].descendants
        owners = [node[1]] if axis == "/" else [node[1], *node[1].descendants]
    if attribute:
        return [("attribute", owner, name) for owner in owners for name in owner.attributes]
    return [("element", element) for element in elements]


def _named(node: Node, name: str, namespaces: Mapping[str, str]) -> bool:
    uri, local = node[2] if node[0] == "attribute" else node[1].name
    prefix, colon, word = name.rpartition(":")
    if name == "*":
        return True
    if prefix == "*":
        return bool(local == word)
    if colon:
        return bool((uri, local) == ({"xml": "http://www.w3.org/XML/1998/namespace", **namespaces}[prefix], word))
    return bool((uri, local) == ("" if node[0] == "attribute" else namespaces.get("", ""), word))


def holds(test: Any, node: Node, namespaces: Mapping[str, str]) -> bool:
    """Whether a predicate holds of a node."""
    kind = test[0]
    if kind == "or":
        return any(holds(one, node, namespaces) for one in test[1:])
    if kind == "and":
        return all(holds(one, node, namespaces) for one in test[1:])
    if kind == "not":
        return not holds(test[1], node, namespaces)
    if kind == "contains":
        return test[1] in value(node)
    if kind == "starts-with":
        return value(node)[: len(test[1])] == test[1]
    nodes = select([node], test[1], namespaces)
    if kind == "exists":
        return bool(nodes)
    if isinstance(test[3], str):
        return any(COMPARE[test[2]](value(one), test[3]) for one in nodes)
    return any(COMPARE[test[2]](number(value(one)), test[3]) for one in nodes)


def number(text: str) -> float:
    """XPath 1.0's number()."""
    text = text.strip(" \t\r\n")
    digits = text[1:] if text.startswith("-") else text
    whole, _, fraction = digits.partition(".")
    if digits.count(".") > 1 or not (whole + fraction) or not all(c in "0123456789" for c in whole + fraction):
        return math.nan
    return float(text)
