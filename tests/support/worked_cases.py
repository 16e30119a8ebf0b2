"""The worked cases as sources of a lake: each has a Delta table, a contract and runs of its own, so that what answers
is the pipelines' own path: the pinned version, its good rows, the cut, the kernels in Arrow workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from cep_core import compile_plan, load_pattern
from pipelines.contracts.contract import Column, Contract
from pipelines.delta.parquet_scan import Files
from pipelines.delta.tables import Warehouse
from pipelines.execute.distribute import choose
from pipelines.execute.shard_plan import Cut
from pipelines.project.paths import Project
from pipelines.project.profile import Limits, Profile
from pipelines.results.computation import computed
from pipelines.results.source_events import files_of, read_events
from pipelines.runs.run import Run
from tests.support.cases import Case
from tests.support.engines import from_table, to_table

ROLES = {name: name for name in ("event_id", "event_time", "event_type")}
CHECKED = {"source_version": 0, "rows_quarantined": 0, "checks": []}
"""What check_source would have recorded of a table of one version that breaks no rule."""
CUT = "cut"
PROFILE = Profile(master="local[2]", limits=Limits(driver_rows=0))
"""Workers compute, however few the events."""


def source_of(
    project: Project, case: Case, commits: Sequence[list[dict[str, Any]]] = (),
    table_of: Callable[[Sequence[Mapping[str, Any]]], pa.Table] = to_table,
) -> Contract:  # fmt: skip
    """The case's events as a Delta table, of one version or of as many as there are `commits`; its contract."""
    path = Warehouse(PROFILE.warehouse_of(project)).source(case.name)
    for rows in commits or [case.events]:
        events = table_of(rows)
        write_deltalake(path, events, mode="append")  # by Spark a quarter of a case's time
    schema = from_arrow_schema(events.schema)
    columns = tuple(Column(f.name, f.dataType.simpleString(), required=False) for f in schema.fields)
    return Contract(case.name, "1.0.0", columns, rules=(), key=("event_id",), roles=ROLES)


def run_of(
    spark: SparkSession, project: Project, contract: Contract, query: Mapping[str, Any], times: list[int]
) -> Run:
    """The run that computes every window which holds one of `times` (microseconds), with a worker's limit of what the
    fullest window holds."""
    pattern = load_pattern(query)
    plan = compile_plan(pattern, contract.event_schema())
    held = [plan.windows.holding(time) for time in times]
    first, last = min(windows[0] for windows in held), max(windows[-1] for windows in held)
    fullest = max(sum(j in windows for windows in held) for j in range(first, last + 1))
    profile = PROFILE.model_copy(update={"limits": Limits(shard_rows=fullest, driver_rows=0)})
    start, end = plan.windows.end(first) - 1, plan.windows.end(last)
    warehouse = Warehouse(profile.warehouse_of(project))
    return Run(spark, project, profile, warehouse, pattern, contract, plan, f"run {contract.name}", start, end)


def answers(run: Run, rows: int, version: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The rows of the run's windows, of a version of the source, by the name of the cut, all by one Spark job: a shard
    for each window, and as the step itself cuts events of which a worker may hold no more than the fullest window
    has. The former of rows that Spark has read, the latter of files that the workers read."""
    checked = {**CHECKED, "source_version": version}
    events, files = read_events(run, checked), files_of(run, checked)
    assert files is not None
    roomy = replace(run, profile=PROFILE)
    cuts: dict[str, tuple[Run, DataFrame | Files, Cut]] = {"windows": (roomy, events, Cut(run.windows, 1, 2))}
    if len(run.windows) > 1:
        limit = run.profile.limits.shard_rows
        cuts["chosen"] = (run, files, choose(run.plan, files, rows, run.windows, limit, cores=2))
    else:
        cuts["files"] = (roomy, files, Cut(run.windows, 1, 1))
    frames = [computed(one, read, cut).withColumn(CUT, sf.lit(name)) for name, (one, read, cut) in cuts.items()]
    rows_of_cuts = frames[0].unionAll(frames[1]).toArrow()
    return {
        name: from_table(rows_of_cuts.filter(pa.compute.equal(rows_of_cuts[CUT], name)).drop_columns([CUT]))
        for name in cuts
    }
