"""The order and the ids of the events of several tables, however the rows of the tables are mixed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.support.several_tables import Case, load
from trendlake.cep_core import compile_query
from trendlake.cep_core.events.tables import (
    EVENT_ID,
    EVENT_SOURCE,
    EVENT_TIME,
    ID_ORDER,
    ORDER,
    UNPLACED,
    id_column,
    order_column,
)
from trendlake.cep_core.events.union import UnitedColumns, united

CASES = [case for case in load() if not case.error and "sources" in case.query and len(case.rows) > 1]


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.PatternWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_mixed_rows_have_the_same_ids_and_places(case: Case) -> None:
    """Spark's workers are sent the rows of all tables in any order; `united` puts those of a table side by side."""
    schema = compile_query(case.query, case.schemas()).schema
    tables = schema.tables
    assert tables is not None
    names = [EVENT_TIME, *(column.name for column in tables.columns)]
    names += [id_column(table.name) for table in tables.tables]
    names += [order_column(table.name) for table in tables.tables if table.sequence is not None]
    whole = united(case.tables, tables, [*names, schema.event_type, EVENT_SOURCE])
    asked = [EVENT_ID, ORDER, ID_ORDER, UNPLACED]
    together = UnitedColumns(whole, tables)
    expected = {name: together.raw(name).to_pylist() for name in asked}
    rng = np.random.default_rng(len(case.name))
    for _ in range(3):
        rows = rng.permutation(whole.num_rows)
        mixed = UnitedColumns(whole.take(pa.array(rows)), tables)
        for name in asked:
            assert mixed.raw(name).to_pylist() == [expected[name][row] for row in rows], name


def test_there_are_cases_of_all_sorts() -> None:
    assert len(CASES) > 40
