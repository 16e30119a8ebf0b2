"""A twin of the twin: without NOT and `where`, the trends are the words that Python's own `re` accepts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, pairwise, product
from typing import Any

from hypothesis import given

from tests.random.patterns import Drawn, patterns
from tests.random.profile import examples
from tests.random.strategies import streams
from tests.reference.trends import reference
from tests.reference.trends.query import read
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern


def expression(node: s.PatternNode, letters: dict[str, str]) -> str:
    """The pattern as a regular expression over one letter for each variable."""
    match node:
        case s.Atom(variable=variable):
            return letters[variable]
        case s.Repeat(body=body, low=low, high=high):
            return f"(?:{expression(body, letters)}){{{low},{'' if high is None else high}}}"
        case s.Seq(parts=parts):
            return "".join(f"(?:{expression(part, letters)})" for part in parts)
        case s.Or(options=options):
            return "|".join(f"(?:{expression(option, letters)})" for option in options)
    raise AssertionError(node)


def words(pattern: str, rows: Sequence[dict[str, Any]]) -> int:
    """How many sequences of (event, variable), strictly increasing in time, the expression accepts."""
    query = read({"kind": "trends", "pattern": pattern, "return": {}, "within": "60 seconds"})
    letters = {variable: chr(ord("a") + place) for place, variable in enumerate(query.types)}
    accepted = re.compile(expression(parse_pattern(pattern), letters))
    ordered = sorted(rows, key=lambda row: row["time"])
    return sum(
        accepted.fullmatch("".join(letters[variable] for variable in under)) is not None
        for size in range(1, len(ordered) + 1)
        for events in combinations(ordered, size)
        if all(one["time"] < other["time"] for one, other in pairwise(events))
        for under in product(
            *([name for name, kind in query.types.items() if kind in (one["type"], "ANY")] for one in events)
        )
    )


def _of_type(types: Any, kind: str) -> list[str]:
    return [name for name, own in types.items() if own in (kind, "ANY")]


@examples(150)
@given(patterns(negation=False, conjunction=False).flatmap(lambda drawn: _asked(drawn)))
def test_trends_are_the_words_of_the_expression(asked: tuple[str, list[dict[str, Any]]]) -> None:
    """Kleene, optional parts, bounds, SEQ and OR, however they nest."""
    pattern, rows = asked
    query = {
        "kind": "trends",
        "pattern": pattern,
        "return": {"n": "COUNT(*)"},
        "within": "1 day",
        "origin": "1969-12-31T12:00:00Z",
    }
    assert sum(row["n"] for row in reference(query, rows)) == words(pattern, rows)


def _asked(drawn: Drawn) -> Any:
    return streams(drawn, most=7).map(lambda rows: (drawn.text, rows))
