"""A project from an empty folder through Airflow, by what a new user types: `trendlake` commands, and those of
docs/how-to/airflow.md as they stand there, save for the days. What is found is compared with a count by hand."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.dags.test_run import DONE, wait
from tests.end_to_end.test_tutorial import steps
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import free_port
from trendlake.jobs.airflow.login import password_of
from trendlake.pipelines.project.paths import find_project

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

PAGE = ROOT / "docs" / "how-to" / "airflow.md"
PATTERN = """\
name: rising
kind: trends
description: Three or more readings of one machine, each hotter than the one before
owner: plant
source: readings
pattern: Reading R{3,}
where:
  - "[machine]"
  - R.celsius < NEXT(R).celsius
return:
  rises: COUNT(*)
  hottest: MAX(R.celsius)
group_by: [machine]
within: 1 day
schedule: "@daily"
"""
EXAMPLE = """\
- name: three that rise are one, a fourth makes five
  events:
    - {at: 2026-01-01T01:00:00Z, machine: m1, celsius: 60}
    - {at: 2026-01-01T02:00:00Z, machine: m1, celsius: 61}
    - {at: 2026-01-01T03:00:00Z, machine: m1, celsius: 62}
    - {at: 2026-01-01T04:00:00Z, machine: m1, celsius: 63}
  expect:
    - {machine: m1, rises: 5, hottest: 63}
"""
MACHINES = ("m1", "m2", "m3")
BROKEN, MENDED, HOT = -999, 71, 99
AIRFLOW = "trendlake airflow"
Readings = dict[tuple[date, str], list[tuple[datetime, int]]]
"""Of a day and a machine: when, and how hot."""
Rows = dict[tuple[str, str], tuple[int, int]]
"""Of a machine and a day: rises, hottest."""


class User:
    """Somebody at a shell, in the folder of the project, whose only tool is the command."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        command = folder.parent / "bin" / "trendlake"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trendlake.jobs.main "$@"\n')
        command.chmod(0o755)
        left_out = ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE")
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        jars = Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake")) / "jars"
        self.environment.setdefault("TRENDLAKE_JARS", str(jars))
        self.began = time.monotonic()

    def types(self, command: str) -> str:
        """What it printed. It has to end well."""
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=self.folder,
            env=self.environment,
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.says(f"{command}   ({time.monotonic() - began:.0f} s)")
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def says(self, what: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        print(f"{minutes:02}:{seconds:02}  {what}", flush=True)

    def sees(self, command: str) -> Any:
        """The document that a command prints with --json."""
        printed = self.types(f"{command} --json")
        return json.loads(printed[printed.index("{\n") :])

    @contextmanager
    def airflow(self) -> Iterator[AirflowApi]:
        """`trendlake airflow` in another terminal, with a free port, ended by Ctrl-C."""
        command = ["bash", "-euc", f"exec {AIRFLOW} --port {self.port}"]
        log = self.folder.parent / "airflow.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            wait(lambda: process.poll() is not None or "Airflow's page: " in log.read_text())
            assert process.poll() is None, log.read_text()
            self.says("Airflow is up")
            yield AirflowApi(f"http://localhost:{self.port}", password_of(find_project(self.folder)))
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait()
        assert code == 0, log.read_text()


def commands(beginning: str, days: dict[str, str] | None = None) -> str:
    """The one command of the page that begins so, with other days."""
    typed = [line for block, _ in steps(PAGE.read_text()) for line in block.splitlines()]
    (command,) = [line for line in typed if line.startswith(f"{beginning} ")]
    for old, new in (days or {}).items():
        assert old in command
        command = command.replace(old, new)
    return command


def test_the_page_has_the_walk() -> None:
    """Each of its commands is typed below, save those whose tables are for eyes."""
    walked = re.findall(r"""commands\(["'](trendlake [a-z -]+)["']""", Path(__file__).read_text())
    typed = [line for block, _ in steps(PAGE.read_text()) for line in block.splitlines()]
    left = [line for line in typed if line != AIRFLOW and not any(line.startswith(f"{known} ") for known in walked)]
    assert left == ["trendlake airflow dags list-runs rising", "trendlake show rising"]


def readings(today: date) -> Readings:
    """An hour each, of the 31 days before today; of the third last one is broken."""
    by_day: Readings = {}
    for back in range(31, 0, -1):
        day = today - timedelta(days=back)
        for number, machine in enumerate(MACHINES, start=1):
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            by_day[day, machine] = [
                (midnight + timedelta(hours=hour), 60 + (hour * 7 + day.day * 3 + number * 5) % 11)
                for hour in range(24)
            ]
    day = by_day[today - timedelta(days=3), "m2"]
    day[12] = (day[12][0], BROKEN)
    return by_day


def write(readings: Readings, path: Path) -> None:
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "at", "machine", "celsius"])
        for (_, machine), values in readings.items():
            for at, celsius in values:
                lines.writerow([f"{machine}-{at:%Y%m%d%H%M}", f"{at:%Y-%m-%dT%H:%M:%SZ}", machine, celsius])


