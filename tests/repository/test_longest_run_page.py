"""docs/how-to/longest-run.md: its patterns give the rows that it shows, and the runs that a loop counts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from trendlake.cep_core import evaluate
from trendlake.cep_core.yaml.source import parse_yaml, plain
from trendlake.pipelines.authoring.scaffold import init_project
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import Project

PAGE = (ROOT / "docs" / "how-to" / "longest-run.md").read_text()
FILES = re.findall(r"^```yaml\n# (conf/patterns/\w+\.yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
RISES, RISE, LONGEST = (plain(parse_yaml(text, name).data) for name, text in FILES)
DAY = datetime(2026, 1, 1, tzinfo=UTC)
CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: source-readings
version: 1.0.0
name: readings
status: active
schema:
  - name: readings
    physicalType: table
    customProperties: [{property: eventType, value: Reading}]
    properties:
      - {name: id, logicalType: string, required: true, unique: true,
         customProperties: [{property: eventRole, value: event_id}]}
      - {name: at, logicalType: timestamp, required: true, customProperties: [{property: eventRole, value: event_time}]}
      - {name: machine, logicalType: string, required: true}
      - {name: celsius, logicalType: number}
"""


def readings(celsius: dict[str, list[float]]) -> pa.Table:
    """One reading an hour of each machine, from the start of the day."""
    rows = [
        {
            "event_id": f"{machine}-{hour}",
            "event_time": DAY + timedelta(hours=hour),
            "event_type": "Reading",
            "machine": machine,
            "celsius": float(value),
        }
        for machine, values in celsius.items()
        for hour, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows)


def rises(events: pa.Table) -> pa.Table:
    return evaluate(RISE, events)


def longest(rows: pa.Table) -> list[dict[str, Any]]:
    """The second pattern over the rows of the first, as events of type `rise`."""
    events = rows.append_column("event_type", pa.array(["rise"] * rows.num_rows, pa.string()))
    query = {key: value for key, value in LONGEST.items() if key != "source"}
    return evaluate(query, events, event_id="match_id", event_time="end").to_pylist()


def table(first_column: str, last_column: str) -> list[list[str]]:
    """The cells of the page's table with these columns."""
    lines = PAGE.splitlines()
    (start,) = [
        number
        for number, line in enumerate(lines)
        if line.startswith(f"| {first_column} |") and line.endswith(f" {last_column} |")
    ]
    body = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_the_page_shows_what_is_computed() -> None:
    celsius = table("machine", "celsius, one reading an hour from 00:00")
    events = readings({machine: [float(v) for v in values.split()] for machine, values in celsius})
    names = ("machine", "runs", "longest", "mean", "slowest", "three")
    of_a_day = sorted([str(row[name]) for name in names] for row in evaluate(RISES, events).to_pylist())
    assert of_a_day == table("machine", "three")
    rows = rises(events)
    shown = sorted(
        [row["machine"], f"{row['start']:%H:%M}", f"{row['end']:%H:%M}", str(row["rises"])] for row in rows.to_pylist()
    )
    assert shown == table("machine", "rises")
    actual = sorted([row["machine"], str(row["runs"]), str(int(row["longest"]))] for row in longest(rows))
    assert actual == table("machine", "longest")


def complete_runs(values: list[float]) -> list[int]:
    """The lengths of the maximal rises that begin and end inside the readings, by a loop."""
    lengths, length, begun = [], 0, False
    for before, value in pairwise(values):
        if value > before:
            length += 1
            continue
        if length and begun:
            lengths.append(length)
        length, begun = 0, True
    return lengths


@given(st.lists(st.integers(60, 64).map(float), min_size=1, max_size=20))
def test_runs_of_a_day_are_those_of_a_loop(values: list[float]) -> None:
    lengths = [1]
    for before, value in pairwise(values):
        lengths[-1:] = [lengths[-1] + 1] if value > before else [lengths[-1], 1]
    (row,) = evaluate(RISES, readings({"m": values})).to_pylist()
    assert (row["runs"], row["longest"], row["mean"]) == (len(lengths), max(lengths), sum(lengths) / len(lengths))


@given(st.lists(st.integers(60, 64).map(float), min_size=1, max_size=20))
def test_runs_are_those_of_a_loop(values: list[float]) -> None:
    rows = rises(readings({"m": values}))
    lengths = complete_runs(values)
    assert sorted(rows["rises"].to_pylist()) == sorted(lengths)
    (row,) = longest(rows) if lengths else ({"runs": 0, "longest": 0},)
    assert (int(row["runs"]), int(row["longest"])) == (len(lengths), max(lengths, default=0))


@pytest.mark.parametrize(("name", "text"), FILES, ids=[name for name, _ in FILES])
def test_the_files_compile_in_a_project(tmp_path: Path, name: str, text: str) -> None:
    init_project(tmp_path, ROOT / "data_contracts")
    (tmp_path / "data_contracts" / "readings.yaml").write_text(CONTRACT)
    for file, content in FILES:
        (tmp_path / file).write_text(content)
    pattern, plan = compiled(Project(tmp_path, tmp_path / ".trendlake"), tmp_path / name)
    assert pattern.name in name
    assert plan.warnings == ()
