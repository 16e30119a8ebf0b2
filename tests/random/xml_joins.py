"""Random files and documents for kind xml_join, over few names and values, so that they meet.

A question is drawn from a seed by `random`, not choice by choice by Hypothesis: that is ten times as fast, and only
some of the questions have answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tests.reference.xml_join import TooManyError, answers
from tests.reference.xml_join.sql import answers_by_sql
from tests.support.xml_documents import engine
from trendlake.cep_core.errors import PatternErrors, TooManyAnswersError

NAMESPACES = {"p": "urn:p", "q": "urn:q"}
NAMES = ("a", "b", "a", "b", "a", "b", "c", "p:a", "q:b")
VALUES = (
    *("1", "x") * 8,
    "2",
    "",
    " 1 ",
    "1.0",
    "x  y",
    "-2",
    "10",
    "é",
    "e\u0301",
    "X",
    "\u00a01",
    "NaN",
    "1e1",
    ".5",
)
TEXTS = ("1", "2", "x", "", "x y", "1.0", "é")
NUMBERS = ("1", "2", "10", "0", "-2", ".5", "1.", "1.0")

Question = tuple[dict[str, Any], list[dict[str, Any]]]


@dataclass
class XmlTally:
    """How many questions were compared, and how many had answers."""

    compared: int = 0
    with_answers: int = 0
    refused: int = 0

    def lines(self) -> list[str]:
        return [f"{self.compared} compared ({self.with_answers} with answers), {self.refused} refused"]


def elements(r: Random, depth: int = 0) -> str:
    """An element as text."""
    name = r.choice(NAMES)
    listed = r.sample(("a", "b", "p:a", "q:a", "xml:lang"), r.randint(0, 2))
    attributes = "".join(f" {one}={quoteattr(r.choice(VALUES))}" for one in listed)
    if depth == 0:
        attributes += "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    if r.randint(0, 15) == 0:
        attributes += f' xmlns="{r.choice(("", "urn:p"))}"'
    parts = []
    for _ in range(r.choice((1, 2, 2, 3) if depth < 2 else (0, 1, 1, 1))):
        kinds = ("element", "element", "element", "text", "cdata", "comment")
        kind = r.choice(kinds if depth < 2 else kinds[3:4])
        value = r.choice(VALUES)
        parts.append(
            {
                "element": lambda: elements(r, depth + 1),
                "text": lambda value=value: escape(value),
                "cdata": lambda value=value: f"<![CDATA[{value}]]>",
                "comment": lambda: "<!-- 1 --><?a 1?>",
            }[kind]()
        )
    return f"<{name}{attributes}>{''.join(parts)}</{name}>"


def documents(r: Random, most: int = 5) -> list[dict[str, Any]]:
    """A few documents with ties in time; some come several times under other ids."""
    listed = [elements(r) for _ in range(r.choice((1, 1, 2)))]
    count = r.randint(2, most)
    times = (0, 1, 1, 2, 3, 4)
    return [
        {"id": f"d{n}", "time": r.choice(times) * 1_000_000 + r.choice((0, 0, 0, 1)), "xml": r.choice(listed)}
        for n in range(count)
    ]


def _name(r: Random) -> str:
    return r.choice((*("a", "*", "*", "*", "*:a", "*:b") * 2, "b", "c", "p:a", "q:b"))


def tested(r: Random, depth: int) -> str:
    """What stands in a predicate."""
    kinds = ("exists", "text", "number", "function", "and", "or", "not", "brackets")
    kind = r.choice(kinds if depth < 2 else kinds[:2])
    if kind == "and" or kind == "or":
        return f"{tested(r, depth + 1)} {kind} {tested(r, depth + 1)}"
    if kind == "not":
        return f"not({tested(r, depth + 1)})"
    if kind == "brackets":
        return f"({tested(r, depth + 1)})"
    text = r.choice(TEXTS)
    if kind == "function":
        return f"{r.choice(('contains', 'starts-with'))}(., '{text}')"
    operand = operands(r, depth)
    if kind == "exists":
        return operand if operand != "." else "*"
    if kind == "text":
        quote = r.choice("'\"")
        return f"{operand} {r.choice(('=', '!='))} {quote}{text}{quote}"
    return f"{operand} {r.choice(('=', '!=', '<', '<=', '>', '>='))} {r.choice(NUMBERS)}"


def operands(r: Random, depth: int) -> str:
    first = r.choice((".", ".", "@a", "@*", "name", ".//", "./@", ".//@", "deep"))
    if first in (".", "@a", "@*"):
        return first
    if first == "name":
        return _name(r) + predicates(r, depth + 1)
    if first == "deep":
        return f"{_name(r)}//{_name(r)}"
    return f"{first}{_name(r)}"


def predicates(r: Random, depth: int = 0) -> str:
    """None, mostly, or one or two predicates."""
    count = r.choice((*(0,) * 12, 1, 1, 2) if depth == 0 else (0, 0, 1))
    return "".join(f"[{tested(r, depth)}]" for _ in range(count))


def paths(r: Random) -> str:
    """Steps as they follow a variable."""
    steps = [f"{r.choice(('/', '//', '//'))}{_name(r)}{predicates(r)}" for _ in range(r.choice((1, 1, 1, 1, 1, 2)))]
    if r.randint(0, 3) == 0:
        name = r.choice(("a", "b", "*", "p:a", "*:a", "xml:lang"))
        steps[-1] = f"{r.choice(('/', '//'))}@{name}{predicates(r, 1)}"
    return "".join(steps)


def blocks(r: Random, letter: str) -> dict[str, str]:
    """A main variable and up to four others below it or below one another."""
    block = {f"{letter}0": r.choice(("//", "//", "//", "/")) + _name(r) + predicates(r)}
    elements_only = [f"{letter}0"]
    for n in range(1, 1 + r.choice((1, 1, 1, 1, 2, 3))):
        path = paths(r)
        block[f"{letter}{n}"] = f"${r.choice(elements_only)}{path}"
        if "@" not in path.split("[")[0] and "/@" not in path:
            elements_only.append(f"{letter}{n}")
    return block


def queries(r: Random) -> dict[str, Any]:
    """One legal query."""
    left, right = blocks(r, "l"), blocks(r, "r")
    if r.random() < 0.6:
        right = {name.replace("l", "r"): path.replace("$l", "$r") for name, path in left.items()}

    def operand(block: Mapping[str, str]) -> str:
        variable = f"${r.choice(list(block))}"
        return r.choice((variable, variable, f"normalize-space({variable})"))

    where = []
    for _ in range(r.choice((1, 1, 1, 2, 2, 3))):
        sides = r.sample((operand(left), operand(right)), 2)
        where.append(" = ".join(sides))
    query: dict[str, Any] = {
        "left": left,
        "right": right,
        "operator": r.choice(("followed_by", "join")),
        "where": where,
        "within": r.choice(("1 second", "2 seconds", "3 seconds", *("unbounded",) * 3)),
    }
    if r.random() < 0.5:
        columns: dict[str, str] = {}
        for name in r.sample(("x", "y", "left_node"), r.randint(0, 3)):
            variable = f"${r.choice([*left, *right])}"
            columns[name] = r.choice((variable, f"normalize-space({variable})", f"node({variable})"))
        query["return"] = columns
    return query


def xml_question(number: int, most: int = 5) -> Question:
    """A file of one to four queries and some documents."""
    r = Random(number)
    file: dict[str, Any] = {"kind": "xml_join", "namespaces": NAMESPACES}
    if r.random() < 0.5:
        file["namespaces"] = {"": "urn:p", **NAMESPACES}
    if r.randint(0, 5) == 0:
        file["limit_per_document"] = r.randint(1, 3)
    listed = [queries(r) for _ in range(r.choice((1, 1, 2, 4)))]
    if len(listed) == 1:
        file |= listed[0]
    else:
        file["queries"] = {f"q{n}": query for n, query in enumerate(listed)}
    return file, documents(r, most)


def disagreement(question: Question, tally: Any) -> list[str]:
    """How the engine's rows differ from the enumeration and from those of SQL. The engine takes 3 ms a question, SQL
    1.3 ms and the enumeration 0.5 ms."""
    query, rows = question
    try:
        expected: Any = answers(query, rows)
    except TooManyError:
        expected = "too many"
    try:
        actual: Any = engine(query, rows)
    except TooManyAnswersError:
        actual = "too many"
    except PatternErrors as error:
        tally.refused += 1
        return [f"refused: {error}"]
    tally.compared += 1
    tally.with_answers += bool(expected)
    if "too many" in (expected, actual):
        return [] if expected == actual else [f"{expected} expected, found {actual}"]
    by_sql = [f"by SQL, {line}" for line in differences(answers_by_sql(query, rows), actual)]
    return differences(expected, actual) + by_sql


def differences(expected: set[Any], actual: set[Any]) -> list[str]:
    """Rows of one only."""
    return sorted(
        [
            *(f"missing: {dict(row)}" for row in expected - actual),
            *(f"not expected: {dict(row)}" for row in actual - expected),
        ]
    )


def search(seconds: float, first: int) -> int:
    """Questions from the number `first` on, until the time is over or the answers differ; the exit status."""
    tally, until, number = XmlTally(), time.monotonic() + seconds, first * 1_000_000
    lines: list[str] = []
    while not lines and time.monotonic() < until:
        number += 1
        lines = disagreement(xml_question(number, most=7), tally)
    if lines:
        print("\n".join([f"# question {number}", *lines, repr(xml_question(number, most=7))]))
    print("\n".join(f"# {line}" for line in tally.lines()))
    return 1 if lines else 0