def expected(readings: Readings, days: set[date]) -> Rows:
    """By counting: of all ways to pick readings that rise, those with three and more."""
    return {
        (machine, f"{day}T00:00:00Z"): counted(values) for (day, machine), values in readings.items() if day in days
    }


def counted(values: list[tuple[datetime, int]]) -> tuple[int, int]:
    whole = [celsius for _, celsius in sorted(values) if celsius != BROKEN]
    return rises(whole), max(whole)


def rises(values: list[int]) -> int:
    ending: list[list[int]] = []  # at each reading: how many rises of one, two, three and more end there
    for place, value in enumerate(values):
        before = [counts for other, counts in zip(values[:place], ending, strict=True) if other < value]
        ones, twos, more = (sum(counts[kind] for counts in before) for kind in range(3))
        ending.append([1, ones, twos + more])
    return sum(counts[2] for counts in ending)


def test_counting_by_hand() -> None:
    """Against trying every choice."""
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    chosen = [[values[place] for place in range(8) if mask >> place & 1] for mask in range(1 << 8)]
    assert rises(values) == sum(len(pick) > 2 and all(one < other for one, other in pairwise(pick)) for pick in chosen)


def shown(user: User) -> Rows:
    rows = user.sees("trendlake show rising --limit 1000")["rows"]
    return {(row["machine"], row["window_start"]): (row["rises"], row["hottest"]) for row in rows}


def states(api: AirflowApi, dag: str) -> list[str]:
    return [run["state"] for run in api.runs(dag)]


def wait_for_runs(user: User, api: AirflowApi, dag: str, count: int) -> None:
    """Until `count` runs have ended, all of them well."""
    wait(lambda: len(states(api, dag)) >= count and set(states(api, dag)) <= DONE, pause=2.0)
    user.says(f"Airflow has run {dag} {count} times")
    assert states(api, dag) == ["success"] * count, [api.tasks(dag, run["dag_run_id"]) for run in api.runs(dag)]


