"""The code that runs in Spark's Python workers: the packed events of one partition in, result rows of each plan out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from trendlake.cep_core import AnyPlan, run_plans
from trendlake.cep_core.errors import EngineFailureError, TrendlakeError
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.channel import Channel, Member
from trendlake.pipelines.execute.pack import PARTITION, keep_imports, unpacked
from trendlake.pipelines.execute.sent_tables import SentTables
from trendlake.pipelines.execute.shard_plan import Cut, Part

Batches = Iterator[pa.RecordBatch]
Answers = Iterator[tuple[int, pa.Table | TrendlakeError]]
"""A member's number, and rows of `plan.result_schema`, or the error after which there are no more of it."""


@dataclass(frozen=True)
class Work:
    """The work of the workers of one Spark job: `reading` is that of all `channels`, `cuts` those of each; `limit`: the
    events that a worker may hold; `watermark`: as of `run_plans`; `reference`: the tables of lookups."""

    reading: Reading
    channels: tuple[Channel, ...]
    cuts: tuple[Cut, ...]
    limit: int
    watermark: int | None = None
    reference: SentTables | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of each channel; the partitions of one follow those of the one before."""
        parts, first = list[Part](), 0
        for channel, cut in zip(self.channels, self.cuts, strict=True):
            parts.append(Part(channel.reading, cut, first))
            first += cut.partitions
        return tuple(parts)

    def alone(self, number: int) -> Work:
        """The same work with one member only, over the same events."""
        channels = (replace(c, members=tuple(m for m in c.members if m.number == number)) for c in self.channels)
        return replace(self, channels=tuple(channels))

    def of(self, partition: int) -> tuple[Channel, Cut]:
        """Whose a partition is."""
        owners = zip(self.channels, self.cuts, self.parts, strict=True)
        return next((channel, cut) for channel, cut, part in owners if partition in part.partitions)


def answers_of(work: Work) -> Callable[[Batches], Answers]:
    """The function that takes a partition's packed rows one by one, holds at most `limit` events, sorts and runs the
    kernels shard by shard. An error of one plan stops no other."""

    def compute_partition(batches: Batches) -> Answers:
        keep_imports("computing")
        held: dict[int, list[pa.RecordBatch]] = {}
        rows, owner = 0, None
        for batch in batches:
            if batch.num_rows:
                owner = owner or work.of(batch.column(PARTITION)[0].as_py())
            for shard, events in unpacked(work.reading, batch):
                rows += events.num_rows
                if rows > work.limit:
                    raise ShardTooLargeError(f"a partition has more than the {work.limit} rows a worker may hold")
                held.setdefault(shard, []).append(events)
        if owner is not None:
            yield from _computed(*owner, held, work)

    return compute_partition


def _computed(channel: Channel, cut: Cut, held: dict[int, list[pa.RecordBatch]], work: Work) -> Answers:
    """`held`: the events of each time shard, which are let go one after the other."""
    failed: set[int] = set()
    reference = None if work.reference is None else work.reference.tables()
    for shard in sorted(held):
        events = pa.Table.from_batches(held.pop(shard)).unify_dictionaries()
        members = [(member, own) for member, own in channel.of_shard(cut, shard) if member.number not in failed]
        plans, windows = [member.plan for member, _ in members], [own for _, own in members]
        for at, answer in run_plans(plans, events, windows, work.watermark, reference):
            number = members[at][0].number
            if isinstance(answer, TrendlakeError):
                failed.add(number)
                yield number, answer
            else:
                yield number, answer.cast(plans[at].result_schema)


def kernel_of(plan: AnyPlan, cut: Cut, limit: int, watermark: int | None = None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` that computes one plan: yields batches of `plan.result_schema`."""
    channel = Channel.of([Member(0, plan, cut.windows)])
    return rows_of(Work(plan, (channel,), (cut,), limit, watermark))


def rows_of(work: Work) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` that yields the rows of the one member of `work`, and raises its error."""
    answers = answers_of(work)

    def compute_partition(batches: Batches) -> Batches:
        for _, answer in answers(batches):
            if isinstance(answer, TrendlakeError):
                raise cause_of(answer)
            yield from answer.to_batches()

    return compute_partition


def cause_of(error: TrendlakeError) -> BaseException:
    """The failure of the engine, if the user cannot fix it; else the error."""
    return error.__cause__ if isinstance(error, EngineFailureError) and error.__cause__ is not None else error
