"""Tables of results stay readable where no terminal says how wide it is."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

from cep_core import AnyPlan
from jobs.terminal.printing import table_of
from pipelines.authoring.validate import compiled
from pipelines.project.paths import Project
from tests.conftest import ROOT

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
