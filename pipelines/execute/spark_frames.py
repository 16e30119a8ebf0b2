"""`trendlake.evaluate` over a frame of Spark, classic or of Connect: a plan of Spark's that computes in its workers.

No job starts, and no row comes to this process. Events are placed without being counted: by their group, and by time
shards of all years, so many windows each that few events are in two. Rows of the frame are what they are: no contract
judges them, windows at the edges hold what the frame holds.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from trendlake.cep_core.engine import compile_with, warn_of
from trendlake.cep_core.errors import BadEventsError, NotSupportedError
from trendlake.cep_core.events.local_times import in_zone, zoneless_columns
from trendlake.cep_core.events.windows import moment
from trendlake.cep_core.frames.evaluate import EventsFrame, family_rows, microseconds_of, only_type
from trendlake.cep_core.load import Query
from trendlake.cep_core.plan import AnyPlan, in_calendar
from trendlake.cep_core.sharing.run_plans import run_plan
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.pack import BLOCK_ROWS, PARTITION, SCHEMA, keep_imports, packer, typed, unpacked
from trendlake.pipelines.execute.shard_plan import SHARE, Cut, Part
from trendlake.pipelines.project.profile import Limits
from trendlake.pipelines.spark.columns import column

Batches = Iterator[pa.RecordBatch]
PARTITIONS = "spark.sql.shuffle.partitions"
MOST_SHARDS = 1 << 30
"""Time shards of all years, at most: their numbers are int32."""


def evaluate_lazily(
    query: Query,
    frame: DataFrame,
    names: Mapping[str, Any],
    *,
    reference: Mapping[str, Any] | None,
    for_each: Any,
    watermark: datetime | None,
    time_zone: str | None,
) -> DataFrame:
    """`cep_core.evaluate` over a frame of Spark; the rows as a frame of Spark, in no order. `names`: of the columns
    that play the roles of events. Raises PatternErrors, BadEventsError for columns that are missing and
    NotSupportedError for streaming frames, `sources`, `lookup`, and patterns that wait for time without a `watermark`.
    A query over the result may raise BadEventsError, and ShardTooLargeError for events of one group in one time shard
    that are more than a worker holds; both as errors of Spark's."""
    if frame.isStreaming:
        hint = "frame.writeStream.foreachBatch(lambda batch, number: ...) has each of its batches as a frame"
        raise NotSupportedError("evaluate reads no streaming frame", hint=hint)
    library: Any = SimpleNamespace(schema=schema)
    given = EventsFrame("", library, frame, schema(frame), **names)
    plan = compile_with(query, given.schema, None, family_rows(for_each))
    if reference or plan.schema.lookups:
        raise NotSupportedError("evaluate looks nothing up over a frame of Spark", hint="join the columns to the frame")
    if plan.held_back and watermark is None:
        message = "its rows wait for time to come, and a frame of Spark is not read for its latest event"
        raise NotSupportedError(message, hint="watermark=datetime(...) says how far time has come")
    needed = list(dict.fromkeys(plan.schema.sources((plan.schema.event_time, *plan.columns))))
    if given.event_id in needed and given.event_id not in given.columns.names:
        message = f"no column '{given.event_id}' (event_id) in the frame, whose rows have no number"
        raise BadEventsError(message, hint="name a column by event_id=")
    events = _events(plan, given, needed)
    zoneless = zoneless_columns(given.columns.empty_table(), needed)
    warn_of(plan, given.columns.empty_table(), () if time_zone else zoneless, stacklevel=4)
    if time_zone is not None:
        in_zone(given.columns.empty_table(), zoneless, time_zone)  # is it known?
    until = None if watermark is None else microseconds_of(watermark)
    cut = _cut(plan, int(str(frame.sparkSession.conf.get(PARTITIONS))))
    pack = _sent(_Packing(plan, cut, tuple(zoneless), time_zone or "UTC"))
    compute = _sent(_Computing(plan, cut, until, Limits().shard_rows))
    packed = events.mapInArrow(pack, from_arrow_schema(SCHEMA)).repartition(cut.partitions, column(PARTITION))
    return packed.mapInArrow(compute, from_arrow_schema(plan.result_schema))


