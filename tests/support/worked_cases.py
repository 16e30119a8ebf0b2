"""The worked cases as sources of a lake: each has a Delta table, a contract and runs of its own, so that what answers
is the pipelines' own path: the pinned version, its good rows, the cut, the kernels in Arrow workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tests.support.cases import Case
from tests.support.engines import from_table, to_table
from trendlake.cep_core import AnyPlan, TrendlakeError, compile_plan, load_pattern
from trendlake.cep_core.plan import event_windows
from trendlake.pipelines.contracts.contract import Column, Contract
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.execute.channel import Channel, Member, joint
from trendlake.pipelines.execute.distribute import choose, distribute
from trendlake.pipelines.execute.shard_plan import Cut
from trendlake.pipelines.execute.worker import Batches, Work, answers_of, cause_of
from trendlake.pipelines.lake.here.parquet_scan import Files
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.results.source_events import SourceEvents, files_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record

FEED = {"delta.enableChangeDataFeed": "true"}
ROLES = {name: name for name in ("event_id", "event_time", "event_type")}
CHECKED = Record("r", None, "check_source", source_version=0, rows_quarantined=0)
"""What check_source would have recorded of a table of one version that breaks no rule."""
AT_ONCE = 20
"""Questions of one Spark job."""
STREAMS = pa.schema({"number": pa.int64(), "rows": pa.binary()})
PROFILE = Profile(master="local[2]", limits=Limits(driver_rows=1))
"""Workers compute, however few the events."""


def source_of(
    project: Project,
    case: Case,
    commits: Sequence[list[dict[str, Any]]] = (),
    table_of: Callable[[Sequence[Mapping[str, Any]]], pa.Table] = to_table,
    *,
    feed: bool = False,
) -> Contract:
    """The case's events as a Delta table, of one version or of as many as there are `commits`; its contract. `feed`:
    with Delta's change feed."""
    path = Warehouse(PROFILE.warehouse_of(project)).source(case.name)
    for rows in commits or [case.events]:
        events = table_of(rows)
        write_deltalake(path, events, mode="append", configuration=FEED if feed else None)
    return contract_of(case.name, events)


def contract_of(name: str, events: pa.Table) -> Contract:
    schema = from_arrow_schema(events.schema)
    columns = tuple(Column(f.name, f.dataType.simpleString(), required=False) for f in schema.fields)
    return Contract(name, "1.0.0", columns, rules=(), key=("event_id",), roles=ROLES)


def run_of(
    spark: SparkSession,
    project: Project,
    contract: Contract,
    query: Mapping[str, Any],
    times: list[int],
    held: Sequence[range] | None = None,
) -> Run:
    """The run that computes every window which holds one of `times` (microseconds), or those that events are `held` by,
    with a worker's limit of what the fullest window holds."""
    pattern = load_pattern(query)
    plan = compile_plan(pattern, contract.event_schema())
    held = held or [windows for time in times if (windows := plan.windows.holding(time))]
    windows = windows_holding(plan, times, held)
    fullest = len(times) if plan.windows.ahead else max(sum(j in own for own in held) for j in windows)
    profile = PROFILE.model_copy(update={"limits": Limits(shard_rows=fullest, driver_rows=1)})
    start, end = plan.windows.end(windows[0]) - 1, plan.windows.end(windows[-1])
    warehouse = Warehouse(profile.warehouse_of(project))
    return Run(
        Lake.of(spark, warehouse),
        project,
        profile,
        pattern,
        Sources.of(contract),
        plan,
        f"run {contract.name}",
        start,
        end,
    )


def windows_holding(plan: AnyPlan, times: Sequence[int], held: Sequence[range] | None = None) -> range:
    """The windows of `run_of`."""
    if plan.windows.ahead:  # those in whose panes there are events; a window may hold all events
        owners = [plan.windows.after(time) for time in times]
        return range(min(owners), max(owners) + 1)
    held = held or [windows for time in times if (windows := plan.windows.holding(time))]
    return range(min(own[0] for own in held), max(own[-1] for own in held) + 1)


@dataclass(frozen=True)
class Question:
    """A run of which the rows are asked for, over the `rows` events that a version of its source has in its time;
    `shift`: how many microseconds later than in its case they are there."""

    run: Run
    rows: int
    version: int = 0
    shift: int = 0

    @property
    def checked(self) -> Record:
        return replace(CHECKED, source_version=self.version)

    def chosen(self) -> tuple[Run, Files, Cut]:
        """The files that the workers read, and the cut as the step itself makes it of events of which a worker may hold
        no more than the fullest window has."""
        run, files = self.run, files_of(self.run, self.checked)
        assert files is not None
        if len(run.windows) == 1:
            return replace(run, profile=PROFILE), files, Cut(run.windows, 1, 1)
        return run, files, choose(run.plan, files, self.rows, run.windows, run.profile.limits.shard_rows, cores=2)


Answers = dict[str, list[dict[str, Any]]]
"""Rows of a run's windows by the name of the cut."""


def answers(questions: Sequence[Question]) -> list[Answers]:
    """Of each question, by few Spark jobs, as most of the time of a small one goes to what Spark does for any. By a
    shard for each window, of rows that Spark has read, those of a version of a source together, as in a batch, but
    where the numbers of the types travel apart from where their names do; and by the cut that the step itself chooses,
    of files that the workers read, each run by itself."""
    by_source: dict[tuple[str, int, bool], list[int]] = {}
    for number, question in enumerate(questions):
        plan, contract = question.run.plan, question.run.contract
        named = plan.event_types is None or plan.schema.event_type in plan.unit_key
        by_source.setdefault((contract.name, question.version, named), []).append(number)
    read = [_read_together({n: questions[n] for n in numbers}) for numbers in by_source.values()]
    own = [_read_alone(number, question) for number, question in enumerate(questions)]
    by_cut = {"windows": collected(read), "chosen": collected(own)}
    return [
        {cut: _rows(question, n, streams) for cut, streams in by_cut.items()} for n, question in enumerate(questions)
    ]