@pytest.mark.chaos
def test_the_walk(tmp_path: Path) -> None:
    """A source, a pattern, the daily run by its schedule, some days and a month backfilled, a late reading and a broken
    one: each followed by the table that has to be there then."""
    user = User(tmp_path, free_port())
    today = datetime.now(UTC).date()
    every = readings(today)
    days = [today - timedelta(days=back) for back in range(31, 0, -1)]

    # from nothing to a pattern that is tried
    user.folder = tmp_path / "work"
    user.folder.mkdir()
    user.types("trendlake init plant")
    user.folder /= "plant"
    write(every, user.folder / "readings.csv")
    user.types("trendlake new source readings --from readings.csv --event-id id --event-time at --type Reading")
    contract = user.folder / "data_contracts" / "readings.yaml"
    promised = contract.read_text().replace(
        "        logicalType: integer\n", "        logicalType: integer\n        logicalTypeOptions: {minimum: -50}\n"
    )
    tolerance = "quarantineTolerance\n        value: 0"
    assert tolerance in promised
    contract.write_text(promised.replace(tolerance, f"{tolerance}.02"))
    user.types("trendlake new pattern rising --source readings --kind trends")
    (user.folder / "conf" / "patterns" / "rising.yaml").write_text(PATTERN)
    (user.folder / "conf" / "patterns" / "tests" / "rising.yaml").write_text(EXAMPLE)
    user.types("trendlake validate")
    assert "1 passed, 0 failed" in user.types("trendlake test")
    tried = user.types("trendlake try rising --events readings.csv")
    assert "of 93 rows" in tried
    assert "1 row that broke the contract did not count: celsius_range 1" in tried
    user.types("trendlake ingest readings readings.csv")

    with user.airflow() as api:
        wait(lambda: {"rising", "readings_revise", "ingest_readings"} <= api.dag_ids())

        # the daily run, by its schedule: yesterday
        user.types(commands("trendlake airflow dags unpause"))
        wait_for_runs(user, api, "rising", 1)
        assert shown(user) == expected(every, {days[-1]})

        # two days, a run each in Airflow, and the whole month beside them
        two = {"2026-01-01": str(days[0]), "2026-01-02": str(days[1])}
        user.types(commands("trendlake airflow backfill create", two))
        user.types(commands("trendlake backfill", {"2026-01-01": str(days[0]), "2026-02-01": str(today)}))
        wait_for_runs(user, api, "rising", 3)
        month = shown(user)
        assert month == expected(every, set(days))
        assert states(api, "readings_revise") == []

        # a reading that comes late: revised by itself
        began = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
        late = days[20]
        noon = datetime(late.year, late.month, late.day, 12, 30, tzinfo=UTC)
        write({(late, "m2"): [(noon, HOT)]}, user.folder / "late.csv")
        assert "notified Airflow: source_readings" in user.types(commands("trendlake ingest"))
        every[late, "m2"].append((noon, HOT))
        wait_for_runs(user, api, "readings_revise", 1)
        revised = shown(user)
        assert revised == expected(every, set(days))
        assert revised != month
        (run,) = api.runs("readings_revise")
        tries = {task["task_id"]: task["try_number"] for task in api.tasks("readings_revise", run["dag_run_id"])}
        assert set(tries) == {"revise-all", "rising"}
        log = "\n".join(api.log("readings_revise", run["dag_run_id"], "revise-all", tries["revise-all"]))
        assert "1 updated" in log
        assert "notified Airflow" not in log  # its outlet has

        # the broken one: shown, mended, put back, revised by itself
        user.types(commands("trendlake quarantine show"))
        broken = user.folder / "broken.csv"
        assert broken.read_text().count(str(BROKEN)) == 1
        broken.write_text(broken.read_text().replace(str(BROKEN), str(MENDED)))
        printed = user.types(commands("trendlake quarantine replay"))
        assert "1 row repaired" in printed
        assert "notified Airflow: source_readings" in printed
        assert "next: trendlake revise" not in printed
        mended = every[days[-3], "m2"]
        mended[12] = (mended[12][0], MENDED)
        wait_for_runs(user, api, "readings_revise", 2)
        repaired = shown(user)
        assert repaired == expected(every, set(days))
        assert repaired != revised
    user.says("Airflow is stopped")

    # what was, and why it changed
    past = user.sees(commands("trendlake history", {"2026-01-10": str(late)}))["values"]
    assert [value["row"]["hottest"] for value in past] == [month["m2", f"{late}T00:00:00Z"][1], HOT]
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    changed = user.sees(commands("trendlake diff", {"2026-02-01T10:00": began, "2026-02-01T12:00": now}))
    assert {(row["kind"], row["after"]["machine"]) for row in changed["rows"]} == {("changed", "m2")}
    assert len(changed["rows"]) == 2
    assert [commit["stage"] for commit in changed["commits"]] == ["revise", "revise"]
    user.says("the end of the walk")
