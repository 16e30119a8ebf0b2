"""Events without a row in a reference table: how many a run has, and by which keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.derived import one_table, read_by_lookups, reports
from trendlake.cep_core.events.lookup import EXAMPLES
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


@dataclass
class Counts:
    """Of one lookup: the events that were looked up, and by key those without a row."""

    events: int
    missing: Counter[str]

    def check(self, lookup: str, most: float | None) -> Check:
        """`most`: the largest share without a row that the pattern allows."""
        without = self.missing.total()
        examples = sorted(self.missing.items(), key=lambda item: (-item[1], item[0]))[:EXAMPLES]
        shown = f": {', '.join(f'{key} ({count:,})' for key, count in examples)}" if examples else ""
        observed = f"{lookup}: {without:,} of {self.events:,} events have no row{shown}"
        expected = "a row for each event" if most is None else f"no row for at most {most:.2%} of the events"
        counts = {"events": self.events, "missing": without, "examples": [list(one) for one in examples]}
        within = most is None or without <= most * self.events
        return Check(MISSING, within, observed, expected, data={"lookup": lookup, **counts})


def missing_checks(run: Run, checked: Record, sources: Versions) -> list[Check]:
    """The check of each lookup of the run, over its events of the types that the pattern reads; none for a run without
    lookups. Raises BadEventsError, LookupRepeatedError."""
    if not run.plan.schema.lookups or not run.windows:
        return []
    reference, counts = reference_tables(run, sources), dict[str, Counts]()
    for batch in _counted(run, checked, reference):
        for row in batch.to_pylist():
            mine = counts.setdefault(row["lookup"], Counts(0, Counter()))
            if row["key"] is None:
                mine.events += row["events"]
            else:
                mine.missing[row["key"]] += row["events"]
    limits = {name: model.missing.most for name, model in run.pattern.lookup.items() if model.missing is not None}
    names = sorted(one.name for one in run.plan.schema.lookups)
    return [counts.get(name, Counts(0, Counter())).check(name, limits.get(name)) for name in names]


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


def _counted(run: Run, checked: Record, reference: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
    """Rows of `_COUNTED`, in this process or by Spark's workers."""
    events: SourceEvents | UnionEvents
    if run.sources.united:
        events = UnionEvents.of(run, checked, run.plan)
    else:
        events = SourceEvents.of([(run, checked)], run.plan)
    most, _ = run.roads.computed_here
    here, _ = run.roads.take("compute", lambda: _here(events, checked, most), lambda: None)
    if here is not None:
        yield from _count(run.plan, here, reference).to_batches()
        return
    frame = events.frame()
    kind = run.plan.schema.event_type
    names = dict.fromkeys((*read_by_lookups(run.plan.schema), *([kind] if kind in frame.columns else [])))
    sent = SentTables.of(run.lake.spark, reference)
    with told_by_workers():
        counted = frame.select(*map(column, names)).mapInArrow(_counter(run.plan, sent), from_arrow_schema(_COUNTED))
        yield from counted.groupBy("lookup", "key").sum("events").toDF(*_COUNTED.names).toArrow().to_batches()


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


def _count(plan: AnyPlan, events: Rows, reference: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of `_COUNTED`."""
    kind = plan.schema.event_type
    table = one_table(events, plan.schema, (*read_by_lookups(plan.schema), kind))
    if plan.event_types is not None and kind in table.column_names:
        table = table.filter(pc.is_in(table[kind], pa.array(plan.event_types)))
    rows = []
    for report in reports(table, plan.schema, reference):
        name = report.lookup.name
        rows.append({"lookup": name, "key": None, "events": report.events})
        rows += [{"lookup": name, "key": key, "events": count} for key, count in report.examples]
    return pa.Table.from_pylist(rows, _COUNTED)
