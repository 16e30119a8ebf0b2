"""Streams are sets: equal events are one. Where the events' ids tell all rows apart none are looked for, and where they
do not, equal rows become one."""

from __future__ import annotations

from collections import Counter
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import compile_query, evaluate
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.compile.pruning import sets
from trendlake.cep_core.algebra.kernels.rows import all_different
from trendlake.cep_core.events.schema import schema_of

NEXT = "SELECT event_id_1 AS first, event_id AS next FROM A NEXT{$1.k = $2.k} A"
QUERIES = {
    "FROM A": True,
    "SELECT k FROM A": False,
    "SELECT event_id FROM FILTER{k > 0}(A)": True,
    NEXT: True,
    "SELECT event_id_1 AS first FROM A NEXT{$1.k = $2.k} A": False,
    "SELECT event_id AS next, k_1 AS k FROM A NEXT A": False,
    "SELECT event_id_1 AS first, event_id AS next FROM A FOLD{,,} A": False,
    "FROM (SELECT event_id FROM A) UNION (SELECT event_id FROM A)": False,
}
"""Whether ids that differ tell all rows apart."""


def events(ids: list[Any], k: list[int] | None = None) -> pa.Table:
    n = len(ids)
    times = pa.array([crc32(repr(one).encode()) % 7 for one in ids], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"event_id": ids, "event_type": ["A"] * n, "event_time": times, "k": k or [0] * n})


def query(pattern: str) -> dict[str, Any]:
    return {"kind": "algebra", "pattern": pattern, "within": "1 minute"}


def rows(pattern: str, table: pa.Table) -> Counter[str]:
    return Counter(map(repr, evaluate(query(pattern), table).to_pylist()))


@pytest.mark.parametrize("pattern", QUERIES)
def test_what_ids_tell_apart(pattern: str) -> None:
    plan = compile_query(query(pattern), schema_of(events(["a"])))
    assert isinstance(plan, AlgebraPlan)
    assert sets(plan.nodes, "event_id")[-1] == QUERIES[pattern]


@pytest.mark.parametrize("pattern", QUERIES)
@pytest.mark.parametrize(
    "ids",
    [[1, 2, 3, 4], [4, 3, 2, 1], [-(2**62), 5, 2**62, 0], ["b", "a", "d", "c"], [1, None, 3, None]],
    ids=["ascending", "descending", "far apart", "texts", "without"],
)
def test_events_delivered_again_are_no_other_events(pattern: str, ids: list[Any]) -> None:
    once = events(ids, [0, 1, 0, 1])
    again = pa.concat_tables([once, once.slice(1)]).combine_chunks()
    expected = rows(pattern, once)
    assert set(expected.values()) == {1}
    assert rows(pattern, again) == expected


@pytest.mark.random
@examples(200)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 12), max_size=9))
def test_all_different(values: list[int]) -> None:
    """Never said of values of which two are equal; always of those that ascend, or lie close together."""
    different = len(set(values)) == len(values)
    said = all_different(np.array(values, np.int64))
    assert different or not said
    near = bool(values) and max(values) - min(values) < 4 * len(values)
    if different and (near or values == sorted(values)):
        assert said
