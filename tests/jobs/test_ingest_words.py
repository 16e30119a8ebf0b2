"""What `trendlake ingest` says of a delivery: rows that are new, replaced, there already, and those that are broken."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.actions.ingest import describe
from pipelines.ingest.deliver import Taken
from pipelines.quality.quarantine_counts import Broken

CASES = [
    (Taken(5, new=5), "5 rows: 5 new"),
    (Taken(1, there=1), "1 row: 1 there already"),
    (Taken(6, new=1, replaced=4, older=1), "6 rows: 1 new, 4 replaced, 1 older than the existing row"),
    (Taken(5, new=5, broken=Broken(Counter(price_range=5))), "5 rows: 5 new; 5 quarantined (price_range)"),
    (
        Taken(3_049, new=50, there=2_999, broken=Broken(Counter(price_range=2, id_required=1))),
        "3,049 rows: 50 new, 2,999 there already; 3 quarantined (price_range 2, id_required 1)",
    ),
]


@pytest.mark.parametrize(("taken", "said"), CASES)
def test_each_row_of_a_delivery_is_accounted_for(taken: Taken, said: str) -> None:
    assert describe(taken) == said


def test_a_delivery_that_was_ingested_before_is_named() -> None:
    assert describe(Taken(5, there=5, again=True)).startswith("5 rows  (there already")
