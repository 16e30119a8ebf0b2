"""One stream in every Arrow type that can hold it, in slices and in chunks: the rows are the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import evaluate

EVENTS = 14
VALUES: dict[str, list[Any]] = {
    "whole": [2, 1, None, 3, 3, 1, 2, 2, None, 3, 1, 2, 3, 1],
    "real": [1.5, -0.0, 2.5, None, 0.0, 2.5, 1.5, -0.0, 0.0, 1.5, None, 2.5, 0.0, 1.5],
    "text": ["a", "b", None, "c", "a", "a", "b", "c", "b", None, "c", "a", "b", "c"],
    "day": [date(2020, 1, 1 + n % 3) if n % 5 else None for n in range(EVENTS)],
    "moment": [datetime(2020, 1, 1, n % 3, tzinfo=UTC) if n % 6 else None for n in range(EVENTS)],
    "flag": [True, False, None, True, True, False, False, True, None, True, False, True, False, True],
}
KINDS = "AABABABAABBAAB"

TYPES: dict[str, list[pa.DataType]] = {
    "whole": [pa.int64(), pa.int8(), pa.uint64(), pa.int32()],
    "real": [pa.float64(), pa.float32(), pa.float64(), pa.float32()],
    "text": [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()],
    "day": [pa.date32(), pa.date64(), pa.date32(), pa.date64()],
    "moment": [pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("s")],
    "flag": [pa.bool_()] * 4,
    "event_time": [pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("ms")],
    "event_type": [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.large_string(), pa.string_view()],
    "event_id": [pa.string(), pa.large_string(), pa.string(), pa.string_view()],
}


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else array.cast(kind)


def stream(variant: int) -> pa.Table:
    """The events, their columns in the types of one variant."""
    columns = {name: pa.array(values) for name, values in VALUES.items()}
    columns["event_time"] = pa.array([n * 1_000_000 for n in range(EVENTS)], pa.timestamp("us", "UTC"))
    columns["event_type"] = pa.array(list(KINDS))
    columns["event_id"] = pa.array([f"e{n:02}" for n in range(EVENTS)])
    return pa.table({name: cast(array, TYPES[name][variant]) for name, array in columns.items()})


def sliced(table: pa.Table) -> pa.Table:
    """The table as a part of a larger one: its buffers begin somewhere."""
    return pa.concat_tables([table.slice(5, 3), table, table.slice(0, 4)]).combine_chunks().slice(3, EVENTS)


def chunked(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 5), table.slice(5, 0), table.slice(5)])


def queries(name: str) -> list[dict[str, Any]]:
    trends: dict[str, Any] = {
        "kind": "trends",
        "pattern": "SEQ(A+, B)",
        "where": [f"A.{name} <= NEXT(A).{name}"],
        "return": {"n": "COUNT(*)"},
        "within": "5 seconds",
        "slide": "2 seconds",
        "group_by": [name],
    }
    if name == "flag":
        trends["where"] = ["A.flag = NEXT(A).flag"]
    else:
        trends["return"] |= {"least": f"MIN(A.{name})", "most": f"MAX(B.{name})"}
    if name in ("whole", "real"):
        trends["return"] |= {"mean": f"AVG(A.{name})", "total": f"SUM(A.{name})"}
    matches = {
        "kind": "matches",
        "pattern": "SEQ(A a+, B b)",
        "where": [f"a[i].{name} != a[i-1].{name}"],
        "select": "skip_till_any_match",
        "return": {"first": f"a[1].{name}"},
        "within": "5 seconds",
    }
    types = {"whole": "bigint", "real": "double", "text": "string", "day": "date", "moment": "timestamp"}
    automaton = {
        "kind": "automaton",
        "register": {"kept": {"type": types.get(name, "boolean"), "init": None}},
        "start": "q",
        "final": ["r"],
        "within": "5 seconds",
        "partition_by": [name],
        "arcs": [
            {"from": "q", "to": "q", "when": "e.event_type = 'A'", "set": {"kept": f"e.{name}"}},
            {"from": "q", "to": "r", "when": f"e.{name} = kept"},
        ],
    }
    return [trends, matches, automaton]


def rows(query: dict[str, Any], events: pa.Table) -> list[str]:
    return sorted(str(row) for row in evaluate(query, events).to_pylist())


@pytest.mark.parametrize("name", VALUES)
def test_the_type_that_holds_a_column_does_not_matter(name: str) -> None:
    """Widths, zones, dictionaries, views, slices and chunks: for every kind of pattern."""
    for query in queries(name):
        expected = rows(query, stream(0))
        assert expected
        for variant in range(4):
            table = stream(variant)
            for form in (table, sliced(table), chunked(table)):
                assert rows(query, form) == expected
