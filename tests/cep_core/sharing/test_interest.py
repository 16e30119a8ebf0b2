"""The rows that an index gives a plan are those that its conditions, asked of every event, let it bind."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import compile_query
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.expressions.columnar import true_where
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.sharing import interest
from trendlake.cep_core.sharing.comparisons import comparison_of, harmless
from trendlake.cep_core.sharing.interest import Interests

TIME = pa.timestamp("us", tz="UTC")
TYPES: dict[str, tuple[Any, list[Any], list[str]]] = {
    "n": (pa.int64(), [-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1, None], ["-1", "0", "2", "9007199254740993"]),
    "small": (pa.int8(), [-128, 0, 1, 127, None], ["-128", "0", "1", "300"]),
    "y": (pa.float64(), [-1.5, -0.0, 0.0, 1.0, float("inf"), float("nan"), None], ["-1.5", "0", "-0.0", "1", "1e308"]),
    "f": (pa.float32(), [0.1, 1.5, None], ["0.1", "1.5", "0"]),
    "d": (pa.decimal128(9, 2), [Decimal("0.10"), Decimal("-3.30"), None], ["0.1", "-3.3", "1"]),
    "g": (pa.string(), ["", "a", "b", "B", "ä", "\U0001f600", "�", None], ["''", "'a'", "'ä'", "'\U0001f600'"]),
    "k": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c", None], ["'a'", "'b'", "'z'"]),
    "t": (
        TIME,
        [datetime(1970, 1, 1, tzinfo=UTC), datetime(2013, 1, 31, tzinfo=UTC), None],
        ["TIMESTAMP '2013-01-31T00:00:00Z'", "TIMESTAMP '1970-01-01T00:00:00Z'"],
    ),
}
FORMS = (
    "A.{n} = {a}",
    "A.{n} < {a}",
    "A.{n} <= {a}",
    "A.{n} > {a}",
    "A.{n} >= {a}",
    "{a} < A.{n}",
    "{a} = A.{n}",
    "A.{n} IN ({a}, {b}, NULL)",
    "A.{n} BETWEEN {a} AND {b}",
    "A.{n} != {a}",
    "A.{n} IS NOT NULL",
    "A.{n} = {a} OR A.{n} > {b}",
    "NOT (A.{n} = {a})",
    "A.{n} = NULL",
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 12))
    columns = {
        name: pa.array(draw(st.lists(st.sampled_from(cells), min_size=size, max_size=size)), kind)
        for name, (kind, cells, _) in TYPES.items()
    }
    kinds = pa.array(draw(st.lists(st.sampled_from(["A", "A", "B"]), min_size=size, max_size=size)), pa.string())
    time = pa.array(range(size), TIME)
    ids = pa.array([f"e{i}" for i in range(size)], pa.string())
    return pa.table({"event_id": ids, "event_type": kinds, "event_time": time, **columns})


@st.composite
def conditions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(TYPES)))
    a, b = (draw(st.sampled_from(TYPES[name][2])) for _ in range(2))
    return draw(st.sampled_from(FORMS)).format(n=name, a=a, b=b)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 1, "FEW_SORTED": 1, "MOST": 9.0}.items():
        monkeypatch.setattr(interest, name, value)


@pytest.mark.random
@pytest.mark.usefixtures("eager")
@pytest.mark.more_in_chaos
@examples(500)
@given(tables(), st.lists(conditions(), min_size=1, max_size=3))
def test_rows_as_by_asking_every_event(table: pa.Table, where: list[str]) -> None:
    """What is left to be asked, asked of the rows of the index, gives the rows of all conditions asked of all events;
    and where those are in error, so is this."""
    query = {"pattern": "A+", "where": where, "return": {"n": "COUNT(*)"}, "within": "1 minute"}
    plan = compile_query(query, schema_of(table))
    columns = Columns(table)
    (binding,) = KINDS["trends"].bindings(plan) or ()
    try:
        expected = asked(columns, np.arange(table.num_rows), binding.conditions, binding.type_name).tolist()
    except BadEventsError:
        expected = None
    indexed = Interests(columns, [plan], [(binding,)]).of(0)
    if indexed is None:
        return
    try:
        rows = asked(columns, indexed.rows, indexed.left[0], binding.type_name).tolist()
    except BadEventsError:
        rows = None
    assert rows == expected
    assert sorted(set(indexed.rows.tolist())) == indexed.rows.tolist()


def asked(columns: Columns, rows: Any, conditions: Any, type_name: str) -> Any:
    """Those of `rows` of a type that all conditions are true of, one after the other: the slow twin."""
    codes, names = columns.types("event_type")
    rows = rows[[code >= 0 and names[code] == type_name for code in codes[rows].tolist()]]
    for condition in conditions:
        part = columns.chosen(rows)
        rows = rows[true_where(np.ones(len(rows), bool), condition, lambda read, part=part: part.column(read.name))]
    return rows


@pytest.mark.usefixtures("eager")
def test_most_comparisons_are_answered() -> None:
    """Of each type whose values the index orders as a comparison does."""
    answered = dict.fromkeys(TYPES, 0)
    types = {name: Columns(pa.table({name: pa.array(cells, kind)})) for name, (kind, cells, _) in TYPES.items()}
    for name, (_, _, literals) in TYPES.items():
        for form in FORMS[:8]:
            node: Any = parse_condition(form.format(n=name, a=literals[0], b=literals[1]))
            answered[name] += comparison_of(node, lambda read: types[read].column(read).type) is not None
    assert answered == dict.fromkeys(TYPES, 8)


@pytest.mark.parametrize(
    "text", ["A.n + 1 > 2", "A.n > 0.5", "abs(A.n) = 1", "A.n = A.y", "upper(A.g) = 'A'", "A.n / A.n > 1 OR A.n = 1"]
)
def test_what_may_be_an_error_is_not_harmless(text: str) -> None:
    kinds = {"n": pa.int64(), "y": pa.float64(), "g": pa.string()}
    node: Any = parse_condition(text)
    assert not harmless(node, lambda name: kinds[name])
    assert comparison_of(node, lambda name: kinds[name]) is None
