"""What runs in Spark's Python workers: Arrow batches of one partition in, result rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from cep_core import AnyPlan, run_plan
from pipelines.errors import ShardTooLargeError
from pipelines.execute.pack import keep_imports, unpacked
from pipelines.execute.shard_plan import Cut

Batches = Iterator[pa.RecordBatch]


def kernel_of(plan: AnyPlan, cut: Cut, limit: int, watermark: int | None = None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: takes a partition's packed rows one by one, holds at most `limit` events, sorts
    and runs the kernels shard by shard, yields batches of `plan.result_schema`. `watermark`: as of `run_plan`."""

    def compute_partition(batches: Batches) -> Batches:
        keep_imports("computing")
        held: dict[int, list[pa.RecordBatch]] = {}
        rows = 0
        for batch in batches:
            for shard, events in unpacked(plan, batch):
                rows += events.num_rows
                if rows > limit:
                    raise ShardTooLargeError(f"a partition has more than the {limit} rows a worker may hold")
                held.setdefault(shard, []).append(events)
        for shard in sorted(held):
            table = pa.Table.from_batches(held.pop(shard)).unify_dictionaries()
            yield from run_plan(plan, table, cut.of(shard), watermark).cast(plan.result_schema).to_batches()

    return compute_partition
