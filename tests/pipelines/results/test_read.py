"""Results read in this process are those that Spark reads: rows in their order, differences, values of a row."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.support.flights import all_steps, renamed
from tests.support.roads import only_spark
from tests.support.signal_changes import change
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import DAY_US, START_US, Signals, signals, tidy_batch
from trendlake.pipelines.errors import BadNumberError, BadTimeError, ProjectError
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.results import history, read
from trendlake.pipelines.results.read import Rows, Selection, group_values
from trendlake.pipelines.runs.record import newest_records
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.site import read_changes
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

READ = (
    "doubles as groups",
    pytest.param("matches", marks=pytest.mark.repeats),
    *(("decimals as groups", "doubles as partitions", "plain") if CHAOS else ()),
)


@pytest.fixture(scope="module", params=READ)
def published(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Signals, Run]:
    """Results with NULL, NaN and -0.0 in their keys, revised twice."""
    rng = random.Random(request.param)
    lake = signals(spark, tmp_path_factory.mktemp("read") / "project", PATTERNS[request.param])
    lake.insert(tidy_batch(rng, 50))
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    for number in range(2):
        for _ in range(3):
            change(rng, lake)
        revise(renamed(run, f"revision {number}"))
    return lake, run


def plain(value: Any) -> Any:
    """As a command prints it: what no two readers may say otherwise."""
    return json_text(value, None)


@pytest.mark.long
def test_rows_and_their_order(published: tuple[Signals, Run]) -> None:
    """Of any version, any group, any stretch of time, with or without a limit."""
    lake, run = published
    path, plan, rng = lake.warehouse.results(run.name), run.plan, random.Random(5)
    last = latest_version(lake.lake, path)
    every = read.read_rows(lake.lake, path, plan, Selection()).table.to_pylist()
    assert every
    limits: list[int | None] = [None, 1, 3, 1000]
    for number in range(12 if CHAOS else 5):
        row = rng.choice(every)
        names = [name for name in plan.key if not isinstance(row[name], list | datetime)]
        other = rng.choice(every)
        groups = {name: [row[name], other[name]][: rng.randint(1, 2)] for name in names if rng.random() < 0.4}
        start = START_US + rng.randrange(3) * DAY_US if rng.random() < 0.4 else None
        end = None if start is None else start + DAY_US
        selection = Selection(groups, start, end, limits[number % 4], latest=number % 2 == 0)
        version = rng.randrange(1, last + 1)
        local = read._here(table_here(lake.lake, path, version), plan, selection)
        by_spark = read._by_spark(read_at(lake.lake, path, version), plan, selection)
        assert _facts(local) == _facts(by_spark), (selection, version)


def _facts(rows: Rows) -> tuple[Any, ...]:
    return rows.selected, rows.total, rows.stale, plain(rows.table.to_pylist())


@pytest.mark.long
def test_differences(published: tuple[Signals, Run]) -> None:
    """Between any two versions, either way."""
    lake, run = published
    path = lake.warehouse.results(run.name)
    last = latest_version(lake.lake, path)
    kinds = 0
    for first, second in ((0, last), (last, 1), (1, last), (last, last)):
        counts, rows = history.between(lake.lake, path, run.plan, first, second)
        expected = history._between_by_spark(lake.lake, path, run.plan, first, second, None)
        assert (counts, plain(rows)) == (expected[0], plain(expected[1]))
        kinds += sum(map(bool, counts.values()))
    assert kinds >= 3


@pytest.mark.long
def test_samples_of_changes(published: tuple[Signals, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of each publication that a pattern's page shows: the first few, and all."""
    lake, run = published
    path = lake.warehouse.results(run.name)
    versions = list(range(1, latest_version(lake.lake, path) + 1))
    for most in (2, 1_000):
        monkeypatch.setattr(read_changes, "ROWS_SHOWN", most)
        samples = read_changes._samples_here(lake.lake, path, run.plan, None, versions)
        assert samples == read_changes._samples_by_spark(lake.lake, path, run.plan, None, versions)
    kinds = {change.kind for changes in samples.values() for change in changes}
    assert len(kinds) >= 2
    monkeypatch.setattr(limits, "CHANGES_READ", 1)
    with pytest.raises(NotHereError):
        read_changes._samples_here(lake.lake, path, run.plan, None, versions)


