"""The table of functions: a row means the same in every evaluator, and is all that a new function needs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cep_core import PatternErrors, evaluate
from cep_core.errors import BadEventsError
from cep_core.expressions import columnar, scalar
from cep_core.expressions.functions import FUNCTIONS
from cep_core.language import syntax as s
from pipelines.contracts import row_conditions
from pipelines.spark.row_columns import SPARK_FORMS
from tests.random.profile import CI
from tests.support.engines import to_table

WHOLE = st.one_of(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), -(2**63) + 1]), st.integers(-(2**63), 2**63 - 1))
REAL = st.one_of(st.sampled_from([0.0, math.inf, -math.inf, 1e308, 5e-324]), st.floats(allow_nan=False)).map(
    lambda value: value + 0.0  # as columns are normalised
)
TEXT = st.one_of(st.sampled_from(["", "İ", "straße", "ǅ", "\U00010428", "Σ"]), st.text(max_size=4))
TIME = st.integers(-(2**55), 2**55)
VALUES = {
    "int": (WHOLE, pa.int64()),
    "duration": (WHOLE, pa.int64()),
    "double": (REAL, pa.float64()),
    "string": (TEXT, pa.string()),
    "timestamp": (TIME, pa.int64()),
    "date": (TIME, pa.int64()),
}
CASES = [(name, family) for name, row in FUNCTIONS.items() for family in row.takes or VALUES]


@pytest.mark.random
@pytest.mark.parametrize(("name", "family"), CASES, ids=lambda item: str(item))
@settings(CI, max_examples=60)
@given(data=st.data())
def test_columns_and_single_values_agree(name: str, family: str, data: st.DataObject) -> None:
    """Of every family that the function takes: NULL, infinities, the ends of 64 bits, letters of several cases."""
    values, kind = VALUES[family]
    width = 1 if FUNCTIONS[name].takes else data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.tuples(*[st.none() | values] * width), min_size=1, max_size=5))
    if name in ("lower", "upper"):  # Arrow's tables of letters and Python's are of different versions of Unicode
        rows = [tuple(text and "".join(letter for letter in text if letter < "\u0250") for text in row) for row in rows]
        rows = [tuple(text and text.replace("İ", "").replace("ß", "").replace("ŉ", "") for text in row) for row in rows]
    names = [f"c{number}" for number in range(width)]
    node = s.Call(name, tuple(s.Attribute("", item) for item in names))
    arrays = {item: pa.array(column, kind) for item, column in zip(names, zip(*rows, strict=True), strict=True)}
    one = scalar.compiled(node, lambda read: lambda _, event, __: rows[event][names.index(read.name)])
    try:
        expected = [one(None, event, None) for event in range(len(rows))]
    except BadEventsError:
        with pytest.raises(BadEventsError):
            columnar.evaluate(node, lambda read: arrays[read.name], len(rows))
        return
    assert columnar.evaluate(node, lambda read: arrays[read.name], len(rows)).to_pylist() == expected


QUERIES = {
    "a condition on one event": ("trends", {"pattern": "A a+", "where": ["ABS(a.x) > 2"]}),
    "a condition on two events": ("trends", {"pattern": "A a+", "where": ["ABS(a.x - NEXT(a).x) > 2"]}),
    "a condition on a match": ("matches", {"pattern": "SEQ(A a, A b)", "where": ["ABS(a.x - b.x) > 2"]}),
}
EVENTS: list[dict[str, Any]] = [
    {"id": f"e{at}", "time": at, "type": "A", "x": x} for at, x in enumerate((3, -5, 1, None, 9, -9, 2))
]
AUTOMATON = {
    "kind": "automaton", "source": "any", "register": {"n": {"type": "int", "init": 0}}, "start": "p", "final": ["q"],
    "arcs": [
        {"from": "p", "to": "q", "set": {"n": "e.x"}},
        {"from": "q", "to": "q", "when": "ABS(n) > 2", "set": {"n": "ABS(n - e.x)"}},
    ],
    "within": "1 hour",
}  # fmt: skip


def queries(function: str) -> list[dict[str, Any]]:
    """A query for each evaluator, with `function` in the place of ABS."""
    texts = []
    for kind, body in QUERIES.values():
        result = {"return": {"n": "COUNT(*)"}} if kind == "trends" else {}
        texts.append({"kind": kind, "source": "any", "within": "1 hour", **body, **result})
    return [_renamed(query, function) for query in (*texts, AUTOMATON)]


def _renamed(value: Any, function: str) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(item, function) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, function) for item in value]
    return value.replace("ABS(", f"{function}(") if isinstance(value, str) else value


def test_a_new_function_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types, columns, single values, the machine and pairs of events: all know the function by its row alone."""
    events = to_table(EVENTS)
    with pytest.raises(PatternErrors, match="there is no function 'magnitude'"):
        evaluate(queries("MAGNITUDE")[0], events)
    monkeypatch.setitem(FUNCTIONS, "magnitude", replace(FUNCTIONS["abs"], meaning="of a test"))
    for usual, new in zip(queries("ABS"), queries("MAGNITUDE"), strict=True):
        expected = evaluate(usual, events)
        assert expected.num_rows
        assert evaluate(new, events) == expected
    node = s.Call("magnitude", (s.Literal(-3, "int"),))
    assert scalar.compiled(node, lambda read: pytest.fail(read.name))(None, 0, None) == 3


def test_a_function_that_pairs_do_not_take_is_refused_by_name() -> None:
    query = {"kind": "trends", "source": "any", "within": "1 hour", "pattern": "A a+", "return": {"n": "COUNT(*)"}}
    where = ["LOWER(COALESCE(a.event_id, NEXT(a).event_id)) > 'a'"]
    with pytest.raises(PatternErrors, match="lower of an expression of both events"):
        evaluate(query | {"where": where}, to_table(EVENTS))


def test_conditions_of_contracts_know_every_function() -> None:
    """Spark has a form of each, and of one that patterns do not have."""
    assert set(SPARK_FORMS) == row_conditions.FUNCTIONS == {*FUNCTIONS, "log10"}
