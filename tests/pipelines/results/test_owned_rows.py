"""Which rows of a table belong to a run's windows, where forms of other kinds have written to it too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.pipelines.results.test_coverage import QUERIES, SCHEMA, compiled
from trendlake.cep_core import EventSchema
from trendlake.pipelines.results.owned_rows import OwnedRows

DAY = 86_400_000_000
TIMES = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("names", [("start", "end"), ("Start", "END")])
def test_groups_called_like_the_times_of_another_kind(names: tuple[str, str]) -> None:
    """A row of the present form is of its own window, whatever times it is grouped by, and however they are written: it
    is no row of another kind that ends there."""
    schema = EventSchema(dict(SCHEMA.columns) | dict.fromkeys(names, "timestamp"))
    plan = compiled(QUERIES["sliding"] | {"group_by": list(names), "where": [f"[{', '.join(names)}]"]}, schema)
    assert set(names) <= set(plan.result_schema.names)
    rows = pa.table(
        {
            "start": pa.array([0, 0, 0], TIMES),
            "end": pa.array([DAY // 2, DAY // 2, DAY // 2], TIMES),
            "window_start": pa.array([5 * DAY, DAY // 2, None], TIMES),
            "window_end": pa.array([6 * DAY, DAY, None], TIMES),
        }
    )
    owned = OwnedRows.of(plan, plan.windows.ending_in(0, DAY), rows.column_names)
    assert owned.arrow(rows).to_pylist() == [False, True, True]