def test_values_of_a_row(published: tuple[Signals, Run]) -> None:
    """Every group of every window that has been published."""
    lake, run = published
    path, plan = lake.warehouse.results(run.name), run.plan
    first, last = START_US, START_US + 3 * DAY_US
    selection = Selection({}, first, last)
    local = history._changes_here(lake.lake, path, plan, selection, 0)
    by_spark = history._changes_by_spark(lake.lake, path, plan, selection, 0)
    assert plain([list(change) for change in local]) == plain([list(change) for change in by_spark])
    assert len({version for version, _, _ in local}) >= 2
    groups = {name: local[0][2][name] for name in plan.key if not isinstance(local[0][2][name], list | datetime)}
    asked = {name: [value] for name, value in groups.items()}
    mine = history._changes_here(lake.lake, path, plan, Selection(asked, first, last), 0)
    assert mine
    assert all(_same(row, groups) for _, _, row in mine)


def _same(row: Mapping[str, Any], groups: Mapping[str, Any]) -> bool:
    pairs = [(row[name], value) for name, value in groups.items()]
    return all(mine == value or (mine is value) or (math.isnan(mine) and math.isnan(value)) for mine, value in pairs)


def test_records(published: tuple[Signals, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run records too; times have a zone here and are the machine's by Spark."""
    lake, _run = published
    local = newest_records(lake.lake, "watched", 100)
    with only_spark():
        by_spark = newest_records(lake.lake, "watched", 100)
    assert plain(local) == plain(by_spark)
    assert local is not None
    assert len(local) == 6


def test_groups_are_read_by_their_types(published: tuple[Signals, Run]) -> None:
    _lake, run = published
    plan = run.plan
    texts = {"rate": "0.5", "day": "2026-01-02", "account": "9007199254740993", "level": "NaN", "remark": "NULL"}
    mine = {name: text for name, text in texts.items() if name in plan.key}
    values = group_values(plan, mine, "--group")
    assert {name: str(value) for name, (value,) in values.items()} == {
        name: {"NaN": "nan", "NULL": "None"}.get(text, text) for name, text in mine.items()
    }
    with pytest.raises(ProjectError, match="is no column of the key"):
        group_values(plan, {"price": "1"}, "--group")
    for name, error in (("day", BadTimeError), ("account", BadNumberError), ("rate", BadNumberError)):
        if name in plan.key:
            with pytest.raises(error, match=f"--group {name}=abc"):
                group_values(plan, {name: "abc"}, "--group")


ENDED = "-- ended --\n"
COMMANDS = f"""\
import json, sys
from trendlake.command import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print({ENDED!r}, end="")
"""
"""Commands one after another in one process: to begin one takes Python a second."""


def test_commands_that_read_start_no_java(published: tuple[Signals, Run]) -> None:
    """With a JAVA_HOME that holds none."""
    lake, _run = published
    profiles = lake.project.root / "conf" / "profiles"
    profiles.mkdir()
    (profiles / "local.yaml").write_text("master: local[2]\n")
    places = {"TRENDLAKE_PROJECT": str(lake.project.root), "TRENDLAKE_STATE": str(lake.project.state)}
    env = os.environ | places | {"JAVA_HOME": "/nowhere"}
    day = datetime.fromtimestamp(START_US / 1e6 + 86_400, UTC).isoformat()
    every = [
        ["show", lake.pattern, "--limit", "2", "--as-of", "1"],
        ["runs"],
        ["diff", lake.pattern, "--from", "0", "--to", "1"],
        ["history", lake.pattern, "--window", day],
        ["try", lake.pattern],
    ]
    ended = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(every)], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *printed, rest = ended.stdout.split(ENDED)
    assert (len(printed), rest) == (len(every), "")
    for words, text in zip(every, printed, strict=True):
        assert "watched" in text or "version" in text, words
