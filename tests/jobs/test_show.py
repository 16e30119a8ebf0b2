"""What `show` and `runs` print after a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.flights import Flights, all_steps, flight
from trendlake.jobs.actions.show import Shown, print_results, print_runs
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import ProjectError, ToleranceError
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.runs.run import Run

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def place(shared_lake: Flights) -> tuple[Place, Run]:
    """Twelve legs of one aircraft and three of another, published; then a run that fails."""
    lake = shared_lake
    rows = [flight(n, f"2013-03-01T{6 + n:02d}:00:00", dep_delay=5.0 + n) for n in range(1, 13)]
    rows += [flight(50 + n, f"2013-03-02T{6 + n:02d}:00:00", carrier="AA", tailnum="N5AA") for n in range(1, 4)]
    lake.deliver(rows)
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-08", "shown")
    place = Place(lake.project, lake.profile)
    with pytest.raises(ProjectError, match="has no results yet"):
        print_results(place, lake.lake, lake.pattern(), Shown(5))
    all_steps(run)
    lake.deliver([flight(90 + n, "2013-03-05T10:00:00", arr_time=None) for n in range(9)], feed="broken")
    with pytest.raises(ToleranceError):
        all_steps(lake.run(lake.pattern(), "2013-03-01", "2013-03-08", "refused"))
    return place, run


def test_show_prints_the_busiest_first(place: tuple[Place, Run], capsys: pytest.CaptureFixture[str]) -> None:
    """Counts in full, the most trends first, and where the table lies."""
    where, run = place
    print_results(where, run.lake, str(where.project.state / "patterns" / "test_pattern.yaml"), Shown(5))
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if "2013-03-0" in line]
    assert len(rows) == 2
    assert "4,095" in rows[0]
    assert "AA" in rows[1]
    assert lines[-1] == where.warehouse.results("test_pattern")


def test_runs_prints_every_stage_and_errors(place: tuple[Place, Run], capsys: pytest.CaptureFixture[str]) -> None:
    """One line a stage, the newest first; what failed says why."""
    where, run = place
    print_runs(where, run.lake, "test_pattern", 10)
    printed = capsys.readouterr().out
    stages = [
        line for line in printed.splitlines() if "test_pattern" in line and ("succeeded" in line or "failed" in line)
    ]
    assert len(stages) == 5
    assert "failed" in stages[0]
    assert "refused check_source: [TOLERANCE] 9 of 24 rows of 'flights' break its contract" in printed
    print_runs(where, run.lake, "another", 10)
    assert "test_pattern" not in capsys.readouterr().out


def test_as_json(place: tuple[Place, Run], capsys: pytest.CaptureFixture[str]) -> None:
    """The same for programs: numbers with all their digits, times in UTC, checks as they are."""
    where, run = place
    pattern = str(where.project.state / "patterns" / "test_pattern.yaml")
    shown = parsed(print_results(where, run.lake, pattern, Shown(1), as_json=True))
    assert (shown["rows_in_all"], shown["stale_rows"], shown["rows"][0]["snowballs"]) == (2, 0, 4095)
    assert shown["rows"][0]["window_start"] == "2013-03-01T00:00:00Z"
    records = parsed(print_runs(where, run.lake, "test_pattern", 10, as_json=True))["records"]
    assert [record["status"] for record in records] == ["failed", *["succeeded"] * 4]
    assert records[1]["note"]["source_version"] == records[-1]["source_version"]
    assert {item["check"] for item in records[-1]["checks"]} > {"contract", "quarantine_tolerance"}
    mine = parsed(of_record(run.records["check_source"]))
    assert mine == {name: records[-1][name] for name in mine}  # a stage tells of itself what its record does
    assert print_runs(where, run.lake, "another", 10, as_json=True) == {"records": []}
    assert capsys.readouterr().out == ""


def parsed(document: Any) -> Any:
    return json.loads(json_text(document, None))


def test_a_step_is_told_in_a_line(place: tuple[Place, Run], capsys: pytest.CaptureFixture[str]) -> None:
    _where, run = place
    workspace.run_step("publish", run)
    assert "version 2: 0 inserted, 0 updated, 0 deleted" in capsys.readouterr().out
