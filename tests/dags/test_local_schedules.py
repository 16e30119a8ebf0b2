"""Schedules in a pattern's time zone: the data intervals of Airflow's own timetable own every local day once."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.dags.conftest import PARSE, AirflowCommand
from trendlake.cep_core.events.windows import CalendarWindows
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.pipelines.errors import BadTimeError
from trendlake.pipelines.runs.intervals import LocalTimes, refuse_empty

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.long]

LOCAL = "local_snowball"
ZONES = {"America/New_York": 2013, "Pacific/Apia": 2011, "Australia/Lord_Howe": 2026}
SCRIPT = """
import json, sys
import pendulum
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from trendlake_bundle import PatternsBundle
zones, folder, patterns, name = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
intervals_of = {}
for zone, year in zones.items():
    timetable, intervals, last = CronDataIntervalTimetable("0 0 * * *", timezone=zone), [], None
    begin = pendulum.datetime(year, 1, 1, tz=zone)
    allowed = TimeRestriction(begin, pendulum.datetime(year + 1, 1, 1, tz=zone), True)
    while (info := timetable.next_dagrun_info(last_automated_data_interval=last, restriction=allowed)) is not None:
        last = info.data_interval
        if last.start.in_timezone(zone).year > year:
            break
        intervals.append([last.start.timestamp(), last.end.timestamp()])
    intervals_of[zone] = intervals
skipped = pendulum.datetime(2024, 3, 10, 7, 30)
by_hand = {}
for cron in ("0 0 * * *", "30 2 * * *"):
    timetable = CronDataIntervalTimetable(cron, timezone="America/New_York")
    interval = timetable.infer_manual_data_interval(run_after=skipped)
    by_hand[cron] = [interval.start.isoformat(), interval.end.isoformat()]
bundle = PatternsBundle(name="patterns", patterns=patterns)
bundle.initialize()
bundle.refresh()
dags = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="patterns").dags
print("FOUND" + json.dumps({"intervals": intervals_of, "by_hand": by_hand, "zone": str(dags[name].timetable.timezone)}))
"""


@pytest.fixture(scope="module")
def described(home: AirflowHome, airflow: AirflowCommand) -> dict[str, object]:
    """Airflow's data intervals of a year of each zone; the zone of the timetable of a pattern's DAG."""
    assert home.patterns is not None
    text = (home.patterns / "delay_snowball.yaml").read_text().replace("name: delay_snowball", f"name: {LOCAL}")
    added = home.patterns / f"{LOCAL}.yaml"
    lines = [line for line in text.splitlines() if not line.startswith(("time_zone", "origin", "within", "batch"))]
    added.write_text("\n".join([*lines, "within: 1 day", "time_zone: America/New_York", ""]))
    try:
        airflow(*PARSE)
        folder = Path(home.home) / "bundles" / "patterns" / "dags"
        arguments = [json.dumps(ZONES), str(folder), str(home.patterns), LOCAL]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *arguments], env=home.env(), capture_output=True, text=True, check=False
        )
    finally:
        added.unlink()
    assert done.returncode == 0, done.stderr
    described: dict[str, object] = json.loads(done.stdout.split("FOUND", 1)[1])
    return described


def test_a_schedule_is_on_the_clock_of_the_zone(described: dict[str, object]) -> None:
    """The timetable of the pattern's DAG."""
    assert described["zone"] == "America/New_York"


def test_a_run_by_hand_at_a_change_of_clocks(described: dict[str, object]) -> None:
    """At 2024-03-10 07:30Z, when New York's clocks have just skipped 02:00 to 03:00: the day before, or, of a schedule
    at a time that was skipped, an empty interval, whose error says what to do."""
    intervals = described["by_hand"]
    assert isinstance(intervals, dict)
    days, times = CalendarWindows(1, 1, 0, "America/New_York"), LocalTimes("America/New_York")
    start, end = (times.micros(text, "from") for text in intervals["0 0 * * *"])
    (day,) = days.ending_in(start, end)
    assert datetime(1970, 1, 1) + timedelta(days=day) == datetime(2024, 3, 9)
    start, end = (times.micros(text, "from") for text in intervals["30 2 * * *"])
    with pytest.raises(BadTimeError, match="trigger the DAG with the params from and to"):
        refuse_empty(start, end)


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_of_daily_runs_owns_each_day_once(described: dict[str, object], zone: str) -> None:
    """Days of 23, 24 and 25 hours, and none for the one that was skipped."""
    intervals = described["intervals"]
    assert isinstance(intervals, dict)
    days, epoch = CalendarWindows(1, 1, 0, zone), datetime(1970, 1, 1, tzinfo=UTC)
    owned = [
        j
        for start, end in intervals[zone]
        for j in days.ending_in(int(start) * 10**6, int(end) * 10**6)
        if days.exists(j)
    ]
    first = (datetime(ZONES[zone], 1, 1, tzinfo=UTC) - epoch).days
    year = [j for j in range(first, first + 365) if days.exists(j)]
    assert owned == year
    assert len(year) == (364 if zone == "Pacific/Apia" else 365)
    hours = {(days.end(j) - days.start(j)) / 3_600_000_000 for j in year}
    assert hours == ({23.5, 24, 24.5} if zone == "Australia/Lord_Howe" else {23, 24, 25})
