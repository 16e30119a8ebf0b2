"""From `sources` and the schemas of the tables to the one schema of their union: every mistake with its place."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from trendlake.cep_core.errors import (
    BadValueError,
    PatternErrors,
    PatternWarning,
    TrendlakeError,
    TypeMismatchError,
    UnknownAttributeError,
    UnknownTypeError,
    did_you_mean,
)
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.tables import (
    EVENT_ID,
    EVENT_SOURCE,
    EVENT_TIME,
    EVENT_TYPE,
    ORDER,
    ROLES,
    EventTable,
    Origin,
    TableColumn,
    Tables,
    TypeRows,
    plain_name,
    rounded_as_key,
)
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.patterns.sources import BY_SEQUENCE, SourceModel, same_rows
from trendlake.cep_core.plan import AnyPlan


def united_schema(pattern: Pattern, schemas: Mapping[str, EventSchema]) -> EventSchema:
    """The schema of the union of a pattern's tables, which are given by name. A table's schema without an event type
    ('') is of one whose events are all of one type; `types` then names it, where it has a name.

    Raises PatternErrors with every mistake of `sources` and `ties`.
    """
    building = _Building(pattern, schemas)
    tables = building.tables()
    if building.errors:
        raise PatternErrors(building.errors)
    everyone = [one.name for one in tables.types]
    plain: list[TableColumn] = []
    for name in tables.names:
        try:
            plain.append(tables.column(everyone, name))
        except (UnknownAttributeError, TypeMismatchError):
            continue  # an error where it is read without a variable
    tables = replace(tables, columns=tuple(plain))
    columns = {EVENT_ID: "string"} if tables.with_ids else {}
    columns |= {EVENT_TIME: "timestamp", EVENT_TYPE: "string", EVENT_SOURCE: "string"}
    columns |= {one.name: one.type_name for one in plain}
    return EventSchema(columns, EVENT_ID, EVENT_TIME, EVENT_TYPE, ORDER, tuple(everyone), document="", tables=tables)


class _Building:
    """Collects mistakes."""

    def __init__(self, pattern: Pattern, schemas: Mapping[str, EventSchema]) -> None:
        self.pattern, self.schemas = pattern, schemas
        self.errors: list[TrendlakeError] = []

    def report(self, error: TrendlakeError, *path: str | int, key: bool = False, width: int = 0) -> None:
        error.place = self.pattern.document.place(path, key=key, width=width)
        self.errors.append(error)

    def tables(self) -> Tables:
        entries = self.pattern.sources or {}
        types, attributes = list[TypeRows](), list[tuple[str, Origin]]()
        rows: dict[tuple[str, str | None], str] = {}
        for name, entry in entries.items():
            schema = self.schemas.get(entry.source)
            if schema is None:
                hint = did_you_mean(entry.source, self.schemas)
                self.report(BadValueError(f"there is no table '{entry.source}'", hint=hint), "sources", name)
                continue
            value = self._value(name, entry, schema)
            other = rows.setdefault((entry.source, value), name)
            if other != name:
                self.report(same_rows(other, name, entry.source), "sources", name, key=True)
            types.append(TypeRows(name, entry.source, value))
            attributes += self._attributes(name, entry, schema)
        used = sorted({one.table for one in types})
        tables = tuple(self._table(name, self.schemas[name]) for name in used)
        ties: tuple[str, ...] = ()
        if isinstance(self.pattern.ties, tuple) and list(self.pattern.ties) != used:
            ties = self.pattern.ties
        by_sequence = self.pattern.ties == BY_SEQUENCE
        if by_sequence:
            self._one_counter(tables)
        ordered = tuple(sorted(types, key=lambda one: one.name))
        return Tables(tables, ordered, (), ties, by_sequence, tuple(sorted(attributes, key=_by_name)))

    def _table(self, name: str, schema: EventSchema) -> EventTable:
        kinds = schema.families
        event_id = schema.event_id if kinds.get(schema.event_id, "other") != "other" else ""
        sequence = schema.sequence if schema.sequence in kinds else None
        return EventTable(name, event_id, schema.event_time, schema.event_type, sequence, schema.derived)

    def _one_counter(self, tables: tuple[EventTable, ...]) -> None:
        """Reports tables that one counter cannot number."""
        kinds: dict[str, str] = {}
        for table in tables:
            if table.sequence is None:
                hint = "give its contract one, or list the tables in `ties`"
                self.report(BadValueError(f"ties: sequence, and {table.name} has no sequence", hint=hint), "ties")
            else:
                kinds[table.name] = self.schemas[table.name].families[table.sequence]
        if len(set(kinds.values()) - {"null"}) > 1:
            words = " and ".join(f"{kind} in {name}" for name, kind in kinds.items())
            self.report(TypeMismatchError(f"ties: sequence, and the sequence is {words}"), "ties")

    def _value(self, name: str, entry: SourceModel, schema: EventSchema) -> str | None:
        """The value of the event type of a type's rows; None: all rows. Reports one that the table does not have."""
        types = schema.types
        if not schema.event_type:
            if entry.type is not None and entry.type not in (types or ()):
                message = f"{entry.source} has no type '{entry.type}': its events are all of one type"
                error = UnknownTypeError(message, hint="leave out type")
                self.report(error, "sources", name, "type", width=len(entry.type))
            return None
        value = name if entry.type is None else entry.type
        if types is not None and value not in types:
            path = ("sources", name) if entry.type is None else ("sources", name, "type")
            hint = did_you_mean(value, types)
            if entry.type is None:
                hint = f"{{source: {entry.source}, type: {_first(hint, types)}}}"
            error = UnknownTypeError(f"{entry.source} has no type '{value}'", hint=hint)
            self.report(error, *path, key=entry.type is None, width=len(value))
        return value

    def _attributes(self, name: str, entry: SourceModel, schema: EventSchema) -> list[tuple[str, Origin]]:
        """The attributes of a type's events by their names here."""
        own = dict(schema.columns)
        away = {same_name(old) for old in entry.columns.values() if old is not None}
        here = {same_name(column): column for column in own if same_name(column) not in away}
        result: list[tuple[str, Origin]] = []
        for new, old in entry.columns.items():
            taken = here.pop(same_name(new), None)
            if taken is not None and taken != old:
                message = f"{entry.source} has a column '{taken}' of its own"
                self.report(
                    BadValueError(message, hint="map it to another name"), "sources", name, "columns", new, key=True
                )
            if old is None:
                result.append((new, Origin(name, "", "null")))
            elif old in own:
                result.append((new, Origin(name, old, own[old])))
            else:
                error = UnknownAttributeError(f"{entry.source} has no column '{old}'", hint=did_you_mean(old, own))
                self.report(error, "sources", name, "columns", new, width=len(old))
        played = {EVENT_ID: schema.event_id, EVENT_TIME: schema.event_time, EVENT_TYPE: schema.event_type}
        for column in here.values():
            role = same_name(column)
            if role not in ROLES:
                result.append((column, Origin(name, column, own[column])))
            elif played.get(role) != column:
                message = f"{entry.source} has a column '{column}' of its own"
                self.report(BadValueError(message, hint=f"map it: columns: {{own_{role}: {column}}}"), "sources", name)
        return result


