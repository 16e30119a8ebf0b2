"""What runs in Spark's Python workers: Arrow batches of one partition in, result rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from cep_core import AnyPlan, run_plan
from cep_core.buffers import arrow, numbers
from pipelines.cut import Cut
from pipelines.errors import ShardTooLargeError
from pipelines.packing import SHARD, keep_imports, unpacked

Batches = Iterator[pa.RecordBatch]


def kernel_of(plan: AnyPlan, cut: Cut, limit: int, watermark: int | None = None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: takes a partition's packed rows one by one, holds at most `limit` events, sorts
    and runs the kernels shard by shard, yields batches of `plan.result_schema`. `watermark`: as of `run_plan`."""

    def compute_partition(batches: Batches) -> Batches:
        keep_imports("computing")
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            for events in unpacked(plan, batch):
                rows += events.num_rows
                if rows > limit:
                    raise ShardTooLargeError(f"a partition has more than the {limit} rows a worker may hold")
                held.append(events)
        if rows:
            table = pa.Table.from_batches(held).unify_dictionaries()
            held.clear()
            for shard, events in by_shard(table):
                yield from run_plan(plan, events, cut.of(shard), watermark).cast(plan.result_schema).to_batches()

    return compute_partition


def by_shard(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard, without the shard's number; of a table without numbers, all are of shard 0."""
    if SHARD not in table.column_names:
        yield 0, table
        return
    shards = numbers(table[SHARD].combine_chunks())
    events = table.drop_columns([SHARD])
    if (shards == shards[0]).all():
        yield int(shards[0]), events
        return
    order = np.argsort(shards, kind="stable")
    ordered = shards[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    for start, end in zip(starts, np.append(starts[1:], len(ordered)), strict=True):
        yield int(ordered[start]), events.take(arrow(order[start:end]))
