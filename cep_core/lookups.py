"""`lookup`: columns of reference tables as attributes of events.

    lookup: {customer: {table: customers, key: customer_id, columns: [segment], valid_from: since}}

They are columns of the schema that the pattern is compiled against, usable wherever a column is. Contract's derived
columns come before them, the pattern's after them (`cep_core.derived`). Only those stay that the plan reads.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from trendlake.cep_core.errors import (
    BadEventsError,
    BadValueError,
    NotSupportedError,
    PatternErrors,
    PatternWarning,
    TrendlakeError,
    TypeMismatchError,
    UnknownAttributeError,
    UnknownTypeError,
    did_you_mean,
)
from trendlake.cep_core.events.lookup import key_fault
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import EventSchema, Lookup, columns_of, family
from trendlake.cep_core.patterns.lookups import LookupModel
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, Pattern
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.yaml.source import Path_

ReferenceColumns: TypeAlias = Mapping[str, Mapping[str, str]]
"""Reference tables by name, each with its columns: name -> Spark or ODCS type name."""

TIMES = ("timestamp", "date", "null")


def with_lookups(schema: EventSchema, pattern: Pattern, tables: ReferenceColumns | None) -> EventSchema:
    """The schema with the columns that the pattern looks up. `tables`: None where they are not known; each column may
    then be of any type. Raises PatternErrors with every mistake in them."""
    if not pattern.lookup:
        return schema
    if pattern.kind == "xml_join":
        message = "kind xml_join reads documents, which have no columns to look up by"
        place = pattern.document.place(("lookup",), key=True)
        raise PatternErrors([NotSupportedError(message, place=place)])
    checking = _Checking(schema, pattern, tables)
    lookups = [checking.read(name, pattern.lookup[name]) for name in sorted(pattern.lookup)]
    if checking.errors:
        raise PatternErrors(checking.errors)
    types = {name: kind for one in lookups for name, _, kind in one.columns}
    return schema.looking_up(tuple(sorted(lookups, key=_by_content)), types)


def _by_content(lookup: Lookup) -> tuple[str, ...]:
    """The order of lookups in a plan, whatever their names are in the pattern."""
    return (lookup.table, str(lookup.key), str((lookup.valid_from, lookup.valid_to, lookup.as_of)), *lookup.names)


def tables_of(reference: Mapping[str, pa.Table]) -> ReferenceColumns:
    """The columns of reference tables as Arrow shows them."""
    return {name: columns_of(table) for name, table in reference.items()}


def warn_of_unread(plan: AnyPlan, pattern: Pattern) -> AnyPlan:
    """The plan with a warning of each lookup that nothing reads, which is given too (PatternWarning)."""
    read = {one.name for one in plan.schema.lookups}
    unread = tuple(
        f"lookup {name}: nothing reads a column of it, so table {one.table} is not read"
        for name, one in pattern.lookup.items()
        if name not in read
    )
    for text in unread:
        warnings.warn(text, PatternWarning, stacklevel=3)
    data: Any = plan
    warned: AnyPlan = replace(data, warnings=(*plan.warnings, *unread)) if unread else plan
    return warned


def refuse_other_types(plan: AnyPlan, pattern: Pattern) -> None:
    """Raises PatternErrors where columns of a lookup are read of all events and its `of` leaves some out. Names with a
    variable are checked where they are read (`Checking.column`)."""
    groups = getattr(pattern, "group_by", ())
    for one in plan.schema.lookups:
        names = [name for name in one.names if pattern.kind not in ("trends", "matches") or name in groups]
        types = plan.event_types or plan.schema.types or ("other types",)
        errors = [error for name in names if (error := plan.schema.looked_up_of(name, types)) is not None]
        for error in errors:
            error.place = pattern.document.place(("lookup", one.name, "of"))
        if errors:
            raise PatternErrors(errors)


def in_words(lookup: Lookup) -> str:
    """A lookup as `explain` prints it."""
    columns = ", ".join(name if name == column else f"{name} = {column}" for name, column, _ in lookup.columns)
    key = ", ".join(name if name == column else f"{name} = {column}" for name, column in lookup.key)
    when = ""
    if lookup.valid_from is not None:
        end = lookup.valid_to or f"the next {lookup.valid_from}"
        where = f" in {lookup.zone}" if lookup.zone else ""
        when = f", the row with {lookup.valid_from} <= {lookup.as_of} < {end}{where}"
    types = f", of types {', '.join(sorted(lookup.of))}" if lookup.of is not None else ""
    return f"{lookup.name}: {columns} of {lookup.table} by {key}{when}{types}"


class _Checking:
    """Holds the lookups of a pattern against the columns of its events and of the reference tables."""

    def __init__(self, schema: EventSchema, pattern: Pattern, tables: ReferenceColumns | None) -> None:
        self.schema, self.pattern, self.tables = schema, pattern, tables
        self.types = dict(schema.columns)
        self.errors: list[TrendlakeError] = []
        self.names = TakenNames((*schema.families, *PROVENANCE_COLUMNS), "a column of the events, or of every result")
        self.owners = {name: of for of, one in reversed(pattern.lookup.items()) for name, _ in one.columns}

    def report(self, error: TrendlakeError, path: Path_, *, key: bool = False) -> None:
        error.place = self.pattern.document.place(path, key=key)
        self.errors.append(error)

    def read(self, name: str, model: LookupModel) -> Lookup:
        """A lookup; its mistakes are reported."""
        path = ("lookup", name)
        if self.tables is not None and model.table not in self.tables:
            given = f"given: {', '.join(sorted(self.tables))}; " if self.tables else ""
            hint = f'{given}evaluate takes them as reference={{"{model.table}": table}}'
            self.report(BadEventsError(f"there is no reference table '{model.table}'", hint=hint), (*path, "table"))
        table = None if self.tables is None else self.tables.get(model.table)
        for of_events, of_table in model.key:
            self._check_key(path, model, of_events, of_table, table)
        columns = []
        for i, (attribute, column) in enumerate(model.columns):
            kind = self._column(table, model.table, column, (*path, "columns", i))
            if kind is not None and family(kind) == "other":
                message = f"'{column}' of {model.table} is of a type that patterns do not read: {kind}"
                self.report(TypeMismatchError(message), (*path, "columns", i))
            if taken := self.names.take(attribute, f"a column of lookup '{name}' already"):
                hint = f"{name}_{column}: {column}"
                error = BadValueError(f"'{attribute}' is {taken}", hint=f"give it another name: {{{hint}}}")
                self.report(error, (*path, "columns", i))
            columns.append((attribute, column, kind or "null"))
        times = self._times(path, model, table)
        return Lookup(
            table=model.table,
            key=tuple(sorted(model.key)),
            columns=tuple(sorted(columns)),
            valid_from=model.valid_from,
            valid_to=model.valid_to,
            as_of=(model.as_of or self.schema.event_time) if model.valid_from is not None else None,
            zone=self._zone(times),
            of=None if model.of is None else frozenset(model.of),
            event_type=None if self._check_types(path, model) is None else self.schema.event_type,
            name=name,
        )

    def _column(self, table: Mapping[str, str] | None, named: str, column: str, path: Path_) -> str | None:
        """The type of a table's column; None where it is not known."""
        if table is None:
            return None
        if column not in table:
            error = UnknownAttributeError(f"table '{named}' has no column '{column}'", hint=did_you_mean(column, table))
            self.report(error, path)
            return None
        return table[column]

    def _of_events(self, name: str, path: Path_) -> str | None:
        """The type of a column that events have before they are looked up; None where they have none."""
        if name in self.types:
            return self.types[name]
        if name in self.owners:
            message = f"'{name}' is a column of lookup '{self.owners[name]}', and no lookup reads one"
            self.report(BadValueError(message, hint="join the two tables upstream"), path)
        elif name in self.pattern.derive:
            message = f"'{name}' is derived by the pattern, after its lookups"
            self.report(BadValueError(message, hint="derive it in the contract of the source"), path)
        else:
            hint = did_you_mean(name, self.types)
            self.report(UnknownAttributeError(f"the source has no attribute '{name}'", hint=hint), path)
        return None

    def _check_key(
        self, lookup: Path_, model: LookupModel, of_events: str, of_table: str, table: Mapping[str, str] | None
    ) -> None:
        """Reports columns that are missing, or are never equal."""
        one = model.key == ((of_events, of_events),)
        path: Path_ = (*lookup, "key") if one else (*lookup, "key", of_events)
        left = self._of_events(of_events, path)
        right = self._column(table, model.table, of_table, path)
        if left is not None and right is not None and (fault := key_fault(left, right)) is not None:
            message = f"'{of_events}' is a {left} in the events and '{of_table}' a {right} in {model.table}: {fault}"
            hint = "let the contracts give both columns one type"
            self.report(TypeMismatchError(message, hint=hint), path)

    def _times(self, lookup: Path_, model: LookupModel, table: Mapping[str, str] | None) -> list[str]:
        """The families of the columns with times."""
        if model.valid_from is None:
            return []
        columns = [("valid_from", model.valid_from), ("valid_to", model.valid_to)]
        kinds = [
            (key, name, self._column(table, model.table, name, (*lookup, key)))
            for key, name in columns
            if name is not None
        ]
        if model.as_of is not None:
            kinds.append(("as_of", model.as_of, self._of_events(model.as_of, (*lookup, "as_of"))))
        for key, name, kind in kinds:
            if kind is not None and family(kind) not in TIMES:
                message = f"{key} is a DATE or a TIMESTAMP: '{name}' is a {kind}"
                self.report(TypeMismatchError(message), (*lookup, key))
        return [family(kind) for _, _, kind in kinds if kind is not None]

    def _zone(self, times: list[str]) -> str | None:
        zone = self.pattern.time_zone
        return zone if "date" in times and zone != "UTC" else None

    def _check_types(self, lookup: Path_, model: LookupModel) -> tuple[str, ...] | None:
        """`of`; types that the source does not have are reported."""
        known = self.schema.types
        for i, one in enumerate(model.of or ()):
            if known is not None and one not in known:
                error = UnknownTypeError(f"the source has no event type '{one}'", hint=did_you_mean(one, known))
                self.report(error, (*lookup, "of", i))
        return model.of
