"""Cutting the events by group and time changes nothing in the results, and nothing that does not fit is cut off."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as sf

from tests.support.flights import Flights, flight, replace_limits
from trendlake.cep_core import run_plan
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.distribute import ROWS, choose, counted, distribute, folder_here
from trendlake.pipelines.execute.pack import packer, typed
from trendlake.pipelines.execute.shard_assignment import place
from trendlake.pipelines.execute.shard_plan import Cut, Part, likely
from trendlake.pipelines.execute.worker import kernel_of
from trendlake.pipelines.results.computation import computed
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.results.staging import read_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute

pytestmark = pytest.mark.spark

DAY = ("2013-03-01", "2013-03-03")


def busy_day(events: int = 600) -> list[dict[str, object]]:
    """Flights of three carriers, one of them with most of the traffic, at any second of two days."""
    chance = random.Random(7)
    return [
        flight(
            number,
            f"2013-03-{chance.randint(1, 2):02d}T{chance.randrange(24):02d}:{chance.randrange(60):02d}:00",
            carrier=chance.choice(["UA", "UA", "UA", "UA", "AA", "B6"]),
            tailnum=f"N{chance.randint(10, 14)}",
            dep_delay=float(chance.randint(-9, 60)),
        )
        for number in range(1, events + 1)
    ]


@pytest.fixture(scope="module")
def run(shared_lake: Flights) -> Run:
    """Windows of two hours every 20 minutes, over two busy days."""
    lake = shared_lake
    lake.deliver(busy_day())
    run = lake.run(lake.pattern(within="2 hours", slide="20 minutes"), *DAY, "r1")
    check_source(run)
    return run


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def checked(run: Run) -> Record:
    return run.need("check_source")


@pytest.mark.long
def test_any_cut_gives_the_same_rows(run: Run) -> None:
    """One shard, many shards, a shard for each window: the rows of the kernel over everything at once."""
    events = read_events(run, checked(run))
    whole = rows_of(run_plan(run.plan, events.toArrow(), run.windows))
    assert len(whole) > 300
    for size, partitions in ((len(run.windows), 1), (13, 3), (5, 7), (1, 4)):
        cut = Cut(run.windows, size, partitions)
        assert rows_of(computed(run, events, cut).toArrow()) == whole, cut
        with folder_here(run.lake.spark) as folder:
            assert folder is not None
            assert rows_of(computed(run, events, cut, folder=folder).toArrow()) == whole, cut
            assert list(Path(folder).iterdir())
        assert not Path(folder).exists()


@pytest.mark.long
def test_a_unit_is_whole_in_one_partition(run: Run) -> None:
    """What arrives in a partition is all there is of the units that are placed there, and nothing else."""
    events = read_events(run, checked(run))
    cut = Cut(run.windows, 6, 5)
    lie = distribute(run.plan, events, [Part(run.plan, cut)]).select("partition", sf.spark_partition_id().alias("at"))
    assert lie.where("partition != at").isEmpty()
    partitions = place(run.plan, cut, events.toArrow()).partition
    assert {row["at"] for row in lie.collect()} == set(partitions.tolist())


@pytest.mark.long
def test_units_are_counted_where_they_are_placed(run: Run) -> None:
    """The numbers of rows by unit are those of the rows as they are placed, and carry the group's columns."""
    events = read_events(run, checked(run))
    cut = Cut(run.windows, 6, 5)
    table = events.toArrow()
    placed = place(run.plan, cut, table)
    carriers = table["carrier"].take(pa.array(placed.rows)).to_pylist()
    units = Counter(zip(carriers, placed.shard.tolist(), strict=True))
    counts = counted(run.plan, events.repartition(3), cut).collect()
    assert {(row["carrier"], row["__trendlake_shard"]): row[ROWS] for row in counts} == units