def _by_name(pair: tuple[str, Origin]) -> tuple[str, str]:
    return pair[0], pair[1].type


def _first(hint: str | None, types: Collection[str]) -> str:
    """The type that was probably meant."""
    near = hint if hint is not None and hint.startswith("did you mean") else None
    return near.split("'")[1] if near else next(iter(types), "NAME")


def asks_order(plan: AnyPlan) -> bool:
    """Whether a plan of several tables asks which of two events of one time is first."""
    data: Any = plan
    bare: AnyPlan = replace(data, schema=plan.schema.of_tables(None))
    return plan.schema.sequence in bare.columns


def narrowed(plan: AnyPlan, pattern: Pattern) -> AnyPlan:
    """The plan without columns of the tables that nothing reads, and without `ties` where no order is asked for: they
    are no part of what it is. Raises PatternErrors for a key whose values a table tells apart and the union does
    not."""
    tables = plan.schema.tables
    if tables is None:
        return plan
    data: Any = plan
    ordered = asks_order(plan)
    _refuse_rounded_keys(plan, tables, pattern)
    schema = plan.schema.of_tables(tables.narrowed(plan.columns, ordered=ordered))
    more: tuple[str, ...] = ()
    if pattern.ties is not None and not ordered:
        message = "no effect: nothing in this pattern asks which of two events of one time is first"
        more = (str(BadValueError(message, place=pattern.document.place(("ties",)), hint="leave out ties")),)
        warnings.warn(more[0], PatternWarning, stacklevel=3)
    whole: AnyPlan = replace(data, schema=schema, warnings=(*plan.warnings, *more))
    return whole


def _refuse_rounded_keys(plan: AnyPlan, tables: Tables, pattern: Pattern) -> None:
    data: Any = plan
    names = [*plan.shard_key, *plan.unit_key, *getattr(data, "group_by", ()), *getattr(data, "partition_by", ())]
    names += [name for name, _ in getattr(data, "scoped", ())]
    columns = {column.name: column for column in tables.columns}
    errors = []
    for name in dict.fromkeys(names):
        column = columns.get(name)
        if column is not None and rounded_as_key(column):
            error = tables.mismatch(plain_name(name), column.origins, ": as a key its values are not told apart")
            error.place = _place(pattern, plain_name(name))
            errors.append(error)
    if errors:
        raise PatternErrors(errors)


def _place(pattern: Pattern, name: str) -> Any:
    """Where a key is first written in a pattern."""
    for key in ("where", "group_by", "partition_by"):
        for index, text in enumerate(getattr(pattern, key, ()) or ()):
            at = text.find(name)
            if at >= 0:
                return pattern.document.place((key, index), offset=at, width=len(name))
    return pattern.document.place(("sources",))
