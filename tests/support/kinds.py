"""Patterns of kinds matches, automaton, algebra and match_recognize over the tests' flights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.flights import Flights
from tests.support.reading import stored
from trendlake.pipelines.report.build import build_report, read_facts
from trendlake.pipelines.report.facts import ReportFacts
from trendlake.pipelines.runs.run import Run

LATER = """\
name: three_legs_later
kind: matches
description: For the tests.
source: flights
pattern: SEQ(Flight a, Flight b+, Flight c)
where:
  - "[tailnum]"
  - b[1].dep_delay > a.dep_delay
  - b[i].dep_delay > b[i-1].dep_delay
  - c.dep_delay > b[b.LEN].dep_delay
return: {gain: c.dep_delay - a.dep_delay, legs: COUNT(b)}
select: skip_till_any_match
within: 12 hours
"""
PAIRS = """\
name: pairs
kind: matches
description: For the tests.
source: flights
pattern: SEQ(Flight a, Flight b)
where: ["[tailnum]"]
output: non_overlap
within: 1 day
"""
GROUNDED = """\
name: grounded
kind: automaton
description: For the tests.
source: flights
register: {worst: {type: double, init: null}, never: {type: double, init: null}}
start: q0
final: [grounded]
arcs:
  - {from: q0, to: late, when: "e.dep_delay >= 60", set: {worst: e.dep_delay}}
  - {from: late, to: grounded, at: window_end}
partition_by: [tailnum]
within: 6 hours
"""
LEGS = """\
name: later_legs
kind: algebra
description: For the tests.
source: flights
partition_by: [tailnum]
pattern: |
  SELECT event_id_1 AS window_start, event_id AS match_id, dep_delay - first AS gain, legs
  FROM (SELECT *, dep_delay AS first, 1 AS legs FROM Flight)
    FOLD{, $2.dep_delay > $.dep_delay, $.legs + 1 AS legs} Flight
within: 12 hours
"""
"""Its attributes have names that are other things in the tables of other kinds."""
RISES = """\
name: rises
kind: match_recognize
description: For the tests.
source: flights
pattern: |
  FROM flights MATCH_RECOGNIZE (
    PARTITION BY Tailnum ORDER BY event_time
    MEASURES COUNT(*) AS legs, LAST(up.dep_delay) - low.dep_delay AS gain
    PATTERN (low up+) DEFINE up AS dep_delay > PREV(dep_delay))
"""


def pattern_file(lake: Flights, text: str) -> str:
    """The pattern as a file of the test's own; its path."""
    name = text.split("\n")[0].removeprefix("name: ")
    path = Path(lake.project.state) / "patterns" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def published(lake: Flights, run: Run) -> list[dict[str, Any]]:
    """The result columns of the published rows, in some order that stays."""
    table = stored(lake.warehouse.results(run.name), run.plan.result_schema.names)
    return sorted(table.to_pylist(), key=str)


def facts_of(lake: Flights, run: Run, folder: Path) -> ReportFacts:
    """What the report of a run knows; its page is written too."""
    path = Path(lake.project.state) / "patterns" / f"{run.name}.yaml"
    paths = build_report(lake.lake, path, run.run_id, folder, run.plan)
    assert "<h2" in paths.html.read_text()
    assert paths.png.stat().st_size > 1000
    return read_facts(lake.lake, path, run.run_id, run.plan)
