"""Every query of the thesis compiles, and gives on random events the rows of the sets by definition."""

from __future__ import annotations

import random
import re
import warnings
from functools import cache
from pathlib import Path

import pytest

from tests.random.algebra import exact
from tests.reference.algebra import reference
from tests.support.engines import to_table
from tests.support.intervals import plain
from trendlake.cep_core import PatternWarning, draw, evaluate, explain
from trendlake.cep_core import compile_query as compile_pattern
from trendlake.cep_core.events.schema import schema_of

QUERIES = Path(__file__).with_name("thesis_queries.cel")


@cache
def queries() -> dict[str, str]:
    """By its first line each query of the file."""
    parts = re.split(r"^-- ", QUERIES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.split("\n")[0]: f"-- {part}" for part in parts}


def events(seed: int) -> list[dict[str, object]]:
    """Thirty events of every type that the queries read."""
    chance = random.Random(seed)
    types = ("Stock", "Stock", "Stock", "Post", "Article", "CPU", "Tech", "Quote", "S", "T")
    return [
        {
            "id": f"e{number:02}",
            "type": chance.choice(types),
            "time": chance.randint(0, 40) * 300,
            "Name": chance.choice(("IBM", "IBM", "MSFT", "DELL", "GOOG")),
            "Price": chance.choice((5.0, 8.0, 9.0, 14.0, 16.0, 84.0, 90.0, 101.0, 410.0, None)),
            "Volume": chance.choice((100, 20_000)),
            "website": chance.choice(("apple.com", "site1", "site2", "w")),
            "description": chance.choice(("Apple rumor L1", "see L1", "L2 and L3", None)),
            "link": chance.choice(("L1", "L2", "L3")),
            "channel": chance.choice(("c", "d")),
            "popularity": chance.choice((40, 60, 70, 80)),
            "pid": chance.choice((7, 7, 8)),
            "load": chance.choice((10.0, 50.0, 95.0)),
            "a": chance.choice((5, 17)),
            "b": chance.choice((1, 2, 3)),
        }
        for number in range(30)
    ]


def test_all_are_here() -> None:
    assert len(queries()) == 34


@pytest.mark.parametrize("name", list(queries()))
def test_query(name: str) -> None:
    query = {"kind": "algebra", "pattern": queries()[name], "within": "3 hours"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        for seed in (1, 2):
            rows = events(seed)
            table = to_table(rows)
            plan = compile_pattern(query, schema_of(table))
            assert explain(plan).startswith(f"plan {plan.hash}, algebra")
            assert draw(plan, name).startswith("<svg")
            kinds = {key: type(next(row[key] for row in rows if row[key] is not None)) for key in rows[0]}
            assert exact(plain(evaluate(query, table))) == exact(reference(query, rows, kinds))
