"""`trendlake.evaluate`: the engine's verb over a frame of any library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from trendlake.cep_core.engine import Schemas, compile_with, warn_of
from trendlake.cep_core.errors import BadEventsError, PatternErrors, did_you_mean
from trendlake.cep_core.events.local_times import in_zone, zoneless_columns
from trendlake.cep_core.events.schema import EventSchema, columns_of, schema_of
from trendlake.cep_core.events.tables import id_column, order_column
from trendlake.cep_core.events.union import united
from trendlake.cep_core.frames import LazyFrame, Library, library_of, of_its_own_engine
from trendlake.cep_core.frames.roles import roles_of
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.load import Query
from trendlake.cep_core.lookups import ReferenceColumns, tables_of
from trendlake.cep_core.patterns.parameters import ForEachError, Parameters, read_lists, read_rows
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.run_plans import run_plan
from trendlake.cep_core.yaml.source import from_data

SHOWN = 10
"""Columns of a frame that an error lists."""


Role: TypeAlias = str | Mapping[str, str]
"""The name of a column, or names by table; a table that is not among them has the usual name."""


@dataclass(frozen=True)
class EventsFrame:
    """A frame, and the names of the columns that play the roles of its events. `table`: its name, where the events are
    of several tables, each a frame; else ""."""

    table: str
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
            left_out = (name == role and role in ("event_type", "event_id")) or (self.table and role == "sequence")
            asked = role in roles or role in ("event_id", "sequence")
            if asked and name is not None and not left_out and name not in self.columns.names:
                raise self._missing(role, name)
        kind = self.columns.field(self.event_time).type
        if not pa.types.is_timestamp(kind):
            hint = f"convert it first, as by pandas.to_datetime(frame['{self.event_time}'], utc=True)"
            raise BadEventsError(f"column '{self.event_time}' is not a timestamp but {kind}", hint=hint)

    def _missing(self, role: str, name: str) -> BadEventsError:
        known = self.columns.names
        shown = ", ".join(known[:SHOWN]) + (" ..." if len(known) > SHOWN else "")
        hint = did_you_mean(name, known)
        times = [field.name for field in self.columns if pa.types.is_timestamp(field.type)]
        if name == "event_time" and times:
            given = f'{{"{self.table}": "{times[0]}"}}' if self.table else f'"{times[0]}"'
            hint = f"pass event_time={given}"
        if getattr(getattr(self.frame, "index", None), "names", None) == [name]:
            hint = "it is the index, which is not read: reset_index() makes it a column"
        where = f"{self.table}: " if self.table else ""
        message = f"{where}no column '{name}' ({role}) in the frame. Its columns: {shown or 'none'}"
        return BadEventsError(message, hint=hint)

    def schema(self, kind: str) -> EventSchema:
        """The frame's columns for patterns of a kind, with those of an event's id and type that it may leave out.
        Raises BadEventsError for a role without a column."""
        roles = ("event_time",) if self.table else KINDS[kind].roles
        self._check(roles)
        return self._schema(self.columns.empty_table(), roles)

    def _schema(self, table: pa.Table, roles: Sequence[str]) -> EventSchema:
        if "event_type" in roles and self.event_type not in table.column_names:
            table = table.append_column(self.event_type, pa.array([], pa.string()))
        if self.event_id not in table.column_names:
            table = table.append_column(self.event_id, pa.array([], pa.int64()))
        schema = schema_of(table, *self.roles, roles)
        if not self.table or self.event_type in table.column_names:
            return schema
        own = self.sequence if self.sequence in table.column_names else None
        return EventSchema(dict(schema.columns), self.event_id, self.event_time, "", own)

    def with_types_of(self, table: pa.Table, kind: str) -> EventSchema:
        """`schema` with the types that columns have once they are converted: of a column of objects, that of all."""
        plain = self.schema(kind)
        columns = dict(plain.columns) | columns_of(table)
        roles = plain.event_id, plain.event_time, plain.event_type, plain.sequence
        return EventSchema(columns, *roles, document=plain.document)

    def events(self, names: Iterable[str]) -> pa.Table:
        """Those of the columns that the frame has; where it has no ids, the number of a row is it."""
        chosen = [name for name in dict.fromkeys(names) if name in self.columns.names]
        if not chosen:  # the time says how many rows there are
            chosen = [self.event_time]
        table = self.library.to_arrow(self.frame, chosen)
        if self.event_id not in table.column_names:
            table = table.append_column(self.event_id, pa.array(np.arange(table.num_rows)))
        return table


def only_type(plan: AnyPlan, column: str) -> str:
    types = plan.event_types
    if types is None or len(types) != 1:
        several = f"{len(types)} event types" if types else "events of any type"
        message = f"the pattern reads {several} and the frame has no column '{column}'"
        raise BadEventsError(message, hint="name the column by event_type=")
    return types[0]


def family_rows(for_each: Any) -> Parameters | None:
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


def in_order(rows: pa.Table, plan: AnyPlan) -> pa.Table:
    """Result rows by the time by which windows own them, then by their key."""
    names = dict.fromkeys((plan.owned(range(1))[0], *plan.key))
    sortable = [name for name in names if not pa.types.is_nested(rows.schema.field(name).type)]
    return rows.sort_by([(name, "ascending") for name in sortable])


class _Events:
    """The frame or frames of one call, and the reference tables."""

    def __init__(self, frame: Any, roles: Mapping[str, Any], reference: Mapping[str, Any]) -> None:
        self.several = isinstance(frame, Mapping)
        self.frames = {name: _given(name, one, roles) for name, one in (frame if self.several else {"": frame}).items()}
        self.reference = {name: (library_of(one), one) for name, one in reference.items()}

    @property
    def library(self) -> Library | None:
        """That of the frame, or of the first one; None where there is none."""
        return next((one.library for one in self.frames.values()), None)

    def schema(self, kind: str) -> Schemas:
        """The schemas of the frames, as a plan of the kind is compiled against them."""
        schemas = {name: one.schema(kind) for name, one in self.frames.items()}
        return schemas if self.several else schemas[""]

    def reference_columns(self) -> ReferenceColumns:
        """Names and types of the columns of reference tables."""
        return tables_of({name: library.schema(one).empty_table() for name, (library, one) in self.reference.items()})

    def tables(self, plan: AnyPlan) -> dict[str, pa.Table]:
        """Of each frame the columns that the plan reads."""
        if self.several:
            read = _columns_of_tables(plan)
            return {name: self.frames[name].events(names) for name, names in read.items()}
        given, needed = self.frames[""], plan.schema.sources((plan.schema.event_time, *plan.columns))
        table = given.events(needed)
        if "event_type" in KINDS[plan.kind].roles and given.event_type not in table.column_names:
            kind = only_type(plan, given.event_type) if given.event_type in needed else ""
            types = pa.array([kind], pa.string()).take(pa.array(np.zeros(table.num_rows, np.int64)))
            table = table.append_column(given.event_type, types)
        return {"": table}

    def reference_tables(self, plan: AnyPlan) -> dict[str, pa.Table]:
        """Of each reference table the columns that the plan reads; of one that it does not read none."""
        read: dict[str, dict[str, None]] = {}
        for one in plan.schema.lookups:
            read.setdefault(one.table, {}).update(dict.fromkeys(one.table_columns))
        of = self.reference
        return {name: of[name][0].to_arrow(of[name][1], list(names)) for name, names in read.items()}

    def retyped(self, kind: str, tables: Mapping[str, pa.Table]) -> Schemas | None:
        """The schemas with the types of the tables; None where they are those of the frames."""
        schemas = {name: one.schema(kind) for name, one in self.frames.items()}
        actual = schemas | {name: self.frames[name].with_types_of(table, kind) for name, table in tables.items()}
        return None if actual == schemas else actual if self.several else actual[""]


def _given(table: str, frame: Any, roles: Mapping[str, Any]) -> EventsFrame:
    library = library_of(frame)
    columns = library.schema(frame)
    stated = roles_of(columns)
    names: dict[str, Any] = {role: _name_for(table, role, name, stated) for role, name in roles.items()}
    return EventsFrame(table, library, frame, columns, **names)


def _name_for(table: str, role: str, name: Role | None, stated: Mapping[str, str]) -> str | None:
    """The column of a role: as it is asked for, else as the frame itself states it, else by its usual name."""
    asked = name.get(table, role) if isinstance(name, Mapping) else name
    return stated.get(role, asked) if asked in (None, role) else asked


def _columns_of_tables(plan: AnyPlan) -> dict[str, tuple[str, ...]]:
    """The columns of each table that a plan reads."""
    tables = plan.schema.tables
    assert tables is not None
    table_of = {one.name: one.table for one in tables.types}
    read: dict[str, list[str]] = {}
    for table in tables.tables:
        names = [table.event_time, table.event_type]
        names += [table.event_id] if id_column(table.name) in plan.columns else []
        names += [str(table.sequence)] if order_column(table.name) in plan.columns else []
        read[table.name] = names
    for column in tables.columns:
        for origin in column.origins:
            read[table_of[origin.type]].append(origin.own)
    return {name: tuple(dict.fromkeys(names)) for name, names in read.items()}


class Options(TypedDict, total=False):
    """The options of `evaluate`, as it describes them."""

    event_id: Role
    event_time: Role
    event_type: Role
    sequence: Role | None
    document: str
    reference: Mapping[str, Any] | None
    for_each: Any
    watermark: datetime | None
    time_zone: str | None


if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@overload
def evaluate(
    query: Query, frame: pd.DataFrame | Mapping[str, pd.DataFrame], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def evaluate(
    query: Query, frame: pl.DataFrame | Mapping[str, pl.DataFrame], **options: Unpack[Options]
) -> pl.DataFrame: ...
@overload
def evaluate(
    query: Query, frame: pl.LazyFrame | Mapping[str, pl.LazyFrame], **options: Unpack[Options]
) -> pl.LazyFrame: ...
@overload
def evaluate(query: Query, frame: LazyFrame, **options: Unpack[Options]) -> LazyFrame: ...  # of Spark
@overload
def evaluate(query: Query, frame: object, **options: Unpack[Options]) -> pa.Table: ...  # a reader of a reader
def evaluate(
    query: Query,
    frame: Any,
    *,
    event_id: Role = "event_id",
    event_time: Role = "event_time",
    event_type: Role = "event_type",
    sequence: Role | None = None,
    document: str = "document",
    reference: Mapping[str, Any] | None = None,
    for_each: Any = None,
    watermark: datetime | None = None,
    time_zone: str | None = None,
) -> Any:
    """Run a query over a frame in this process, and give the rows as a frame of the same library.

    `query`: a pattern file's path, YAML text (of several lines), a mapping of the same shape, or a loaded pattern.
    `frame`: of pandas, Polars (also lazy), DuckDB, a table, batch, reader or dataset of Arrow, or any object with
    `__arrow_c_stream__`; for a query with `sources` several, {"orders": orders, "payments": payments}. Only the columns
    that the query reads are converted. Relations of DuckDB, datasets and other objects give a pyarrow.Table. Rows are
    ordered by time, then by their key. A frame of Spark gives a frame of Spark without order, and no job starts.

    `event_id`, `event_time`, `event_type`, `sequence`, `document` (of kind xml_join): the columns that play these
    roles; with several frames also by table, event_time={"payments": "paid_at"}. Without a column of types, each row is
    an event of the query's only type (of the table's, with `sources`); without one of ids, the number of a row, from 0,
    is its id.
    `reference`: the frames that the query looks up, by the names of their tables.
    `for_each`: the rows of a family in place of the pattern's own: lists of values by parameter, each combination a
    row, or a frame with a column a parameter.
    `watermark`: how far time is known to have come, for rows that wait for it; else the latest event. UTC, if it has no
    zone.
    `time_zone`: the IANA name of the zone of times that have none; of two moments of one local time the earlier is
    meant, and one that clocks skip is an error. Without it they are read as UTC, with an AssumptionWarning.

    The type of a result column depends on the pattern, never on values: counts are decimals of 38 digits. In pandas,
    doubles, times and texts are of NumPy's types, and other columns of Arrow's; all are of Arrow's if the frame's are.

    An AssumptionWarning also names text columns that the query compares by their order and whose values look like
    numbers. A process gives each once; with the filter "always", each time. A PatternWarning names conditions that are
    never true, such as `x.price = NULL`.

    Raises PatternErrors for mistakes of the query, BadEventsError for those of a frame and for an unknown zone. Raises
    LookupRepeatedError where a reference table has two rows of a key at one moment, TypeError for what is no frame.
    """
    names: dict[str, Role | None] = {"event_id": event_id, "event_time": event_time, "event_type": event_type}
    names |= {"sequence": sequence, "document": document}
    if (compute := of_its_own_engine(frame)) is not None:
        more = {"reference": reference, "for_each": for_each, "watermark": watermark, "time_zone": time_zone}
        return compute(query, frame, names, **more)
    given = _Events(frame, names, reference or {})
    rows, columns = family_rows(for_each), given.reference_columns()
    plan = compile_with(query, given.schema, columns, rows)
    tables = given.tables(plan)
    if (retyped := given.retyped(plan.kind, tables)) is not None:
        plan = compile_with(query, lambda kind: retyped, columns, rows)
    looked_up = given.reference_tables(plan)
    zoneless = {name: zoneless_columns(table, table.column_names) for name, table in (tables | looked_up).items()}
    if time_zone is not None:
        tables = {name: in_zone(table, zoneless[name], time_zone) for name, table in tables.items()}
        looked_up = {name: in_zone(table, zoneless[name], time_zone) for name, table in looked_up.items()}
    of_tables = plan.schema.tables
    events = tables[""] if of_tables is None else united(tables, of_tables, plan.columns)
    unstated = [
        f"{column} of {name}" if name in looked_up else column
        for name, of_table in zoneless.items()
        for column in of_table
        if time_zone is None
    ]
    warn_of(plan, events, unstated, stacklevel=3)
    until = None if watermark is None else microseconds_of(watermark)
    answer = in_order(run_plan(plan, events, None, until, looked_up), plan)
    library = given.library
    assert library is not None
    return library.from_arrow(answer, next(iter(given.frames.values())).frame)


def microseconds_of(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
