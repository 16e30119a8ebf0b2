"""The worked cases of kind algebra, over the sets by definition and the kernels: where prose and a case disagree, the
case wins."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.reference.algebra import reference
from tests.support.intervals import Case, load, plain, table_of
from trendlake.cep_core import compile_query, evaluate, run_plan
from trendlake.cep_core.events.schema import schema_of

Rows = Sequence[Mapping[str, Any]]


def kernels(query: Mapping[str, Any], rows: Rows) -> list[dict[str, Any]]:
    """`cep_core.algebra.run.run`, over the rows in another order."""
    shuffled = random.Random(1).sample(list(rows), len(rows))
    return plain(evaluate(query, table_of(shuffled)))


ENGINES: dict[str, Callable[[Mapping[str, Any], Rows], list[dict[str, Any]]]] = {
    "reference": reference,
    "kernels": kernels,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
def test_case(engine: str, case: Case) -> None:
    """The set of rows is the expected one, exactly, and no row comes twice."""
    rows: Rows = case.rows
    for upstream in case.upstream:
        name = upstream["name"]
        asked = {key: value for key, value in upstream.items() if key != "name"}
        rows = [
            {**row, "id": f"{name} {number}", "type": name, "time": row["end"] / 1e6, "start": row["start"] / 1e6}
            for number, row in enumerate(ENGINES[engine](asked, rows))
        ]
        rows = [{key: value for key, value in row.items() if key != "end"} for row in rows]
    query = {"interval_start": "start", **case.query} if case.upstream else case.query
    actual = ENGINES[engine](query, rows)
    assert sorted(actual, key=str) == sorted(case.expect, key=str)


@pytest.mark.parametrize("case", [case for case in load() if not case.upstream], ids=lambda case: case.name)
def test_case_pane_by_pane(case: Case) -> None:
    """Each pane by itself, with its reach: together they are all rows."""
    table = table_of(case.rows)
    plan = compile_query(case.query, schema_of(table))
    held = [plan.windows.holding(int(row["time"] * 1_000_000)) for row in case.rows]
    panes = range(min(one[0] for one in held), max(one[-1] for one in held) + 1)
    actual = [row for j in panes for row in plain(run_plan(plan, table, range(j, j + 1)))]
    assert sorted(actual, key=str) == sorted(case.expect, key=str)
