"""Random patterns over three tables, on Spark: whether the workers read the files of each table by themselves or get
the rows that Spark reads, they give the rows that this process gives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.random import sources
from tests.random.profile import examples
from tests.support.worked_cases import (
    CHECKED,
    PROFILE,
    collected,
    contract_of,
    rows_of_member,
    streams_of,
    windows_holding,
)
from trendlake.cep_core import TrendlakeError, compile_query, load_pattern, run_plan
from trendlake.pipelines.contracts.sources import Sources, SourceTable
from trendlake.pipelines.execute.channel import Channel, Member
from trendlake.pipelines.execute.shard_plan import Cut
from trendlake.pipelines.execute.worker import Work
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.results.union_events import UnionEvents
from trendlake.pipelines.runs.run import Run

pytestmark = [pytest.mark.random, pytest.mark.spark, pytest.mark.long]

AT_ONCE = 5
"""Questions of one Spark job."""


@dataclass(frozen=True)
class Question:
    """A run over tables that lie in its warehouse, with the rows of this process."""

    run: Run
    watermark: int | None
    expected: pa.Table

    @property
    def events(self) -> UnionEvents:
        pinned = {part.key: {"version": 0, "quarantined": 0} for part in self.run.parts}
        return UnionEvents.of(self.run, replace(CHECKED, source_version=None, sources=pinned), self.run.plan)

    def work(self, number: int) -> Work:
        """A shard for each window, or for a fiftieth of them."""
        windows = self.run.windows
        channel = Channel.of([Member(number, self.run.plan, windows)])
        return Work(self.run.plan, (channel,), (Cut(windows, -(-len(windows) // 50), 2),), 10_000, self.watermark)


def question_of(spark: SparkSession, folder: Path, case: sources.Case) -> Question | None:
    """None where the engine refuses it, or it has no event."""
    tables, schemas, of_types = sources.own_tables(case)
    query = {**case.query, "name": "q", "sources": of_types} | ({} if case.ties is None else {"ties": case.ties})
    times = [time for name, table in tables.items() for time in table[f"at_{name}"].cast(pa.int64()).to_pylist()]
    if not times:
        return None
    try:
        plan = compile_query(query, schemas)
        windows = windows_holding(plan, times)
        expected = run_plan(plan, tables, windows, case.watermark)
    except TrendlakeError:
        return None
    project = Project(folder, folder / "state")
    warehouse, contracts = Warehouse(PROFILE.warehouse_of(project)), list[SourceTable]()
    for name, table in tables.items():
        write_deltalake(warehouse.source(name), table)
        schema = schemas[name]
        roles = {"event_id": schema.event_id, "event_time": schema.event_time, "event_type": schema.event_type}
        roles |= {} if schema.sequence is None else {"sequence": schema.sequence}
        contract = replace(contract_of(name, table), roles=roles)
        if not schema.event_type:
            del roles["event_type"]
            contract = replace(contract, constant_type="any", roles=roles)
        contracts.append(SourceTable(name, contract))
    start, end = plan.windows.end(windows[0]) - 1, plan.windows.end(windows[-1])
    about = Sources(tuple(contracts), united=True)
    run = Run(Lake.of(spark, warehouse), project, PROFILE, load_pattern(query), about, plan, "r", start, end)
    return Question(run, case.watermark, expected)


@examples(40, phases=(Phase.generate,))  # a smaller failing example would cost many jobs of Spark
@given(st.lists(sources.any_cases(), min_size=AT_ONCE, max_size=AT_ONCE))
def agree(spark: SparkSession, folder: Path, asked: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = folder / str(len(list(folder.iterdir())))
        root.mkdir()
        pairs = [(question_of(spark, root / str(number), case), case) for number, case in enumerate(asked)]
        questions = [(question, case) for question, case in pairs if question is not None]
        by_road = {"files": list[Any](), "frame": list[Any]()}
        for number, (question, _) in enumerate(questions):
            files = question.events.files()
            assert files is not None
            by_road["files"].append(streams_of(question.work(number), files))
            by_road["frame"].append(streams_of(question.work(number), question.events.frame()))
        for road, frames in by_road.items() if questions else ():
            streams = collected(frames)
            for number, (question, case) in enumerate(questions):
                rows = rows_of_member(question.run.plan, number, streams)
                assert shown(rows) == shown(question.expected), (road, sources.described(case))


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_random_patterns(spark: SparkSession, tmp_path: Path) -> None:
    agree(spark, tmp_path)