def collected(frames: Sequence[DataFrame]) -> pa.Table:
    """All rows of some frames of `STREAMS`, by few Spark jobs."""
    groups = [frames[first : first + AT_ONCE] for first in range(0, len(frames), AT_ONCE)]
    return pa.concat_tables([reduce(DataFrame.unionAll, group).toArrow() for group in groups])


def _rows(question: Question, number: int, streams: pa.Table) -> list[dict[str, Any]]:
    """Of one question, times as in its case."""
    return from_table(moved(rows_of_member(question.run.plan, number, streams), -question.shift))


def rows_of_member(plan: AnyPlan, number: int, streams: pa.Table) -> pa.Table:
    """The rows of one member of all those in `streams`."""
    mine = streams.filter(pc.equal(streams["number"], number))["rows"]
    tables = [pa.ipc.open_stream(stream.as_buffer()).read_all() for stream in mine]
    return pa.concat_tables([plan.result_schema.empty_table(), *tables])


def _read_together(questions: Mapping[int, Question]) -> DataFrame:
    """Rows of `STREAMS`."""
    runs = {number: question.run for number, question in questions.items()}
    channels = tuple(Channel.of([Member(number, run.plan, run.windows)]) for number, run in runs.items())
    cuts = tuple(Cut(run.windows, 1, 2) for run in runs.values())
    work = Work(joint(channels), channels, cuts, PROFILE.limits.shard_rows)
    sources = [(question.run, question.checked) for question in questions.values()]
    return streams_of(work, SourceEvents.of(sources, work.reading).frame())


def _read_alone(number: int, question: Question) -> DataFrame:
    """Rows of `STREAMS`."""
    run, files, cut = question.chosen()
    channel = Channel.of([Member(number, run.plan, run.windows)])
    return streams_of(Work(run.plan, (channel,), (cut,), run.profile.limits.shard_rows), files)


def streams_of(work: Work, events: DataFrame | Files) -> DataFrame:
    """The rows of each answer of a worker as an Arrow stream in one column: rows of patterns with other columns fit
    beside them, and every value stays as the kernels have left it."""
    answers = answers_of(work)

    def streams(batches: Batches) -> Batches:
        for number, answer in answers(batches):
            if isinstance(answer, TrendlakeError):
                raise cause_of(answer)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, answer.schema) as stream:
                stream.write_table(answer)
            yield pa.RecordBatch.from_pydict({"number": [number], "rows": [sink.getvalue().to_pybytes()]}, STREAMS)

    return distribute(work.reading, events, work.parts).mapInArrow(streams, from_arrow_schema(STREAMS))


def moved(table: pa.Table, shift: int) -> pa.Table:
    """Every moment `shift` microseconds later."""
    for number, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            later = pc.add(table[column.name].cast(pa.int64()), shift).cast(column.type)
            table = table.set_column(number, column, later)
    return table


def questions_of(
    spark: SparkSession,
    project: Project,
    name: str,
    asked: Sequence[tuple[Case, Mapping[str, Any]]],
    table_of: Callable[[Sequence[Mapping[str, Any]]], pa.Table] = to_table,
) -> list[Question]:
    """The queries over the events of their cases, in sources whose names begin with `name`. Cases whose columns of one
    name are of one type lie in one source, at times of their own, each after the ones before; but one has a source of
    its own if its query speaks of a point in time or of a clock, or reads all history."""
    sources, questions = list[_Source](), list[Question]()
    for case, query in asked:
        table = table_of(case.events)
        contract = contract_of("", table)
        plan = compile_plan(load_pattern(query), contract.event_schema())
        times = pc.drop_null(table["event_time"]).cast(pa.int64()).to_pylist()
        alone = "valid_" in str(query) or "time_zone" in query or plan.windows.endless
        source = next((one for one in sources if not (alone or one.alone) and one.fits(table)), None)
        if source is None:
            sources.append(source := _Source(f"{name}_{len(sources)}", alone))
        slide = plan.windows.step
        reach = 2 * plan.windows.longest
        first = min([*times, *_starts(query, table)], default=0)
        shift = 0 if alone else -(-(source.end + reach - first) // slide) * slide
        shifted = moved(table, shift)
        source.add(shifted, max(times, default=0) + shift + reach)
        later = [time + shift for time in times]
        held = None
        if plan.interval_start is not None:
            firsts, lasts = event_windows(plan, np.array(later), shifted)
            held = [range(a, b + 1) for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True) if a <= b]
        run = run_of(spark, project, replace(contract, name=source.name), query, later, held)
        questions.append(Question(run, len(times), shift=shift))
    warehouse = Warehouse(PROFILE.warehouse_of(project))
    for source in sources:
        write_deltalake(warehouse.source(source.name), pa.concat_tables(source.tables, promote_options="default"))
    return questions


def _starts(query: Mapping[str, Any], table: pa.Table) -> list[int]:
    """When events with intervals begin."""
    name = query.get("interval_start")
    return [] if name is None else pc.drop_null(table[name]).cast(pa.int64()).to_pylist()


@dataclass
class _Source:
    """Tables of cases, up to the moment `end`."""

    name: str
    alone: bool
    tables: list[pa.Table] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    end: int = 0

    def fits(self, table: pa.Table) -> bool:
        return all(self.types.get(column.name, column.type) == column.type for column in table.schema)

    def add(self, table: pa.Table, end: int) -> None:
        self.tables.append(table)
        self.types |= {column.name: column.type for column in table.schema}
        self.end = end
