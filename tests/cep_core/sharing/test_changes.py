"""An event that a plan cannot bind changes none of its rows, whoever else is asked about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.batches import Batch, alone, batches
from tests.random.profile import examples
from trendlake.cep_core import compile_query
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.sharing.changes import bindable


@pytest.mark.random
@pytest.mark.more_in_chaos
@examples(50)
@given(batches(), st.randoms(use_true_random=False))
def test_events_that_are_not_bound_may_come_and_go(batch: Batch, chance: Any) -> None:
    """Some of them are left out, which is what a change of the source does."""
    ids = batch.table["event_id"].to_pylist()
    if None in ids or len(set(ids)) < len(ids):
        return
    together = bindable(batch.plans, Columns(batch.table), unique_ids=True)
    for number, plan in enumerate(batch.plans):
        (rows,) = bindable([plan], Columns(batch.table), unique_ids=True)
        assert rows.tolist() == together[number].tolist()
        others = np.setdiff1d(np.arange(batch.table.num_rows), rows)
        gone = [row for row in others.tolist() if chance.random() < 0.5]
        left = batch.table.take(pa.array(np.setdiff1d(np.arange(batch.table.num_rows), gone)))
        # a table without events has no latest one, by which a watermark would be told
        moved = replace(batch, watermark=batch.watermark or 12_000_000)
        assert alone(replace(moved, table=left), number) == alone(moved, number)


def test_images_of_a_correction_share_their_id() -> None:
    """Known constants decide, although an event is there as it was and as it is."""
    events = pa.table(
        {
            "event_id": ["e1", "e1", "e2", "e2"],
            "event_type": ["A"] * 4,
            "company": ["x", "y", "z", "z"],
            "event_time": pa.array([1, 1, 2, 2], pa.timestamp("us", tz="UTC")),
        }
    )
    query = {"kind": "matches", "pattern": "SEQ(A a, A b)", "within": "1 hour"}
    plans = [compile_query({**query, "where": [f"a.company = '{c}'", "[company]"]}, schema_of(events)) for c in "yzv"]
    assert [rows.tolist() for rows in bindable(plans[:1], Columns(events), unique_ids=True)] == [[0, 1, 2, 3]]
    selective = [
        compile_query({**query, "where": [f"a.company = '{c}'", f"b.company = '{c}'"]}, schema_of(events)) for c in "yv"
    ]
    assert [rows.tolist() for rows in bindable(selective, Columns(events), unique_ids=True)] == [[1], []]
    assert [rows.tolist() for rows in bindable(selective, Columns(events), unique_ids=False)] == [[0, 1, 2, 3]] * 2