@pytest.mark.long
@pytest.mark.parametrize(
    "limit", [pytest.param(45, marks=pytest.mark.repeats), pytest.param(120, marks=pytest.mark.repeats), 400]
)
def test_a_hot_group_is_spread_by_time(run: Run, limit: int) -> None:
    """More rows than a worker may hold: shards and partitions until each fits, and the results are the same."""
    events = read_events(run, checked(run))
    rows = events.count()
    assert rows > limit
    cut = choose(run.plan, events, rows, run.windows, limit, cores=2)
    assert np.bincount(place(run.plan, cut, events.toArrow()).partition).max() <= limit
    assert cut.partitions < 150
    whole = rows_of(run_plan(run.plan, events.toArrow(), run.windows))
    assert rows_of(computed(run, events, cut).toArrow()) == whole
    if limit == 45:
        assert cut.shards > 18
        assert cut.alone


@pytest.mark.long
def test_what_cannot_fit_fails_by_name(run: Run) -> None:
    """One group's events of one window above the limit: an error that names both, never a cut."""
    small = replace(run, profile=replace_limits(run.profile, 20))
    with pytest.raises(ShardTooLargeError, match=r"carrier = 'UA': \d+ events in the window that starts at 2013-03-0"):
        compute(small)


@pytest.mark.long
def test_a_cut_that_was_guessed_wrong_is_made_by_counting(run: Run) -> None:
    """One carrier has most of the rows: a worker of the guessed cut refuses them, and the step ends with all rows."""
    events = read_events(run, checked(run))
    whole = rows_of(run_plan(run.plan, events.toArrow(), run.windows))
    small = replace(run, profile=replace_limits(run.profile, 60))
    guessed = likely(run.plan, events.count(), run.windows, 60, cores=2)
    assert guessed is not None
    with pytest.raises(PythonException, match="SHARD_TOO_LARGE"):
        computed(small, events, guessed).collect()
    record = compute(small)
    assert record.rows_out == len(whole)
    staged = read_staged(run, int(record.staged_version or 0))
    assert rows_of(staged.select(*run.plan.result_schema.names).toArrow()) == whole


@pytest.mark.parametrize(("rows", "keyed", "partitions"), [(40, True, 1), (1000, True, 40), (1000, False, None)])
def test_a_cut_is_guessed_where_units_are_likely_to_fit(
    run: Run, rows: int, keyed: bool, partitions: int | None
) -> None:
    """Half-full partitions for many groups; nothing is guessed where all rows are one unit."""
    plan = run.plan if keyed else replace(run.plan, group_by=())
    guessed = likely(replace(plan, windows=replace(plan.windows, slide=plan.windows.within)), rows, range(1), 50, 2)
    assert (guessed.partitions if guessed else None) == partitions


@pytest.mark.long
def test_the_worker_takes_batches_one_by_one(run: Run) -> None:
    """The kernel function is a generator over batches: it holds what has come, and stops at the limit at once."""
    cut = Cut(run.windows, len(run.windows))
    events = typed(run.plan, read_events(run, checked(run))).limit(90).toArrow()
    batches = [
        packed
        for batch in events.to_batches(max_chunksize=10)
        for packed in packer(run.plan, [Part(run.plan, cut)])(iter([batch]))
    ]
    assert len(batches) == 9
    taken = 0

    def feed() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in batches:
            taken += 1
            yield batch

    kernel = kernel_of(run.plan, cut, limit=35)
    with pytest.raises(ShardTooLargeError):
        list(kernel(feed()))
    assert taken == 4


@pytest.mark.long
def test_spark_runs_the_iterator_form(run: Run) -> None:
    """The plan has MapInArrow, and a worker really sees several batches of one partition."""
    events = read_events(run, checked(run)).repartition(1)
    plan = computed(run, events, Cut(run.windows, len(run.windows)))
    explained = plan._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "MapInArrow" in explained

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sizes = [batch.num_rows for batch in batches]
        yield pa.RecordBatch.from_pydict({"batches": [len(sizes)], "rows": [sum(sizes)]})

    run.lake.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        seen = events.mapInArrow(count, "batches bigint, rows bigint").collect()
    finally:
        run.lake.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5000")
    assert [tuple(row) for row in seen] == [(6, 600)]
