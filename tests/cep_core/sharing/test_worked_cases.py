"""The worked cases as batches: all queries are run together, and each has the rows that its case expects."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
import pytest

from tests.support.case_batches import CASES, case_batches, faults, of_any_time, plans_of, table_of, windows_of
from trendlake.cep_core import run_plans


@pytest.mark.parametrize("backwards", [False, True])
def test_each_has_the_rows_of_its_case(backwards: bool) -> None:
    compared = 0
    for batch in case_batches():
        table = table_of(batch)
        plans = plans_of(batch, table)
        windows = windows_of(batch, plans)
        order = list(range(len(plans)))[:: -1 if backwards else 1]
        answers = dict(run_plans([plans[i] for i in order], table, [windows[i] for i in order]))
        for place, number in enumerate(order):
            kind, case = batch.cases[number]
            answer = answers[place]
            assert isinstance(answer, pa.Table), (case.name, answer)
            assert faults(kind, case, answer, number, batch.shifts[number]) == [], case.name
            compared += 1
    assert compared == sum(map(of_any_time, chain.from_iterable(CASES.values())))
