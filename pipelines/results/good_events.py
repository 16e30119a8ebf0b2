"""The good rows of a source at a version, one of each key: those that a run would read, whatever pattern it is of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from trendlake.cep_core.derived import derive
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import BEGINNING, END
from trendlake.cep_core.frames.roles import with_roles
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import inside, table_here
from trendlake.pipelines.lake.lake import Lake, read_at
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.results.source_events import id_of_key
from trendlake.pipelines.rules.split import typed
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.spark.columns import column


@dataclass(frozen=True)
class GoodEvents:
    """Rows of `[start, end)`, microseconds; None: no bound. Of a reference table, whose rows have no time, all. They
    have the columns of the contract, those that it derives, the constant type of its events, and an id that is made of
    keys."""

    lake: Lake
    contract: Contract
    version: int
    start: int | None = None
    end: int | None = None

    @property
    def path(self) -> str:
        return self.lake.warehouse.source(self.contract.name)

    @property
    def span(self) -> tuple[int, int]:
        return BEGINNING if self.start is None else self.start, END + 1 if self.end is None else self.end

    def here(self) -> pa.Table | NotHere:
        """The rows, with the roles of their columns. The whole table is judged, as any row may repeat a key."""
        return tried(self._here)

    def _here(self) -> pa.Table | NotHere:
        contract = self.contract
        if contract.made_id:
            return NotHere("ids that are made of keys")
        rows, parted = all_parted(self, table_here(self.lake, self.path, self.version), limits.JUDGED)
        rows = rows.filter(arrow(parted.broken < 0))
        if contract.is_reference:
            return rows
        schema, rows = contract.event_schema(), rows.filter(inside(rows, contract.event_time, [self.span]))
        return self.with_roles(derive(typed(contract, schema.event_type, rows), schema))

    def with_roles(self, rows: pa.Table) -> pa.Table:
        """The rows, whose schema says which of their columns is the time of an event, and so on."""
        return rows if self.contract.is_reference else with_roles(rows, _roles(self.contract.event_schema()))

    def frame(self) -> DataFrame:
        """The rows as Spark reads them."""
        contract, table = self.contract, read_at(self.lake, self.path, self.version)
        within = q.in_range(contract, *self.span)
        rows = q.good_rows(q.annotate(table.where(within), contract.rules, rest=table.where(~within)))
        rows = rows.select(*(column(one.name) for one in contract.columns))
        if contract.is_reference:
            return rows
        schema = contract.event_schema()
        if contract.constant_type is not None:
            rows = rows.withColumn(schema.event_type, sf.lit(contract.constant_type))
        if contract.made_id:
            rows = rows.withColumn(schema.event_id, id_of_key(contract.key))
        if not contract.derived:
            return rows
        empty = derive(to_arrow_schema(rows.schema, timezone="UTC").empty_table(), schema)
        return rows.mapInArrow(partial(_derived, schema), from_arrow_schema(empty.schema))


def _derived(schema: EventSchema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from derive(pa.Table.from_batches([batch]), schema).to_batches()


def _roles(schema: EventSchema) -> dict[str, str]:
    named = {
        "event_id": schema.event_id,
        "event_time": schema.event_time,
        "event_type": schema.event_type,
        "sequence": schema.sequence,
        "document": schema.document,
    }
    return {role: name for role, name in named.items() if name}
