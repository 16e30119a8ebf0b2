"""A delivery beside the rows of its table: the vectorised comparison against one row after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.floats import NANS
from tests.random.profile import CI
from trendlake.pipelines.errors import DeliveryError
from trendlake.pipelines.ingest.compare import compare, without_repeats

pytestmark = pytest.mark.random

Row = tuple[Any, ...]
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.int32()), ("v", pa.float64()), ("seq", pa.int64())])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([None, 1]),
        st.sampled_from([None, 0.0, -0.0, *NANS[:2], 1.0, -1.0]),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=6,
)


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.names)}, SCHEMA)


def fine(row: Row) -> bool:
    """The rule of rows: a value of -1 breaks it."""
    return row[2] != -1.0


def good(rows: pa.Table) -> Any:
    return np.array([fine(tuple(row.values())) for row in rows.to_pylist()], np.bool_)


def content(row: Row) -> Row:
    v = row[2]
    return (row[0], row[1], "nan" if v is not None and v != v else None if v is None else v + 0.0, row[3])


def key_of(row: Row, key: Sequence[str]) -> Row:
    values = tuple(row[SCHEMA.names.index(name)] for name in key)
    return ("whole", *content(row)) if values == (None,) else values


def rank(row: Row, sequence: str | None) -> int:
    return 0 if sequence is None else -1 if row[3] is None else row[3]


def expected(delivery: list[Row], there: list[Row], key: Sequence[str], sequence: str | None) -> Any:
    """(new, corrections, there, older); None where the delivery contradicts itself."""
    groups: dict[Row, list[Row]] = {}
    for row in delivery:
        groups.setdefault(key_of(row, key), []).append(row)
    new, corrections, passed, older = [], [], 0, 0
    for name, rows in groups.items():
        highest = max(rank(row, sequence) for row in rows)
        top = [row for row in rows if rank(row, sequence) == highest]
        if len({content(row) for row in top}) > 1:
            return None
        if len({content(row) for row in rows}) > 1 and not all(map(fine, rows)):
            return None
        row, passed, older = top[0], passed + len(top) - 1, older + len(rows) - len(top)
        known = [one for one in there if key_of(one, key) == name]
        stand = [one for one in known if fine(one)]
        highest = max((rank(one, sequence) for one in stand), default=-2)
        stand = [one for one in stand if rank(one, sequence) == highest]
        counts = stand if fine(row) else known  # a broken row beside a good one is there once it is there
        same = [content(one) == content(row) for one in counts]
        if not known:
            new.append(row)
        elif same and (all(same) if fine(row) else any(same)):
            passed += 1
        elif fine(row) and rank(row, sequence) < highest:
            older += 1
        elif not fine(row) and stand:
            new.append(row)
        else:
            corrections.append(row)
    return sorted(map(content, new), key=repr), sorted(map(content, corrections), key=repr), passed, older


@CI
@given(
    delivery=ROWS, there=ROWS, key=st.sampled_from([("id",), ("id", "part")]), sequence=st.sampled_from([None, "seq"])
)
def test_a_delivery_is_compared_row_by_row(
    delivery: list[Row], there: list[Row], key: tuple[str, ...], sequence: str | None
) -> None:
    """Keys that are NULL, repeated in the delivery or in the table, rows that break the contract, zeros, NaN."""
    wanted = expected(delivery, there, key, sequence)
    try:
        rows, repeats, lower = without_repeats(table(delivery), key, sequence, good)
    except DeliveryError:
        assert wanted is None
        return
    assert wanted is not None
    names = {key_of(row, key) for row in delivery}
    sharing = [row for row in there if key_of(row, key) in names or row[0] is None]
    compared = compare(rows, table(sharing), key, sequence, good)
    new, corrections = (
        sorted((content(tuple(row.values())) for row in part.to_pylist()), key=repr)
        for part in (compared.new, compared.corrections)
    )
    assert (new, corrections, compared.there + repeats, compared.older + lower) == wanted


def test_rows_that_differ_are_named_with_their_places() -> None:
    """Rows are counted from 1; a key of several columns is shown whole."""
    rows = table([("a", 1, 1.0, 1), ("b", 1, 1.0, 1), ("a", 1, 2.0, 1), ("b", 1, 1.0, 1)])
    with pytest.raises(DeliveryError, match=r"1 keys? .*id, part \(a, 1\) in rows 1, 3; nothing was written"):
        without_repeats(rows, ("id", "part"), None, good)
