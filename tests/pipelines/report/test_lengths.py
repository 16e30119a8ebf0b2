"""Durations of results as people read them; files, `--json` and tables of Delta keep microseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from trendlake.cep_core import AnyPlan, EventSchema, compile_query
from trendlake.jobs.terminal.rows import table_of
from trendlake.pipelines.report.amounts import Amount, length, text
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.site.read_changes import cell

SCHEMA = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string", "n": "bigint"})
LASTED = 10_140_000_000
MOMENT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def plan_of(**keys: Any) -> AnyPlan:
    text = "SELECT n_1 AS n, DUR AS lasted, DUR + 1 second AS more FROM R NEXT{$2.n > 0} R"
    return compile_query({"kind": "algebra", "pattern": text, "within": "1 day", **keys}, SCHEMA)


@pytest.fixture(name="plan", params=["alone", "in a family"])
def _plan(request: pytest.FixtureRequest) -> AnyPlan:
    if request.param == "alone":
        return plan_of()
    text = "SELECT n_1 AS n, DUR AS lasted, DUR + 1 second AS more FROM R NEXT{$2.n > $least} R"
    return plan_of(pattern=text, for_each={"least": [1, 2]})


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (LASTED, "2:49:00"),
        (0, "0:00:00"),
        (1_500_000, "0:00:01.5"),
        (1, "0:00:00.000001"),
        (-60_000_000, "-0:01:00"),
        (3 * 86_400_000_000 + LASTED, "3 days 2:49:00"),
        (2**63 - 1, "106751991 days 4:00:54.775807"),
    ],
)
def test_a_length_is_a_clock(micros: int, shown: str) -> None:
    assert length(micros) == shown


def test_a_plan_says_which_columns_are_durations(plan: AnyPlan) -> None:
    """Those of the language's durations, and of no other whole number."""
    assert plan.result_shape.durations == ("lasted", "more")
    assert {plan.result_schema.field(name).type for name in ("n", "lasted", "more")} == {pa.int64()}


def test_tables_on_a_terminal_show_durations_as_clocks(plan: AnyPlan) -> None:
    row = dict.fromkeys(plan.result_schema.names, LASTED) | {"start": MOMENT, "end": MOMENT, "more": None}
    console = Console(width=200, record=True, file=StringIO())
    console.print(table_of(plan, "", [row]))
    assert "2:49:00" in console.export_text(clear=False)
    assert console.export_text().count("10,140,000,000") == ("least" in row) + 1


def test_pages_show_durations_as_clocks(plan: AnyPlan) -> None:
    """A run's longest rows, and what a commit changed."""
    cells = Cells.of(plan, ())
    amounts = [cells.amount(name, value) for name, value in (("n", LASTED), ("lasted", LASTED), ("more", None))]
    assert [text(amount) for amount in amounts if isinstance(amount, Amount)] == ["10,140,000,000", "2:49:00", "–"]
    assert cell({"lasted": LASTED}, "lasted", plan) == "2:49:00"
    assert cell({"n": LASTED}, "n", plan) == "10,140,000,000"
