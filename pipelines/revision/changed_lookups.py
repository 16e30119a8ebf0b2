"""Reference tables that have changed: what they were and are, and which events get other columns by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.derived import looked_up_otherwise
from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.lookup import Reference, References, rows_with_keys_of
from trendlake.cep_core.events.schema import Lookup
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.execute.sent_tables import SentTables
from trendlake.pipelines.results.computation import ReferenceTables
from trendlake.pipelines.results.reference_tables import reference_tables, refuse_repeated, with_columns
from trendlake.pipelines.revision.matching import summed
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.runs.run import Run

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class LookupCounts:
    """Of changed reference tables, by name: `rows` that came or went, as far as lookups read them, and their `keys`.
    How many `events` of the published windows get other columns by these, and how many `windows` hold one."""

    rows: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    windows: int = 0

    def check(self) -> Check:
        tables = ", ".join(f"{name} ({plural(count, 'row')} came or went)" for name, count in self.rows.items())
        observed = f"{plural(self.events, 'event')} looked up otherwise: {tables or 'no table has changed'}"
        data = {"events": self.events, "rows": dict(self.rows)}
        return Check("lookup_changes", True, observed, "change feed", data=data)


@dataclass(frozen=True)
class ChangedLookups:
    """The reference tables of a run in the versions that results show, `then`, and `now`, with the columns that are
    read. `rows`: by table those that came or went, where some did; `counts`: of these, and of no events. `then` and
    `compared`, which is `now`, have of such tables only rows with the keys of those: no others tell events apart."""

    then: References
    now: References
    rows: ReferenceTables
    compared: References
    counts: LookupCounts

    @classmethod
    def of(cls, run: Run, task: Task, changed: Mapping[str, pa.Table]) -> ChangedLookups:
        """`changed`: by table its good rows that came or went between the two versions, with `NET`. Raises
        LookupRepeatedError where two different rows hold at one moment now, and NotHereError."""
        now, parts = reference_tables([run], task.sources), {part.key: part for part in run.references}
        then, different, compared = dict(now), dict[str, pa.Table](), dict(now)
        counts, keys = dict[str, int](), dict[str, int]()
        for name, rows in changed.items():
            read = tuple(now[name].column_names)
            net = with_columns(parts[name].contract, rows, [*read, NET])
            net = summed(net.cast(_with_net(now[name].schema)), read)
            if net.num_rows:
                different[name], counts[name] = net.drop_columns([NET]), net.num_rows
                keys[name] = _keys(run.plan, name, net)
                lookups = [one for one in run.plan.schema.lookups if one.table == name]
                of_rows = [replace(one, key=tuple((column, column) for _, column in one.key)) for one in lookups]
                compared[name] = now[name].filter(arrow(rows_with_keys_of(different[name], now[name], of_rows)))
                then[name] = _without(compared[name], net)
                for lookup in lookups:  # no other key was repeated when results were published
                    refuse_repeated(run, lookup, compared)
        return cls(References(then), now, different, References(compared), LookupCounts(counts, keys))

    def possible(self, part: Run, plan: AnyPlan) -> PossibleEvents | None:
        """Which rows of one of the tables of events may get other columns: those with a key of a row that came or went.
        None where a key is not stored in the table."""
        tables, stored = plan.schema.tables, {item.name for item in part.contract.columns}
        own_types = None if tables is None else {one.name for one in tables.types if one.table == part.key}
        keys: list[tuple[Reference, tuple[str, ...]]] = []
        for lookup in plan.schema.lookups:
            if lookup.table not in self.rows:
                continue
            reference = Reference(_keys_only(lookup), self.rows[lookup.table])
            if tables is None or own_types is None:
                of_each = [tuple(name for name, _ in lookup.key)]
            else:
                columns = {one.name: one for one in tables.columns}
                if any(name not in columns for name, _ in lookup.key):
                    return None
                own = [{x.type: x.own for x in columns[name].origins} for name, _ in lookup.key]
                of_each = [
                    tuple(str(of_type[one]) for of_type in own)
                    for one in own_types
                    if all(of_type.get(one) for of_type in own)
                ]
            keys += [(reference, names) for names in dict.fromkeys(of_each)]
        names = tuple(dict.fromkeys(name for _, several in keys for name in several))
        return PossibleEvents(tuple(keys), names) if stored >= {*names} else None

    def events_here(self, plan: AnyPlan, events: pa.Table) -> pa.Table:
        """Those of some events that get other columns. Raises BadEventsError."""
        return events.filter(arrow(looked_up_otherwise(events, plan.schema, self.then, self.compared)))

    def events_on_spark(self, plan: AnyPlan, events: DataFrame) -> DataFrame:
        """As `events_here`."""
        spark = events.sparkSession
        sent = SentTables.of(spark, self.then), SentTables.of(spark, self.compared)
        return events.mapInArrow(_otherwise(plan, *sent), events.schema)


@dataclass(frozen=True)
class PossibleEvents:
    """Rows of a table that have a key of a changed row. `keys`: those, each with its columns in the table; `columns`:
    all of these."""

    keys: tuple[tuple[Reference, tuple[str, ...]], ...]
    columns: tuple[str, ...]

    def condition(self, batch: pa.RecordBatch, asked: pa.Array) -> pa.Array:
        """Those of the rows `asked` about. Raises BadEventsError for a key that is not compared."""
        rows = numbers(asked)
        some = np.zeros(batch.num_rows, np.bool_)
        if rows.any():
            table = pa.Table.from_batches([batch])
            for reference, names in self.keys:
                wanted = [name for name, _ in reference.lookup.key]
                events = Columns(pa.table([table[name] for name in names], names=wanted))
                some |= reference.find(events).rows >= 0
        return arrow(some & rows)


def _keys_only(lookup: Lookup) -> Lookup:
    """Whether there is a row of a key, whenever it holds."""
    return replace(lookup, columns=(), valid_from=None, valid_to=None, as_of=None, of=None, event_type=None)


def _keys(plan: AnyPlan, table: str, rows: pa.Table) -> int:
    """How many keys some rows of a table have; of lookups by other columns together."""
    columns = {tuple(column for _, column in one.key) for one in plan.schema.lookups if one.table == table}
    return sum(rows.group_by(list(names)).aggregate([]).num_rows for names in columns)


def _otherwise(plan: AnyPlan, then: SentTables | None, now: SentTables | None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`."""

    def choose(batches: Batches) -> Batches:
        tables = [{} if sent is None else sent.tables() for sent in (then, now)]
        for batch in batches:
            events = pa.Table.from_batches([batch])
            chosen = looked_up_otherwise(events, plan.schema, *tables)
            yield from events.filter(arrow(chosen)).to_batches()

    return choose


def _with_net(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, pa.field(NET, pa.int64())])


def _without(now: pa.Table, net: pa.Table) -> pa.Table:
    """The rows before those of `net` came or went."""
    names = tuple(now.column_names)
    bag = now.replace_schema_metadata(None).append_column(NET, repeated(1, now.num_rows))
    went = net.set_column(net.column_names.index(NET), NET, arrow(-numbers(net[NET].combine_chunks())))
    then = summed(pa.concat_tables([bag, went.cast(bag.schema)]), names)
    copies = numbers(then[NET].combine_chunks())
    rows = then.select(list(names)).take(arrow(np.repeat(np.arange(then.num_rows), np.maximum(copies, 0))))
    return rows.replace_schema_metadata(now.schema.metadata)
