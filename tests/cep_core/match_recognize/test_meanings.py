"""Columns of row patterns that are lengths of time or lists of event ids, wherever the query names them."""

from __future__ import annotations

import pytest

from trendlake.cep_core import EventSchema, compile_query

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "begun": "timestamp", "x": "bigint"}
)


@pytest.mark.parametrize(
    ("measures", "lengths", "ids"),
    [
        ("LAST(b.event_time) - FIRST(a.event_time) AS m", ["m"], []),
        ("COUNT(*) AS n, MAX(b.event_time - b.begun) AS m, SUM(b.event_time - b.begun) AS s", ["m", "s"], []),
        ("(LAST(b.event_time) - a.event_time) + (a.event_time - a.begun) AS m", ["m"], []),
        (
            "(LAST(b.event_time) - a.event_time) / 2 AS half, LAST(b.x) - a.x AS d, AVG(b.event_time - b.begun) AS v",
            [],
            [],
        ),
        ("ARRAY_AGG(b.event_id) AS i, ARRAY_AGG(b.x) AS v, ARRAY_AGG(b.event_time - b.begun) AS t", [], ["i"]),
    ],
)
def test_measures(measures: str, lengths: list[str], ids: list[str]) -> None:
    assert meaning(f"MEASURES {measures} PATTERN (a b+)") == (lengths, ids)


def test_names_of_the_queries_around_it() -> None:
    """Behind FROM a column is computed or has another name; SELECT takes a measure as it is, renames it, or makes
    something else of it."""
    inner = "(SELECT event_time - begun AS took, x FROM e)"
    clause = "MEASURES LAST(b.took) AS m, ARRAY_AGG(b.event_id) AS i, LAST(b.x) AS x PATTERN (a b+)"
    assert meaning(clause, inner, "SELECT m, m AS longer, m / 60000000 AS minutes, i AS events, x") == (
        ["m", "longer"],
        ["events"],
    )


def test_conditions_compare_them_with_numbers() -> None:
    """As before they were known to be lengths."""
    text = "FROM e MATCH_RECOGNIZE (MEASURES LAST(b.event_time) - a.event_time AS m PATTERN (a b+))"
    plan = compile_query({"kind": "match_recognize", "pattern": text, "having": ["m > 60000000"]}, SCHEMA)
    assert (plan.result_shape.micros, plan.result_shape.durations) == (("m",), ())


def meaning(clause: str, inner: str = "e", select: str = "") -> tuple[list[str], list[str]]:
    text = f"{select} FROM {inner} MATCH_RECOGNIZE ({clause} DEFINE a AS x > 0)"
    shape = compile_query({"kind": "match_recognize", "pattern": text}, SCHEMA).result_shape
    return [*shape.micros], [*shape.listed_ids]


def test_a_measure_hides_an_input_of_its_name() -> None:
    inner = "(SELECT event_time - begun AS took, x FROM e)"
    assert meaning("MEASURES COUNT(*) AS took, MAX(b.took) AS m PATTERN (a b+)", inner) == (["m"], [])
