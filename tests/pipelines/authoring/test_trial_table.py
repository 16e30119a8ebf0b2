"""`trendlake try` on a source's table: what it shows of a slice is what a run publishes of the same windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as sf

from tests.support.bare_lake import bare_lake
from tests.support.flights import Flights, all_steps, answers, flight, table
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.authoring.trial import Sample, sample
from trendlake.pipelines.authoring.trial_rows import SampledTable
from trendlake.pipelines.authoring.trial_table import HeldTable, TableBySpark
from trendlake.pipelines.authoring.trial_tables import TrialTables
from trendlake.pipelines.contracts.sources import SOURCE
from trendlake.pipelines.errors import SampleTooLargeError, SourceMissingError
from trendlake.pipelines.ingest.deliver import typed
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.runs.run import Run

pytestmark = pytest.mark.spark

GOOD = [
    flight(
        number, f"2013-03-{day:02d}T{hour:02d}:10:00", dep_delay=float(hour), carrier=carrier, tailnum=f"N1{carrier}"
    )
    for number, (day, hour, carrier) in enumerate(
        ((day, hour, carrier) for day in range(1, 7) for hour in range(24) for carrier in ("UA", "AA")), start=1
    )
]
BAD = [
    flight(201, "2013-03-06T06:00:00", arr_time=None),
    flight(202, "2013-03-06T06:00:00", tailnum="D942DN", dep_delay=-43.0),
    flight(203, "2013-03-05T06:00:00", event_type=None),
    flight(7, "2013-03-06T09:00:00"),  # its id is one of 1 March
    flight(205, "2013-03-06T06:00:00", event_time=None),
    flight(206, "2013-03-06T06:00:00", dep_delay=1440.0),
    flight(207, "2013-03-06T06:00:00", carrier="Delta", distance=-4.0),
    flight(208, "2013-03-06T06:00:00", event_type="Cancellation"),
]


@pytest.fixture(scope="module")
def source(shared_lake: Flights) -> Flights:
    shared_lake.append(GOOD + BAD)
    return shared_lake


def tried(lake: Flights, most: int, interval: tuple[str, str] | None = None, within: str = "1 day") -> Sample:
    """What this process takes of the table, which is what Spark takes."""
    run = lake.run(lake.pattern(within=within), "2013-03-01", "2013-03-02", "try")
    asked = None if interval is None else (micros_of(interval[0], "--from"), micros_of(interval[1], "--to"))
    held = TrialTables.of(run, {}).tables[SOURCE]
    assert isinstance(held, HeldTable)
    by_spark = TableBySpark(run, held.version, [item.name for item in run.contract.columns])
    mine, theirs = (outcome(run, table, most, asked) for table in (held, by_spark))
    if isinstance(mine, SampleTooLargeError) or isinstance(theirs, SampleTooLargeError):
        assert str(mine) == str(theirs)
        raise SampleTooLargeError(str(mine))
    order = [(name, "ascending") for name in run.plan.key]
    assert mine.rows.sort_by(order) == theirs.rows.sort_by(order)
    assert replace(mine, rows=None) == replace(theirs, rows=None)
    return mine


def outcome(run: Run, table: SampledTable, most: int, asked: tuple[int, int] | None) -> Any:
    """A sample, or the error."""
    try:
        return sample(run.plan, TrialTables(run, {SOURCE: table}), most, asked)
    except SampleTooLargeError as error:
        return error


@pytest.mark.repeats
def test_it_shows_what_a_run_publishes(source: Flights) -> None:
    """The same rows for the same windows; nothing but the run has written."""
    trial = tried(source, 1000, ("2013-03-01", "2013-03-07"))
    assert not exists(bare_lake(source.spark), source.warehouse.results("test_pattern"))
    run = source.run(source.pattern(), "2013-03-01", "2013-03-07", "published")
    all_steps(run)
    mine = sorted(trial.rows.to_pylist(), key=lambda row: (row["carrier"], str(row["window_start"])))
    theirs = [
        row | {name: row[name].astimezone(mine[0][name].tzinfo) for name in ("window_start", "window_end")}
        for row in answers(source.results(run), run)
    ]
    assert mine == theirs
    assert len(mine) == 12
    assert trial.tables[0].broken == Counter(row["rule"] for row in source.quarantined().collect())


@pytest.mark.long
def test_the_newest_windows_are_whole(source: Flights) -> None:
    """As many days as hold no more events than asked for, and never a part of one."""
    days = {most: (len(trial.windows), trial.taken) for most in (102, 103) if (trial := tried(source, most))}
    # 54 rows of the sixth day, and the one without a time, which belongs to every range; 49 of the fifth
    assert days == {102: (1, 55), 103: (2, 104)}
    whole = tried(source, 1000)
    assert whole.windows == whole.every
    assert (len(whole.windows), whole.open, whole.taken) == (6, 1, len(GOOD) + len(BAD))


@pytest.mark.long
def test_no_part_of_a_window(source: Flights) -> None:
    """Spark reads no window that is too large. Of rows that are in memory some groups are taken, if there are any."""
    run = source.run(source.pattern(), "2013-03-01", "2013-03-07", "try")
    held = TrialTables.of(run, {}).tables[SOURCE]
    assert isinstance(held, HeldTable)
    by_spark = TableBySpark(run, held.version, [item.name for item in run.contract.columns])
    with pytest.raises(SampleTooLargeError, match="the newest window alone holds 54 events, more than 53"):
        raise outcome(run, by_spark, 53, None)
    with pytest.raises(SampleTooLargeError, match="the windows of the interval hold"):
        raise outcome(run, by_spark, 20, (run.start_us, run.end_us))
    some = outcome(run, held, 30, None)
    assert some.good <= 30
    assert some.groups.taken < some.groups.there


def test_no_table(lake: Flights) -> None:
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "try")
    with pytest.raises(SourceMissingError, match="is not in the warehouse"):
        TrialTables.of(run, {})


@pytest.mark.long
def test_the_split_without_spark_is_the_split(source: Flights) -> None:
    """Row by row: the same rows are set apart, for the same first rule."""
    contract, rows = source.contract, [*GOOD, *BAD, *BAD, flight(3, "2013-03-01T00:00:00", tailnum=None)]
    frame = typed(source.spark.createDataFrame(table(rows)), contract)
    judged = q.annotate(frame, contract.rules).select("event_id", sf.get(BROKEN, sf.lit(0))["rule"].alias("rule"))
    theirs = Counter((row["event_id"], row["rule"]) for row in judged.collect())
    local = split(table(rows).select([item.name for item in contract.columns]), contract)
    names = [None if number < 0 else contract.rules[number].name for number in local.broken.tolist()]
    assert Counter(zip((row["event_id"] for row in rows), names, strict=True)) == theirs
    assert np.count_nonzero(local.broken >= 0) > len(BAD)
