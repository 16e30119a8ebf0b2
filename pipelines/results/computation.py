"""Computes the result rows of events in shards, by the kernels in Arrow workers, and stages them: those of one run, or
of several that read the same events.

An error of one run's data leaves the others as they are. A Spark job that fails as a whole, by a shard that is too
large or a worker that dies, is tried again with fewer runs, until those that fail alone are alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core import run_plans
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import OtherwiseWrittenError, ShardTooLargeError
from trendlake.pipelines.execute.channel import Channel, Member, channels_of, joint
from trendlake.pipelines.execute.distribute import choose, distribute, folder_here
from trendlake.pipelines.execute.sent_tables import SentTables
from trendlake.pipelines.execute.shard_plan import Cut, likely
from trendlake.pipelines.execute.worker import Answers, Work, answers_of, rows_of
from trendlake.pipelines.lake.here.parquet_scan import Files
from trendlake.pipelines.results.staging import Staged, leave_staged, write_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.session import quiet
from trendlake.pipelines.spark.worker_errors import told_by_workers

ReferenceTables = Mapping[str, pa.Table]
"""The good rows of the tables that lookups read, by name."""
Outcomes = dict[int, Staged | Exception]
"""The staged rows of each run, by its number, or the error that prevented them."""


def cut_and_stage(
    run: Run,
    events: DataFrame | Files,
    rows: int,
    sources: Versions,
    watermark: int | None,
    only: Callable[[DataFrame], DataFrame] | None = None,
    reference: ReferenceTables | None = None,
) -> Staged:
    """As `stage_together` of one run, whose error it raises; of its result rows those that `only` keeps."""
    staged = Staging({0: run}, events, rows, sources, watermark, only, reference).staged()[0]
    if isinstance(staged, Exception):
        raise staged
    return staged


def stage_together(
    runs: Mapping[int, Run],
    events: DataFrame | Files,
    rows: int,
    sources: Versions,
    watermark: int | None,
    reference: ReferenceTables | None = None,
) -> Outcomes:
    """Computes and stages the rows of runs (each with windows) that read the same `events`, at most `rows`, and the
    same reference tables. Raises OtherwiseWrittenError, and whatever ends Spark."""
    return Staging(runs, events, rows, sources, watermark, reference=reference).staged()


@dataclass(frozen=True)
class Staging:
    """As of `stage_together`; `only`: as of `cut_and_stage`."""

    runs: Mapping[int, Run]
    events: DataFrame | Files
    rows: int
    sources: Versions
    watermark: int | None = None
    only: Callable[[DataFrame], DataFrame] | None = None
    reference: ReferenceTables | None = None

    @property
    def run(self) -> Run:
        """Any of them: they have lake and profile in common."""
        return next(iter(self.runs.values()))

    @property
    def limit(self) -> int:
        return self.run.profile.limits.shard_rows

    @property
    def cores(self) -> int:
        return self.run.lake.spark.sparkContext.defaultParallelism

    def staged(self) -> Outcomes:
        members = [Member(number, run.plan, run.windows) for number, run in self.runs.items()]
        return self._of(channels_of(members))

    def _of(self, channels: Sequence[Channel]) -> Outcomes:
        """With the cuts that are likely to do, in one job; where that fails, each channel by itself, with a cut made by
        counting, which reads every event once more; at last each half of a channel."""
        cuts = [likely(channel.reading, self.rows, channel.asked, self.limit, self.cores) for channel in channels]
        failure: Exception | None = None
        if None not in cuts:
            staged = self._tried(channels, [cut for cut in cuts if cut is not None])
            if not isinstance(staged, Exception):
                return staged
            failure = staged
        if len(channels) > 1:
            return {number: item for channel in channels for number, item in self._of([channel]).items()}
        (channel,) = channels
        if failure is None or isinstance(failure, ShardTooLargeError):
            staged = self._counted(channel)
            if not isinstance(staged, Exception):
                return staged
            failure = staged
        if len(channel.members) == 1:
            return {channel.members[0].number: failure}
        return {number: item for half in channel.halves() for number, item in self._of([half]).items()}

    def _counted(self, channel: Channel) -> Outcomes | Exception:
        try:
            with told_by_workers():
                cut = choose(channel.reading, self.events, self.rows, channel.asked, self.limit, self.cores)
        except Exception as error:
            return self._failure(error)
        return self._tried([channel], [cut])

    def _tried(self, channels: Sequence[Channel], cuts: Sequence[Cut]) -> Outcomes | Exception:
        sent = SentTables.of(self.run.lake.spark, self.reference)
        try:
            with quiet(self.run.lake.spark):
                about = self.limit, self.watermark, sent
                return self._job(Work(joint(channels), tuple(channels), tuple(cuts), *about))
        except Exception as error:
            return self._failure(error)
        finally:
            if sent is not None:
                sent.free()

    def _failure(self, error: Exception) -> Exception:
        """`error`, if fewer runs may do without it; else it is raised."""
        if isinstance(error, OtherwiseWrittenError) or self.run.lake.ended:
            raise error
        return error

    def _job(self, work: Work) -> Outcomes:
        runs = {member.number: self.runs[member.number] for channel in work.channels for member in channel.members}
        with folder_here(self.run.lake.spark) as folder:
            packed = distribute(work.reading, self.events, work.parts, folder)
            if folder is not None and self.only is None:
                left = leave_staged(runs, packed, answers_of(work), self.sources)
                if left is not None:
                    return left
            return self._by_spark(runs, packed, work)

    def _by_spark(self, runs: Mapping[int, Run], packed: DataFrame, work: Work) -> Outcomes:
        """The events are brought to the workers once, and computed there for one run after the other."""
        if len(runs) == 1:
            return {number: self._written(run, packed, work) for number, run in runs.items()}
        packed = packed.persist(StorageLevel.DISK_ONLY)
        try:
            return {number: self._kept(run, packed, work.alone(number)) for number, run in runs.items()}
        finally:
            packed.unpersist()

    def _kept(self, run: Run, packed: DataFrame, work: Work) -> Staged | Exception:
        """The staged rows, or an error of the run's own."""
        try:
            return self._written(run, packed, work)
        except (ShardTooLargeError, OtherwiseWrittenError):
            raise
        except TrendlakeError as error:
            return error

    def _written(self, run: Run, packed: DataFrame, work: Work) -> Staged:
        results = packed.mapInArrow(rows_of(work), from_arrow_schema(run.plan.result_schema))
        return write_staged(run, results if self.only is None else self.only(results), self.sources)


def computed(
    run: Run, events: DataFrame | Files, cut: Cut, watermark: int | None = None, folder: str | None = None
) -> DataFrame:
    """The result rows, columns of `plan.result_schema`. `folder`: as of `distribute`."""
    channel = Channel.of([Member(0, run.plan, cut.windows)])
    work = Work(run.plan, (channel,), (cut,), run.profile.limits.shard_rows, watermark)
    packed = distribute(work.reading, events, work.parts, folder)
    return packed.mapInArrow(rows_of(work), from_arrow_schema(run.plan.result_schema))


def answers_here(
    runs: Mapping[int, Run],
    events: pa.Table | Mapping[str, pa.Table],
    watermark: int | None,
    reference: ReferenceTables | None = None,
) -> Answers:
    """The rows of runs over `events`, all columns (of several tables by name), or their errors, computed in this
    process."""
    numbers, plans = list(runs), [run.plan for run in runs.values()]
    windows = [run.windows for run in runs.values()]
    for at, answer in run_plans(plans, events, windows, watermark, reference):
        yield numbers[at], answer if isinstance(answer, TrendlakeError) else answer.cast(plans[at].result_schema)
