"""Computes the result rows of events in shards, by the kernels in Arrow workers, and stages them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from pipelines.delta.parquet_scan import Files
from pipelines.errors import ShardTooLargeError
from pipelines.execute.distribute import choose, distribute, folder_here
from pipelines.execute.shard_plan import Cut, likely
from pipelines.execute.worker import Batches, kernel_of
from pipelines.results.staging import leave_staged, write_staged
from pipelines.runs.run import Run
from pipelines.spark.columns import column
from pipelines.spark.session import quiet
from pipelines.spark.worker_errors import told_by_workers


def needed(run: Run, good: DataFrame) -> DataFrame:
    """Of good rows of the source what the plan reads: its columns and its event types."""
    if run.contract.constant_type is not None:
        good = good.withColumn(run.plan.schema.event_type, sf.lit(run.contract.constant_type))
    if run.contract.made_id:
        good = good.withColumn(run.plan.schema.event_id, _id_of_key(run.contract.key))
    types = run.plan.event_types
    if types is not None and not run.contract.assures(types):
        good = good.where(column(run.plan.schema.event_type).isin(list(types)))
    return good.select(*[column(name) for name in run.plan.columns])


def _id_of_key(key: tuple[str, ...]) -> Column:
    """The values of a key as one text, another for each key: `["UA","2013-01-02 09:00:00"]`."""
    return sf.to_json(sf.array(*[column(name).cast("string") for name in key]))


def cut_and_stage(
    run: Run, events: DataFrame | Files, rows: int, version: int, watermark: int | None,
    only: Callable[[DataFrame], DataFrame] | None = None,
) -> tuple[int, int]:  # fmt: skip
    """As `write_staged`, of the result rows (those that `only` keeps), with the cut that is likely to do; where a
    worker says that it does not, with one made by counting: that would read every event once more, and is hardly ever
    needed."""
    limit, cores = run.profile.limits.shard_rows, run.spark.sparkContext.defaultParallelism
    cut = likely(run.plan, rows, run.windows, limit, cores)
    if cut is not None:
        try:
            with quiet(run.spark):
                return _staged(run, events, cut, version, watermark, only)
        except ShardTooLargeError:
            pass
    with told_by_workers():
        cut = choose(run.plan, events, rows, run.windows, limit, cores)
    return _staged(run, events, cut, version, watermark, only)


def _staged(
    run: Run, events: DataFrame | Files, cut: Cut, version: int, watermark: int | None,
    only: Callable[[DataFrame], DataFrame] | None,
) -> tuple[int, int]:  # fmt: skip
    """As `cut_and_stage`, with this cut. Raises ShardTooLargeError."""
    with folder_here(run.spark) as folder:
        if folder is not None and only is None:
            packed = distribute(run.plan, events, cut, folder)
            staged = leave_staged(run, packed, _kernel(run, cut, watermark), version)
            if staged is not None:
                return staged
        results = computed(run, events, cut, watermark, folder)
        return write_staged(run, results if only is None else only(results), version)


def computed(
    run: Run, events: DataFrame | Files, cut: Cut, watermark: int | None = None, folder: str | None = None
) -> DataFrame:
    """The result rows, columns of `plan.result_schema`. `folder`: as of `distribute`."""
    schema = from_arrow_schema(run.plan.result_schema)
    return distribute(run.plan, events, cut, folder).mapInArrow(_kernel(run, cut, watermark), schema)


def _kernel(run: Run, cut: Cut, watermark: int | None) -> Callable[[Batches], Batches]:
    return kernel_of(run.plan, cut, run.profile.limits.shard_rows, watermark)


def no_rows(run: Run) -> DataFrame:
    return run.spark.createDataFrame([], from_arrow_schema(run.plan.result_schema))
