"""docs/how-to/time-in-state.md: its patterns give the rows that it shows, and what loops over states find."""

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
from tests.random.profile import examples
from trendlake.cep_core import evaluate
from trendlake.cep_core.yaml.source import parse_yaml, plain
from trendlake.pipelines.authoring.scaffold import init_project
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import Project

PAGE = (ROOT / "docs" / "how-to" / "time-in-state.md").read_text()
FILES = re.findall(r"^```yaml\n# (conf/patterns/\w+\.yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
STATES, RUNNING, HOURS, OVERLAPS = (plain(parse_yaml(text, name).data) for name, text in FILES)
DAY = datetime(2026, 5, 4, tzinfo=UTC)
HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: source-{name}
version: 1.0.0
name: {name}
status: active
schema:
  - name: {name}
    physicalType: table
    customProperties: [{type}]
    properties:
      - {{name: id, logicalType: string, required: true, unique: true,
         customProperties: [{{property: eventRole, value: event_id}}]}}
      - {{name: at, logicalType: timestamp, required: true,
         customProperties: [{{property: eventRole, value: event_time}}]}}
      - {{name: line, logicalType: string, required: true}}
"""
STARTED = "      - {name: started_at, logicalType: timestamp, required: true}\n"
STATE = "      - {name: state, logicalType: string, required: true}\n"
KIND = """\
      - {name: kind, logicalType: string, required: true, customProperties: [{property: eventRole, value: event_type}],
         quality: [{metric: invalidValues, arguments: {validValues: [Alarm, Maintenance]}, mustBe: 0}]}
"""
CONTRACTS = {
    "changes": HEAD.format(name="changes", type="{property: eventType, value: Change}") + STATE,
    "machine_states": HEAD.format(name="machine_states", type="{property: eventType, value: State}") + STARTED + STATE,
    "line_events": HEAD.format(name="line_events", type="") + STARTED + KIND,
}


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


def asked(query: dict[str, Any], events: pa.Table, **roles: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = evaluate(
        {k: v for k, v in query.items() if k != "source"}, events, **roles
    ).to_pylist()
    return rows


def events_of(kinds: list[str], times: list[datetime], **columns: list[Any]) -> pa.Table:
    stamp = pa.timestamp("us", "UTC")
    known = {"event_id": [f"e{n}" for n in range(len(times))], "event_type": kinds, **columns}
    typed = {name: pa.array(cells, stamp if name == "started_at" else pa.string()) for name, cells in known.items()}
    return pa.table({**typed, "event_time": pa.array(times, stamp)})


def running(changes: pa.Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the first pattern; and of the second over them, as events of type `states`."""
    query = {key: value for key, value in STATES.items() if key != "source"}
    rows = evaluate(query, changes)
    states = rows.append_column("event_type", pa.array(["states"] * rows.num_rows, pa.string()))
    return rows.to_pylist(), asked(RUNNING, states, event_id="match_id", event_time="end")


def moment(cell: str) -> datetime:
    return datetime.fromisoformat(cell).replace(tzinfo=UTC)


def test_the_page_shows_the_time_in_each_shift() -> None:
    at, lines, states = (list(cells) for cells in zip(*table("at", "state")[:4], strict=True))
    changes = events_of(["Change"] * len(at), [moment(cell) for cell in at], line=lines, state=states)
    rows, shifts = running(changes)
    shown = [[f"{row['start']:%F %H:%M}", f"{row['end']:%F %H:%M}", row["line"], row["state"]] for row in rows]
    assert sorted(shown) == table("start", "state")
    lasted = [
        [row["line"], f"{row['window_start']:%F %H:%M}", str(timedelta(microseconds=row["running"]))] for row in shifts
    ]
    assert sorted(lasted) == table("line", "running")


@examples(60)
@given(st.lists(st.tuples(st.integers(1, 1500), st.sampled_from(("run", "stop"))), min_size=2, max_size=8))
def test_the_time_in_each_shift_is_that_of_a_loop(changes: list[tuple[int, str]]) -> None:
    """Minute by minute."""
    times = [DAY + timedelta(minutes=sum(gap for gap, _ in changes[: n + 1])) for n in range(len(changes))]
    states = [state for _, state in changes]
    wanted: dict[datetime, int] = {}
    for (start, state), (end, _) in pairwise(zip(times, states, strict=True)):
        for minute in range((end - start) // timedelta(minutes=1) if state == "run" else 0):
            at = start + timedelta(minutes=minute) - timedelta(hours=7)
            shift = DAY + (at - DAY) // timedelta(hours=12) * timedelta(hours=12) + timedelta(hours=7)
            wanted[shift] = wanted.get(shift, 0) + 60_000_000
    _, shifts = running(events_of(["Change"] * len(times), times, line=["l"] * len(times), state=states))
    assert {row["window_start"]: row["running"] for row in shifts} == wanted


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000)), min_size=1, max_size=5))
def test_the_days_of_new_york(spans: list[tuple[int, int]]) -> None:
    """All days together are the whole time, but for days of less than a minute."""
    start = datetime(2026, 3, 7, tzinfo=UTC)
    begins = [start + timedelta(minutes=begin) for begin, _ in spans]
    ends = [start + timedelta(minutes=begin + length) for begin, length in spans]
    many = len(spans)
    events = events_of(["State"] * many, ends, started_at=begins, line=["l"] * many, state=["run"] * many)
    rows = asked(HOURS, events)
    assert sum(row["lasted"] for row in rows) == 60_000_000 * sum(length for _, length in spans)
    assert all(row["longest"] <= 24 * 3_600_000_000 for row in rows)
    assert {(row["window_end"] - row["window_start"]) // timedelta(hours=1) for row in rows} <= {23, 24}


def overlaps(spans: list[tuple[str, int, int]]) -> list[tuple[str, str, datetime, datetime]]:
    """Of (type, begin, end) in minutes: the pairs by the pattern of the page."""
    kinds, begins, ends = (list(cells) for cells in zip(*spans, strict=True))
    times = [[DAY + timedelta(minutes=minute) for minute in minutes] for minutes in (begins, ends)]
    events = events_of(kinds, times[1], started_at=times[0], line=["l"] * len(spans))
    events = events.rename_columns({"event_type": "kind", "event_time": "at"})
    rows = asked(OVERLAPS, events, event_type="kind", event_time="at")
    return [(row["first"], row["last"], row["began"], row["ended"]) for row in rows]


def test_the_page_shows_the_pairs_that_overlap() -> None:
    given_events = table("id", "at")
    names = {f"e{n}": row[0] for n, row in enumerate(given_events)}
    minutes = [[60 * int(cell[:2]) + int(cell[3:]) for cell in row[2:]] for row in given_events]
    rows = overlaps([(row[1], *times) for row, times in zip(given_events, minutes, strict=True)])
    shown = [[names[first], names[last], f"{a:%H:%M}", f"{b:%H:%M}"] for first, last, a, b in rows]
    assert sorted(shown) == table("first", "ended")


@examples(200)
@given(
    st.lists(
        st.tuples(st.sampled_from(("Alarm", "Maintenance")), st.integers(0, 12), st.integers(0, 6)),
        min_size=1,
        max_size=8,
    )
)
def test_pairs_that_overlap_are_those_of_a_loop(drawn: list[tuple[str, int, int]]) -> None:
    """Each pair of one alarm and one maintenance that share time, also where both end at one moment."""
    spans = [(kind, begin, begin + length) for kind, begin, length in drawn]
    wanted = {
        (frozenset((f"e{i}", f"e{j}")), DAY + timedelta(minutes=begin), DAY + timedelta(minutes=end))
        for i, one in enumerate(spans)
        for j, other in enumerate(spans)
        if one[0] == "Alarm" and other[0] == "Maintenance"
        if (begin := max(one[1], other[1])) < (end := min(one[2], other[2]))
    }
    rows = overlaps(spans)
    assert {(frozenset((first, last)), began, ended) for first, last, began, ended in rows} == wanted
    assert len(rows) == len(wanted)


@pytest.mark.parametrize(("name", "text"), FILES, ids=[name for name, _ in FILES])
def test_the_files_compile_in_a_project(tmp_path: Path, name: str, text: str) -> None:
    init_project(tmp_path, ROOT / "data_contracts")
    for source, contract in CONTRACTS.items():
        (tmp_path / "data_contracts" / f"{source}.yaml").write_text(contract)
    for file, content in FILES:
        (tmp_path / file).write_text(content)
    pattern, plan = compiled(Project(tmp_path, tmp_path / ".trendlake"), tmp_path / name)
    assert pattern.name in name
    assert plan.warnings == ()
