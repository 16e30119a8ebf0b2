"""Texts that are not UTF-8, in a table of another program: rows by their bytes, or an error that names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import schema_of

OTHER = b"caf\xe9"
MATCHES = {"kind": "matches", "pattern": "SEQ(S a, S b)", "select": "skip_till_any_match", "within": "1 minute"}
COUNTS = {"kind": "trends", "pattern": "S+", "within": "1 minute", "return": {"n": "COUNT(*)"}}
ALGEBRA = {"kind": "algebra", "within": "1 minute"}

PATTERNS: Mapping[str, Mapping[str, Any]] = {
    "trends, a constant": {**COUNTS, "where": ["S.name > 'b'"]},
    "trends, a pair": {**COUNTS, "where": ["S.name <= NEXT(S).name"]},
    "trends, groups": {**COUNTS, "group_by": ["name"]},
    "trends, an equivalence": {**COUNTS, "where": ["[name]"]},
    "trends, a least": {**COUNTS, "return": {"n": "MIN(S.name)"}},
    "trends, upper": {**COUNTS, "where": ["upper(S.name) = 'B'"]},
    "trends, contains": {**COUNTS, "where": ["contains(S.name, S.more)"]},
    "matches, a pair": {**MATCHES, "where": ["b.name = a.name"]},
    "matches, an order": {**MATCHES, "where": ["b.name > a.name"]},
    "matches, lower": {**MATCHES, "where": ["lower(b.name) = lower(a.name)"]},
    "matches, a measure": {**MATCHES, "return": {"first": "a.name"}},
    "matches, a Kleene part": {**MATCHES, "pattern": "SEQ(S a, S b+)", "where": ["b.name != a.name"]},
    "an automaton": {
        "kind": "automaton",
        "within": "1 minute",
        "register": {"r": {"type": "string", "init": None}},
        "start": "q0",
        "final": ["end"],
        "arcs": [
            {"from": "q0", "to": "q1", "when": "e.name > 'a'", "set": {"r": "e.name"}},
            {"from": "q1", "to": "end", "when": "e.name = r"},
        ],
    },
    "algebra, an equality": {**ALGEBRA, "pattern": "SELECT name AS n, more FROM S NEXT{$2.name = $1.name} S"},
}


def events(column: str, other: bytes) -> pa.Table:
    """Six events, of which some have the text `other` in a column."""
    values = [b"a", other, b"b", b"c", b"d", b"e"] if column == "event_id" else [b"a", other, b"b", other, b"c", b"a"]
    good = pa.array(["a", "b", "c", "b", "c", "a"])
    table = pa.table(
        {
            "event_id": list("abcdef"),
            "event_time": pa.array(range(6), pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC")),
            "event_type": ["S"] * 6,
            "name": good,
            "more": good,
        }
    )
    return table.set_column(
        table.schema.get_field_index(column), column, pa.array(values, pa.binary()).view(pa.string())
    )


def answer(name: str, table: pa.Table) -> int | str:
    """The number of rows, or the error."""
    plan = compile_query({"name": "p", "source": "s", **PATTERNS[name]}, schema_of(table))
    try:
        return run_plan(plan, table).num_rows
    except BadEventsError as error:
        return str(error)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("column", ["name", "event_id", "event_type", "more"])
def test_rows_or_an_error_that_names_one(name: str, column: str) -> None:
    """As many rows as with a text in its place that is UTF-8, and in the same order among the others."""
    rows = answer(name, events(column, OTHER))
    if isinstance(rows, str):
        assert "UTF" in rows
    else:
        assert rows == answer(name, events(column, "caf\u00e9".encode()))
