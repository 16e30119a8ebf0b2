"""Tables of results stay readable where no terminal says how wide it is."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from rich.console import Console

from tests.conftest import ROOT
from trendlake.cep_core import AnyPlan
from trendlake.jobs.actions.show import changes_of, write_rows
from trendlake.jobs.terminal.printing import table_of
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import Project

IDS = [f"LGA-2013-12-29T{hour:02}:00:00Z" for hour in range(5)]


@pytest.fixture(scope="module")
def plan() -> AnyPlan:
    return compiled(Project(ROOT, ROOT / ".trendlake"), ROOT / "examples/flights/three_legs_later.yaml")[1]


def _value(field: pa.Field) -> object:
    if pa.types.is_timestamp(field.type):
        return datetime(2013, 12, 29, 9, 30, tzinfo=UTC)
    if pa.types.is_list(field.type):
        return IDS
    return 7 if pa.types.is_integer(field.type) else "LGA"


def test_times_stay_on_one_line_and_every_id_can_be_told_apart(plan: AnyPlan) -> None:
    row = {field.name: _value(field) for field in plan.result_schema}
    console = Console(width=100, record=True, file=StringIO())
    console.print(table_of(plan, "three_legs_later: the latest of 1 row", [row]))
    _, _, header, *lines = console.export_text().splitlines()  # names of columns take two lines
    assert lines[0].count("2013-12-29 09:30") == 2
    first, second = header.index(" a ") + 1, header.index(" b ") + 1
    ids = "".join(line[first:second].strip() for line in lines)
    assert ids == "".join(f"LGA-2013-1…0{hour}:00:00Z" for hour in range(5))


def test_a_spreadsheet_runs_no_cell_of_a_csv_file(tmp_path: Path) -> None:
    """Texts of the data as `quarantine show --out` writes them; a list is JSON; a number keeps its sign."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    rows = pa.table(
        {
            "=place": ["=cmd|'/c calc'!A1", "'tis", None, ""],
            "n": pa.array([Decimal(-1), Decimal(10**30), None, Decimal(0)], pa.decimal128(38, 0)),
            "e": pa.array([["=1", "b"], [], None, [None]], pa.list_(pa.string())),
            "times": pa.array([[at], [], None, [None]], pa.list_(pa.timestamp("us", "UTC"))),
        }
    )
    write_rows(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        header, *cells = csv.reader(file)
    assert header == ["'=place", "n", "e", "times"]
    assert cells == [
        ["'=cmd|'/c calc'!A1", "-1", '["=1", "b"]', '["2026-01-05T00:00:00Z"]'],
        ["''tis", "1" + "0" * 30, "[]", "[]"],
        ["", "", "", ""],
        ["'", "0", "[null]", "[null]"],
    ]
    write_rows(rows, tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("counts", "text"),
    [((1_200, 3, 0), "1,200 / 3 / 0"), ((1_200, 0, None), "1,200 / 0 / -"), ((None, None, None), "")],
    ids=["published", "delivered", "neither"],
)
def test_changes_of_a_run_record(counts: tuple[int | None, ...], text: str) -> None:
    """A delivery counts no deleted rows."""
    names = ("rows_inserted", "rows_updated", "rows_deleted")
    assert changes_of(dict(zip(names, counts, strict=True))) == text
