"""Channels: windows of every member are whole in a shard, and what is computed together is what each has alone."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.random.batches import Batch, batches, shown
from tests.random.profile import CI, examples, share
from tests.support.case_batches import CASES, case_batches, faults, of_any_time, plans_of, table_of, windows_of
from tests.support.worked_cases import ROLES
from trendlake.cep_core import TrendlakeError, load_pattern, run_plan
from trendlake.cep_core.events.windows import AGES, Windows
from trendlake.pipelines.contracts.contract import Column, Contract
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.channel import Channel, Member, channels_of, joint, together
from trendlake.pipelines.execute.shard_plan import Cut
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.results.computation import Outcomes, stage_together
from trendlake.pipelines.results.source_events import needed
from trendlake.pipelines.results.staging import staged_here
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.frames import frame_of

BATCHES = int(os.environ.get("TRENDLAKE_BATCHES") or share(12, least=4))
PATTERN = {"kind": "trends", "pattern": "A+", "return": {"n": "COUNT(*)"}, "within": "1 hour"}


@dataclass(frozen=True)
class Reads:
    """As much of a plan as cuts ask for."""

    windows: Windows
    unit_key: tuple[str, ...] = ()
    waits: bool = False
    columns: tuple[str, ...] = ("event_time",)
    event_types: tuple[str, ...] | None = None
    interval_start: str | None = None


def member(number: int, windows: Windows, asked: range, key: tuple[str, ...] = (), *, waits: bool = False) -> Member:
    plan: Any = Reads(windows, key, waits)
    return Member(number, plan, asked)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Windows, range]:
    windows = Windows(draw(st.integers(1, 40)), draw(st.integers(1, 25)), draw(st.integers(-30, 30)))
    first = draw(st.integers(-20, 20))
    return windows, range(first, first + draw(st.integers(1, 30)))


@examples(300)
@given(st.lists(asked(), min_size=1, max_size=5), st.integers(1, 12))
def test_each_window_of_each_member_is_whole_in_one_shard(wanted: list[tuple[Windows, range]], size: int) -> None:
    channel = Channel.of([member(number, *one) for number, one in enumerate(wanted)])
    cut = Cut(channel.asked, size)
    computed: dict[int, list[int]] = {number: [] for number in range(len(wanted))}
    for shard in range(cut.shards):
        low, high = channel.reading.windows.span(cut.of(shard))
        for one, windows in channel.of_shard(cut, shard):
            start, end = one.plan.windows.span(windows)
            assert low <= start
            assert end <= high
            computed[one.number] += windows
    assert computed == {number: list(windows) for number, (_, windows) in enumerate(wanted)}


def test_keys_that_are_parts_of_one_another_share_a_channel() -> None:
    """The smallest is what cuts; what has no key shares with its like only."""
    hour, day = Windows(60, 60), Windows(1440, 1440)
    keys = [("company", "venue"), ("company",), (), ("venue", "company"), ("venue",), ()]
    members = [member(number, (hour, day)[number % 2], range(3), key) for number, key in enumerate(keys)]
    channels = channels_of(members)
    keys_of = {tuple(one.number for one in channel.members): channel.reading.unit_key for channel in channels}
    assert keys_of == {(2, 5): (), (1, 0, 3): ("company",), (4,): ("venue",)}


def test_what_reads_far_more_is_read_alone() -> None:
    """And what waits, reads all there is, or has events that last."""
    spans = [Windows(within, 60) for within in (60, 120, 180, 600, AGES)]
    members = [member(number, windows, range(1)) for number, windows in enumerate(spans)]
    members.append(member(5, spans[0], range(1), waits=True))
    lasting: Any = Reads(spans[0], interval_start="start")
    members.append(Member(6, lasting, range(1)))
    groups = [sorted(one.number for one in group) for group in together(members)]
    assert sorted(groups) == [[0, 1, 2], [3], [4], [5], [6]]


# What follows runs on Spark.

FIELDS = [
    Column(name, kind, required=False)
    for name, kind in (("event_id", "string"), ("event_time", "timestamp"), ("event_type", "string"))
]


def runs_of(spark: SparkSession, project: Project, batch: Batch, limit: int) -> dict[int, Run]:
    """A run of each plan of a batch, of the windows it is asked for, else of all that hold an event."""
    contract = Contract("events", "1.0.0", tuple(FIELDS), rules=(), key=("event_id",), roles=ROLES)
    profile = Profile(master="local[2]", limits=Limits(shard_rows=limit))
    times = batch.table["event_time"].cast(pa.int64()).drop_null().to_pylist()
    runs = {}
    for number, (plan, windows) in enumerate(zip(batch.plans, batch.windows, strict=True)):
        held = [held for time in times if (held := plan.windows.holding(time))]  # between windows there may be events
        every = range(min(one[0] for one in held), max(one[-1] for one in held) + 1) if held else range(1)
        run = Run(
            Lake.of(spark, Warehouse.of(profile, project)),
            project,
            profile,
            load_pattern({"name": f"p{number}", **PATTERN}),
            Sources.of(contract),
            plan,
            "r",
            0,
            1,
            only=windows or every,
        )
        runs[number] = run
    return runs


def staged(runs: dict[int, Run], batch: Batch) -> Outcomes:
    """As the step `compute` stages them: what can be read together is."""
    (run, *_) = runs.values()
    table = frame_of(run.lake.spark, batch.table)
    outcomes: Outcomes = {}
    for group in together([Member(number, run.plan, run.windows) for number, run in runs.items()]):
        mine = {one.number: runs[one.number] for one in group}
        events = needed(run.contract, joint(channels_of(group)), table)
        outcomes |= stage_together(mine, events, batch.table.num_rows, Versions.one(0), batch.watermark)
    return outcomes


def answer(run: Run, outcome: Any) -> object:
    if isinstance(outcome, Exception):
        return getattr(outcome, "message", str(outcome))
    number, rows = outcome
    table = staged_here(run, number, rows)
    assert table.num_rows == rows
    return shown(table.select(run.plan.result_schema.names).cast(run.plan.result_schema))


def alone(run: Run, batch: Batch) -> object:
    try:
        return shown(run_plan(run.plan, batch.table, run.windows, batch.watermark))
    except TrendlakeError as error:
        return error.message


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.random
@pytest.mark.more_in_chaos
def test_random_batches_on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The rows and errors of each plan, whoever else is there, in whatever order, and however the events are cut: in a
    quarter of the batches a worker may hold so few that they are counted, and members parted."""
    project = Project(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("state"))
    seen = 0

    @settings(CI, max_examples=BATCHES, phases=[Phase.generate])
    @given(batches(documents=False), st.randoms(use_true_random=False), st.sampled_from([False, False, False, True]))
    def check(batch: Batch, order: Any, few: bool) -> None:
        nonlocal seen
        batch = named(batch)
        if not batch.plans or not batch.table.num_rows:
            return
        seen += 1
        limit = max(4, batch.table.num_rows // 2) if few else 1_000
        state = replace(project, state=project.state / str(seen))
        runs = list(runs_of(spark, state, batch, limit).items())
        order.shuffle(runs)
        outcomes = staged(dict(runs), batch)
        for number, run in runs:
            if not isinstance(outcomes[number], ShardTooLargeError):
                assert answer(run, outcomes[number]) == alone(run, batch), number
            else:
                assert limit < 1_000

    check()
    assert seen > BATCHES // 2


def named(batch: Batch) -> Batch:
    """Of events that a lake holds: with ids, times and types."""
    whole = [pc.is_valid(batch.table[name]) for name in ROLES]
    there = pc.and_(pc.and_(whole[0], whole[1]), whole[2])
    return replace(batch, table=batch.table.filter(there))


@pytest.mark.long
@pytest.mark.spark
def test_worked_cases_together_on_spark(spark: SparkSession, project: Project) -> None:
    """Each has the rows that its case expects, whoever else reads the events of all cases."""
    compared = 0
    for place, cases in enumerate(case_batches()):
        table = table_of(cases)
        plans = plans_of(cases, table)
        batch = Batch(plans, table, list(windows_of(cases, plans)), None)
        runs = runs_of(spark, replace(project, state=project.state / str(place)), batch, 10_000_000)
        outcomes = staged(runs, batch)
        for number, (kind, case) in enumerate(cases.cases):
            outcome = outcomes[number]
            assert not isinstance(outcome, Exception), (case.name, outcome)
            rows = staged_here(runs[number], *outcome)
            rows = rows.select(plans[number].result_schema.names).cast(plans[number].result_schema)
            assert faults(kind, case, rows, number, cases.shifts[number]) == [], case.name
            compared += 1
    assert compared == sum(of_any_time(case) for some in CASES.values() for case in some)
