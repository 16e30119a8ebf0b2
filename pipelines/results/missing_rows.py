"""Events without a row in a reference table: how many a run has, and by which keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.derived import one_table, read_by_lookups, reports
from trendlake.cep_core.events.lookup import EXAMPLES, Report
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.execute.sent_tables import SentTables
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.results.reference_tables import reference_tables
from trendlake.pipelines.results.source_events import SourceEvents
from trendlake.pipelines.results.union_events import UnionEvents
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.worker_errors import told_by_workers

MISSING = "lookup_missing"
Rows: TypeAlias = pa.Table | Mapping[str, pa.Table]
"""Events; of several tables by name."""
Batches = Iterator[pa.RecordBatch]
_COUNTED = pa.schema({"lookup": "string", "key": "string", "events": "int64"})
"""The events with a `key` without a row; NULL: all that were looked up."""


@dataclass(frozen=True)
class Counts:
    """Of one lookup: the events that were looked up, those without a row, and keys of those with their number, most
    first."""

    events: int = 0
    missing: int = 0
    examples: tuple[tuple[str, int], ...] = ()

    def check(self, lookup: str, most: float | None) -> Check:
        """`most`: the largest share without a row that the pattern allows."""
        shown = ", ".join(f"{key} ({count:,})" for key, count in self.examples)
        observed = f"{lookup}: {self.missing:,} of {self.events:,} events have no row{f': {shown}' if shown else ''}"
        expected = "a row for each event" if most is None else f"no row for at most {most:.2%} of the events"
        counts = {"events": self.events, "missing": self.missing, "examples": [list(one) for one in self.examples]}
        within = most is None or self.missing <= most * self.events
        return Check(MISSING, within, observed, expected, data={"lookup": lookup, **counts})


def missing_checks(run: Run, checked: Record, sources: Versions) -> list[Check]:
    """The check of each lookup of the run, over its events of the types that the pattern reads; none for a run without
    lookups. Raises BadEventsError, LookupRepeatedError."""
    if not run.plan.schema.lookups or not run.windows:
        return []
    return _checks(run, _counts(run, checked, reference_tables([run], sources)))


def missing_here(run: Run, events: Rows, reference: Mapping[str, pa.Table]) -> list[Check]:
    """As `missing_checks`, over events of this process (the columns that the plan reads)."""
    if not run.plan.schema.lookups:
        return []
    return _checks(run, _counts_here(run.plan, events, reference))


def _checks(run: Run, counts: Mapping[str, Counts]) -> list[Check]:
    limits = {name: model.missing.most for name, model in run.pattern.lookup.items() if model.missing is not None}
    names = sorted(one.name for one in run.plan.schema.lookups)
    return [counts.get(name, Counts()).check(name, limits.get(name)) for name in names]


def refuse_missing(run: Run, checks: list[Check]) -> None:
    """Raises ChecksFailedError where more events have no row than the pattern allows."""
    failed = [check for check in checks if check.failed]
    if failed:
        lookups = run.plan.schema.lookups
        tables = sorted({one.table for one in lookups if any(one.name == check.data["lookup"] for check in failed)})
        raise ChecksFailedError(
            f"{run.name} finds too few rows of {', '.join(tables)}: " + "; ".join(check.observed for check in failed),
            hint=f"nothing was published: `trendlake ingest {tables[0]} FILE` adds rows, `missing` allows more",
        )


def _counts(run: Run, checked: Record, reference: Mapping[str, pa.Table]) -> dict[str, Counts]:
    """By lookup, in this process or by Spark's workers."""
    events: SourceEvents | UnionEvents
    if run.sources.united:
        events = UnionEvents.of(run, checked, run.plan)
    else:
        events = SourceEvents.of([(run, checked)], run.plan)
    most, _ = run.roads.computed_here
    here, _ = run.roads.take("compute", lambda: _here(events, checked, most), lambda: None)
    if here is not None:
        return _counts_here(run.plan, here, reference)
    return _counts_by_spark(run, events.frame(), reference)


def _counts_here(plan: AnyPlan, events: Rows, reference: Mapping[str, pa.Table]) -> dict[str, Counts]:
    return {report.lookup.name: _of_report(report) for report in _reports(plan, events, reference)}


def _of_report(report: Report) -> Counts:
    examples = sorted(report.examples, key=lambda item: (-item[1], item[0]))[:EXAMPLES]
    return Counts(report.events, report.missing, tuple(examples))


def _counts_by_spark(run: Run, frame: DataFrame, reference: Mapping[str, pa.Table]) -> dict[str, Counts]:
    """There may be as many keys without a row as events: they are counted by the workers."""
    kind = run.plan.schema.event_type
    names = dict.fromkeys((*read_by_lookups(run.plan.schema), *([kind] if kind in frame.columns else [])))
    sent = SentTables.of(run.lake.spark, reference)
    rows = frame.select(*map(column, names)).mapInArrow(_counter(run.plan, sent), from_arrow_schema(_COUNTED))
    counted = rows.groupBy("lookup", "key").agg(sf.sum("events").alias("events"))
    counted = counted.persist(StorageLevel.MEMORY_AND_DISK)
    by_key = sf.col("key").isNotNull()
    try:
        with told_by_workers():
            totals = counted.groupBy("lookup", by_key.alias("by_key")).agg(sf.sum("events")).collect()
        count_of = {(lookup, missing): count for lookup, missing, count in totals}
        of_each: dict[str, Counts] = {}
        for lookup in dict.fromkeys(lookup for lookup, _ in count_of):
            mine = counted.where(by_key & (sf.col("lookup") == sf.lit(lookup)))
            first = mine.orderBy(sf.desc("events"), "key").limit(EXAMPLES).collect()
            examples = tuple((row["key"], row["events"]) for row in first)
            of_each[lookup] = Counts(count_of.get((lookup, False), 0), count_of.get((lookup, True), 0), examples)
        return of_each
    finally:
        counted.unpersist()
        if sent is not None:
            sent.free()


def _here(events: SourceEvents | UnionEvents, checked: Record, most: int) -> Rows | NotHere:
    rows = checked.rows_out or 0
    return NotHere(f"{rows:,} events, more than {most:,}") if rows > most else events.here(most)


def _counter(plan: AnyPlan, sent: SentTables | None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`."""

    def count(batches: Batches) -> Batches:
        reference = {} if sent is None else sent.tables()
        for batch in batches:
            yield from _count(plan, pa.Table.from_batches([batch]), reference).to_batches()

    return count


def _count(plan: AnyPlan, events: pa.Table, reference: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of `_COUNTED`."""
    rows = []
    for report in _reports(plan, events, reference):
        name = report.lookup.name
        rows.append({"lookup": name, "key": None, "events": report.events})
        rows += [{"lookup": name, "key": key, "events": count} for key, count in report.examples]
    return pa.Table.from_pylist(rows, _COUNTED)


def _reports(plan: AnyPlan, events: Rows, reference: Mapping[str, pa.Table]) -> Iterator[Report]:
    """Of each lookup, over the events of the types that the plan reads."""
    kind = plan.schema.event_type
    table = one_table(events, plan.schema, (*read_by_lookups(plan.schema), kind))
    if plan.event_types is not None and kind in table.column_names:
        table = table.filter(pc.is_in(table[kind], pa.array(plan.event_types)))
    yield from reports(table, plan.schema, reference)