def schema(frame: DataFrame) -> pa.Schema:
    """The frame's columns that Arrow has a type for, times in UTC."""
    fields = []
    for field in frame.schema.fields:
        try:
            fields.append(pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC")))
        except UnsupportedOperationException:
            continue
    return pa.schema(fields)


def _events(plan: AnyPlan, given: EventsFrame, needed: Sequence[str]) -> DataFrame:
    """Of the frame the columns and the types that the plan reads, in the form in which they travel (`typed`)."""
    names = [name for name in needed if name in given.columns.names]
    events = given.frame.select(*map(column, names))
    kind = given.event_type
    if kind in needed and kind not in given.columns.names:
        events = events.withColumn(kind, sf.lit(only_type(plan, kind)))
    return typed(plan, events)  # type: ignore[return-value]


def _cut(plan: AnyPlan, partitions: int) -> Cut:
    """Time shards of all years. There is one where events last, where a window holds all that came before it, and where
    rows are held back, which are not those of windows that have ended."""
    windows = in_calendar(plan)
    if plan.windows.endless or plan.held_back or plan.interval_start is not None:
        return Cut(windows, len(windows), partitions)
    size = max(1, SHARE * (plan.windows.overlap - 1), -(-len(windows) // MOST_SHARDS))
    return Cut(windows, min(size, len(windows)), partitions)


def _sent(work: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """`work` as a function that a worker can read though Trendlake is not installed there: then it is an error."""
    text = pickle.dumps(work)

    def do(batches: Any) -> Any:
        import pickle

        try:
            import trendlake.pipelines.execute.spark_frames  # noqa: F401 - is it there?
        except ImportError as error:
            message = f"[WORKER_PACKAGE] Spark's workers need the package trendlake ({error})"
            raise RuntimeError(f"{message} | in their environment: pip install trendlake-*.whl") from None
        yield from pickle.loads(text)(batches)

    return do


@dataclass(frozen=True)
class _Packing:
    """The first half, for `mapInArrow`: events in, rows of `pack.SCHEMA` out. `zoneless`: columns whose times have no
    zone, which are read in `zone`."""

    plan: AnyPlan
    cut: Cut
    zoneless: tuple[str, ...]
    zone: str

    def __call__(self, batches: Batches) -> Batches:
        return packer(self.plan, (Part(self.plan, self.cut),))(map(self._in_utc, batches))

    def _in_utc(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.zoneless or not batch.num_rows:
            return batch
        (moved,) = in_zone(pa.Table.from_batches([batch]), self.zoneless, self.zone).combine_chunks().to_batches()
        return moved


@dataclass(frozen=True)
class _Computing:
    """The second half: packed events of some units, each whole, in, result rows out. `limit`: the events of one unit
    that a worker may hold."""

    plan: AnyPlan
    cut: Cut
    until: int | None
    limit: int

    def __call__(self, batches: Batches) -> Batches:
        keep_imports("computing")
        held: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            for shard, events in unpacked(self.plan, batch):
                held.setdefault(shard, []).append(events)
        for first, last, events in self._taken(held):
            windows = range(self.cut.of(first)[0], self.cut.of(last)[-1] + 1)
            whole = None if self.cut.shards == 1 else windows
            yield from run_plan(self.plan, events, whole, self.until).cast(self.plan.result_schema).to_batches()

    def _taken(self, held: dict[int, list[pa.RecordBatch]]) -> Iterator[tuple[int, int, pa.Table]]:
        """The first and the last time shard, and their events, which are let go. Those of several shards are computed
        at once where no event is in two."""
        apart = self.plan.windows.overlap > 1
        taken: list[pa.RecordBatch] = []
        first = None
        shards = sorted(held)
        for number, shard in enumerate(shards):
            first = shard if first is None else first
            self._check(shard, held[shard])
            taken += held.pop(shard)
            full = apart or sum(batch.num_rows for batch in taken) >= BLOCK_ROWS
            if full or number == len(shards) - 1:
                yield first, shard, pa.Table.from_batches(taken).unify_dictionaries()
                first, taken = None, []

    def _check(self, shard: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Raises ShardTooLargeError where one group has more events than a worker may hold."""
        if sum(batch.num_rows for batch in batches) <= self.limit:
            return
        key = list(self.plan.unit_key)
        events = pa.Table.from_batches(batches).unify_dictionaries()
        if key:
            events = events.select(key)
            counts = events.group_by(key).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
            largest = counts.slice(0, 1).to_pylist()[0]
            rows = largest.pop("count_all")
            group = ", ".join(f"{name} = {value!r}" for name, value in largest.items())
        else:
            rows, group = events.num_rows, "the whole frame"
        if rows > self.limit:
            begins = moment(self.plan.windows.start(self.cut.of(shard)[0])).isoformat()
            message = f"{group}: {rows} events in the windows from {begins}, more than the {self.limit} of a worker"
            raise ShardTooLargeError(message, hint="shorten within, or group by more")
