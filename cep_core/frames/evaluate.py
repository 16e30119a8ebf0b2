"""`trendlake.evaluate`: the engine's verb over a frame of any library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from trendlake.cep_core.engine import compile_with, evaluate_plan
from trendlake.cep_core.errors import BadEventsError, PatternErrors, did_you_mean
from trendlake.cep_core.events.schema import EventSchema, schema_of
from trendlake.cep_core.frames import Library, library_of
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.load import Query
from trendlake.cep_core.patterns.parameters import ForEachError, Parameters, read_lists, read_rows
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.yaml.source import from_data

SHOWN = 10
"""Columns of a frame that an error lists."""


@dataclass(frozen=True)
class _Given:
    """A frame, and the names of the columns that play the roles of its events."""

    library: Library
    frame: Any
    columns: pa.Schema
    event_id: str
    event_time: str
    event_type: str
    sequence: str | None
    document: str

    @property
    def roles(self) -> tuple[str, str, str, str | None, str]:
        """The columns as `schema_of` takes them."""
        return self.event_id, self.event_time, self.event_type, self.sequence, self.document

    def _check(self, roles: Sequence[str]) -> None:
        """Raises BadEventsError where there is no column of a role: one that may be left out has its usual name."""
        for role in ("event_time", "event_type", "document", "event_id", "sequence"):
            name = getattr(self, role)
            left_out = name == role and role in ("event_type", "event_id")
            asked = role in roles or role in ("event_id", "sequence")
            if asked and name is not None and not left_out and name not in self.columns.names:
                raise self._missing(role, name)

    def _missing(self, role: str, name: str) -> BadEventsError:
        known = self.columns.names
        shown = ", ".join(known[:SHOWN]) + (" ..." if len(known) > SHOWN else "")
        hint = did_you_mean(name, known)
        times = [field.name for field in self.columns if pa.types.is_timestamp(field.type)]
        if name == "event_time" and times:
            hint = f'pass event_time="{times[0]}"'
        if getattr(getattr(self.frame, "index", None), "names", None) == [name]:
            hint = "it is the index, which is not read: reset_index() makes it a column"
        return BadEventsError(f"no column '{name}' ({role}) in the frame. Its columns: {shown or 'none'}", hint=hint)

    def schema(self, kind: str) -> EventSchema:
        """The frame's columns for patterns of a kind, with those of an event's id and type that it may leave out.
        Raises BadEventsError for a role without a column."""
        roles = KINDS[kind].roles
        self._check(roles)
        table = self.columns.empty_table()
        if "event_type" in roles and self.event_type not in table.column_names:
            table = table.append_column(self.event_type, pa.array([], pa.string()))
        if self.event_id not in table.column_names:
            table = table.append_column(self.event_id, pa.array([], pa.int64()))
        return schema_of(table, *self.roles, roles)

    def events(self, plan: AnyPlan) -> pa.Table:
        """The columns that the plan reads. Where the frame has no type each row is of the pattern's only one; where it
        has no id, the number of the row is it."""
        needed = dict.fromkeys((self.event_time, *plan.schema.stored(plan.columns)))
        table = self.library.to_arrow(self.frame, [name for name in needed if name in self.columns.names])
        if self.event_id not in table.column_names:
            table = table.append_column(self.event_id, pa.array(np.arange(table.num_rows)))
        if "event_type" in KINDS[plan.kind].roles and self.event_type not in table.column_names:
            kind = _only_type(plan, self.event_type) if self.event_type in needed else ""
            types = pa.array([kind], pa.string()).take(pa.array(np.zeros(table.num_rows, np.int64)))
            table = table.append_column(self.event_type, types)
        return table


def _only_type(plan: AnyPlan, column: str) -> str:
    types = plan.event_types
    if types is None or len(types) != 1:
        several = f"{len(types)} event types" if types else "events of any type"
        message = f"the pattern reads {several} and the frame has no column '{column}'"
        raise BadEventsError(message, hint="name the column by event_type=")
    return types[0]


def _rows_of(for_each: Any) -> Parameters | None:
    """The rows of a family: lists of values, or a frame with a column a parameter."""
    try:
        if for_each is None:
            return None
        if isinstance(for_each, Mapping):
            return read_lists(for_each, from_data({"for_each": for_each}))
        library = library_of(for_each)
        return read_rows(library.to_arrow(for_each, library.schema(for_each).names))
    except ForEachError as failure:
        raise PatternErrors(failure.errors) from None


def _in_order(rows: pa.Table, plan: AnyPlan) -> pa.Table:
    """The rows by the time by which windows own them, then by their key."""
    names = dict.fromkeys((plan.owned(range(1))[0], *plan.key))
    sortable = [name for name in names if not pa.types.is_nested(rows.schema.field(name).type)]
    return rows.sort_by([(name, "ascending") for name in sortable])


class Options(TypedDict, total=False):
    """The options of `evaluate`, as it describes them."""

    event_id: str
    event_time: str
    event_type: str
    sequence: str | None
    document: str
    for_each: Any
    watermark: datetime | None
    time_zone: str | None


if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@overload
def evaluate(query: Query, frame: pd.DataFrame, **options: Unpack[Options]) -> pd.DataFrame: ...
@overload
def evaluate(query: Query, frame: pl.DataFrame, **options: Unpack[Options]) -> pl.DataFrame: ...
@overload
def evaluate(query: Query, frame: pl.LazyFrame, **options: Unpack[Options]) -> pl.LazyFrame: ...
@overload
def evaluate(query: Query, frame: object, **options: Unpack[Options]) -> pa.Table: ...  # a reader of a reader
def evaluate(
    query: Query,
    frame: Any,
    *,
    event_id: str = "event_id",
    event_time: str = "event_time",
    event_type: str = "event_type",
    sequence: str | None = None,
    document: str = "document",
    for_each: Any = None,
    watermark: datetime | None = None,
    time_zone: str | None = None,
) -> Any:
    """Run a query over a frame in this process, and give the rows as a frame of the same library.

    `query`: a pattern file's path, YAML text (of several lines), a mapping of the same shape, or a loaded pattern.
    `frame`: of pandas, Polars (also lazy), DuckDB, a table, batch, reader or dataset of Arrow, or any object with
    `__arrow_c_stream__`. Only the columns that the pattern reads are converted. Relations of DuckDB, datasets and
    other objects give a pyarrow.Table. Rows are ordered by time, then by their key.

    `event_id`, `event_time`, `event_type`, `sequence`, `document` (of kind xml_join): the columns that play these
    roles. Without a column of types, each row is an event of the pattern's only type; without one of ids, the number of
    a row, from 0, is its id.
    `for_each`: the rows of a family in place of the pattern's own: lists of values by parameter, each combination a
    row, or a frame with a column a parameter.
    `watermark`: how far time is known to have come, for rows that wait for it; else the latest event. UTC, if it has no
    zone.
    `time_zone`: the IANA name of the zone of times that have none; of two moments of one local time the earlier is
    meant. Without it they are read as UTC, with an AssumptionWarning.

    The type of a result column depends on the pattern, never on values: counts are decimals of 38 digits. In pandas,
    doubles, times and texts are of NumPy's types, and other columns of Arrow's; all are of Arrow's if the frame's are.

    Raises PatternErrors for mistakes of the query, BadEventsError for those of the frame and for an unknown zone,
    TypeError for what is no frame, NotSupportedError for a frame of Spark.
    """
    library = library_of(frame)
    given = _Given(library, frame, library.schema(frame), event_id, event_time, event_type, sequence, document)
    rows = _rows_of(for_each)
    plan = compile_with(query, given.schema, rows)
    table = given.events(plan)
    declared = given.schema(plan.kind)
    columns = dict(declared.columns) | dict(schema_of(table, *given.roles, KINDS[plan.kind].roles).columns)
    if columns != dict(declared.columns):  # of objects, whose type was that of some of them
        plan = compile_with(query, lambda kind: EventSchema(columns, *given.roles[:4], document=document), rows)
    until = None if watermark is None else _microseconds(watermark)
    return library.from_arrow(_in_order(evaluate_plan(plan, table, time_zone, until), plan), frame)


def _microseconds(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
