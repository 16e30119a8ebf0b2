"""A data contract as the pipelines use it: columns with Spark types, the event's roles, rules, tolerance, lateness.

One file is the single source of the reading schema (`Contract.event_schema`), the quarantine split
(`pipelines.quality.quarantine`) and the Great Expectations suite (`pipelines.rules.great_expectations`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from trendlake.cep_core.errors import BadValueError, TrendlakeError, did_you_mean
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import Derived, EventSchema, family
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.advice import advice_of
from trendlake.pipelines.contracts.column_names import name_fault, usable_name
from trendlake.pipelines.contracts.column_types import spark_type
from trendlake.pipelines.contracts.derived_columns import derived_columns_of
from trendlake.pipelines.contracts.document import load_document
from trendlake.pipelines.contracts.document_paths import DocumentPaths, document_paths_of
from trendlake.pipelines.contracts.id_columns import id_columns_of
from trendlake.pipelines.contracts.null_words import Words, null_words_of
from trendlake.pipelines.contracts.odcs import Document, Property
from trendlake.pipelines.contracts.properties import (
    LATENESS,
    MAX_FUTURE,
    MAX_FUTURE_US,
    SEQUENCE,
    duration,
    misspelt,
    names_no_event,
    replaces,
    stated_twice,
)
from trendlake.pipelines.contracts.read_rules import rules_of
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.contracts.time_formats import TimeFormat, time_formats_of
from trendlake.pipelines.errors import ContractErrors

ROLES = ("event_id", "event_time", "event_type", "document", SEQUENCE)
_TYPES_OF_ROLES = {
    "event_id": ("string", "integer"),
    "event_time": ("timestamp",),
    "event_type": ("string",),
    "document": ("string",),
}
TYPE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""An event type that patterns can name."""
TYPE_COLUMN = "event_type"
"""The column that events of one constant type get for it."""
ID_COLUMN = "event_id"
"""The column that events get whose id is no column of their table."""


@dataclass(frozen=True)
class Column:
    """`type` is a simple Spark type name, such as `double` or `decimal(38,0)`."""

    name: str
    type: str
    required: bool
    description: str = ""


@dataclass(frozen=True)
class Contract:
    """One table's promises. `key`: primary key columns in order; `constant_type`: the type of every event, where no
    column says it; `made_id`: whether an event's id is made of the key's values; `lateness_us`: microseconds, None when
    not said; `max_future_us`: how far after its commit an event's time may be and still move the watermark,
    microseconds, None when not said; `ahead_us`: the addition to it for a table whose events are ahead by nature;
    `tolerance`: the share (0..1) of quarantined rows a run accepts; `replaces`: whether a delivered row replaces the
    row that has its key; `null_words`: the words that mean NULL in files, of the columns that it declares any for;
    `id_columns`: the columns that ingestion makes the id of; `begins`: as of `EventSchema`;
    `time_formats`: how files write times, of the columns that declare it; `documents`: where XML files have the
    documents, for a source of such; `derived`: columns that every pattern over it has; `advice`: notes on conditions
    that are rarely meant; `fingerprint`: 16 hex digits of all that decides which rows pass and which move the
    watermark."""

    name: str
    version: str
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    key: tuple[str, ...]
    roles: Mapping[str, str] = field(hash=False)
    types: tuple[str, ...] | None = None
    constant_type: str | None = None
    made_id: bool = False
    lateness_us: int | None = None
    max_future_us: int | None = None
    ahead_us: int = 0
    tolerance: float = 0.0
    replaces: bool = False
    null_words: Words = field(default_factory=dict, hash=False)
    id_columns: tuple[str, ...] = ()
    begins: tuple[str, int] | None = None
    time_formats: Mapping[str, TimeFormat] = field(default_factory=dict, hash=False)
    documents: DocumentPaths | None = None
    derived: tuple[Derived, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    description: str = ""
    file: str = field(default="", compare=False)

    @cached_property
    def fingerprint(self) -> str:
        content: tuple[object, ...] = (self.name, self.columns, self.rules, self.key, sorted(self.roles.items()))
        if self.max_future_us is not None:
            content = (*content, self.max_future_us)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    @property
    def future_us(self) -> int:
        """How far after its commit an event's time may be and still move the watermark, microseconds."""
        return (MAX_FUTURE_US if self.max_future_us is None else self.max_future_us) + self.ahead_us

    @property
    def is_reference(self) -> bool:
        """Whether its rows are no events: patterns look columns up in them (`lookup`)."""
        return "event_time" not in self.roles

    @property
    def event_time(self) -> str:
        """The column of the time; empty of a reference table, of whose rows none is too old or too new."""
        return self.roles.get("event_time", "")

    @property
    def named_by(self) -> str:
        """The column by which people name a row: the event's id; of a reference table the first of its key."""
        keys = [self.key, *(rule.columns for rule in unique_rules(self.rules))]
        return self.roles.get("event_id") or next((key[0] for key in keys if key), self.columns[0].name)

    def assures(self, types: tuple[str, ...]) -> bool:
        """Whether every row that keeps the rules is an event of one of `types`."""
        if self.constant_type is not None:
            return self.constant_type in types
        named = [rule for rule in self.rules if rule.quarantines and rule.columns == (self.roles["event_type"],)]
        there = any(rule.kind == "not_null" for rule in named)
        return there and any(rule.kind == "in_set" and set(rule.values) <= set(types) for rule in named)

    @property
    def columns_with_derived(self) -> dict[str, str]:
        """The type of each column of the table, and of those that the contract derives, by name."""
        return {column.name: column.type for column in self.columns} | {one.name: one.type_name for one in self.derived}

    def event_schema(self, *, alone: bool = True) -> EventSchema:
        """The source as `cep_core` sees it: with the column `TYPE_COLUMN` where the type is a constant (unless it is
        not `alone`, but one of several), `ID_COLUMN` where the id is made. Raises KeyError for a table without event
        roles (a reference table, results)."""
        constant = {} if self.constant_type is None or not alone else {TYPE_COLUMN: "string"}
        if self.made_id:
            constant[ID_COLUMN] = "string"
        schema = EventSchema(
            columns={column.name: column.type for column in self.columns} | constant,
            event_id=self.roles["event_id"],
            event_time=self.event_time,
            event_type="" if self.constant_type is not None and not alone else self.roles.get("event_type", ""),
            sequence=self.roles.get("sequence"),
            types=self.types,
            document=self.roles.get("document", ""),
            begins=self.begins,
        )
        return schema.extended(self.derived)


def load_contract(path: str | Path, *, events: bool = True) -> Contract:
    """The contract in the file at `path`; with `events`, of a source: of a table of events, or of a reference table,
    where no column has an event's role.

    Raises ContractErrors with every mistake of the file, each with line, what was expected and a suggestion. A good
    file that many patterns name is read once, for as long as it is not changed.
    """
    try:
        state = Path(path).stat()
    except OSError:
        return contract_of(*load_document(path), events=events)  # which tells why
    return _loaded(str(path), state.st_mtime_ns, state.st_size, events)


@lru_cache(maxsize=100)
def _loaded(path: str, changed_ns: int, size: int, events: bool) -> Contract:
    return contract_of(*load_document(path), events=events)


def contract_of(document: Document, source: Source, *, events: bool) -> Contract:
    """The contract in the document. Raises ContractErrors with every mistake."""
    errors: list[TrendlakeError] = []
    table = document.table
    columns = _columns(document, source, errors, lists=not events)
    types = {item.name: "" for item in table.properties} | {column.name: column.type for column in columns}
    rules = rules_of(document, source, types, errors)
    if events and any(rule.quarantines for rule in rules):
        errors += _names_of_quarantine(document, source)
    constant = _constant_type(document, source, errors) if events else None
    roles = _roles(document, source, constant, errors) if events else {}
    timed = not events or not names_no_event(document)
    keyed = sorted(
        (item.primary_key_position, index, item.name) for index, item in enumerate(table.properties) if item.primary_key
    )
    contract = Contract(
        name=table.name,
        version=document.version,
        columns=columns,
        rules=tuple(_with_columns(rule, columns, roles) for rule in rules),
        key=tuple(name for _, _, name in keyed),
        roles=roles,
        types=_types(roles, rules) if constant is None else (constant,),
        constant_type=constant,
        lateness_us=duration(document, source, LATENESS, errors) if timed else None,
        max_future_us=duration(document, source, MAX_FUTURE, errors) if timed else None,
        tolerance=_tolerance(document, source, errors),
        replaces=replaces(document, source, errors),
        null_words=null_words_of(document, source, errors),
        id_columns=id_columns_of(document, source, errors),
        time_formats=time_formats_of(document, source, errors),
        documents=document_paths_of(document, source, errors) if "document" in roles else None,
        derived=derived_columns_of(document, source, _of_events(columns, constant), errors) if events else (),
        advice=advice_of(document, source, {column.name: family(column.type) for column in columns}),
        description=table.description or "",
        file=source.name,
    )
    errors += [*misspelt(document, source), *stated_twice(document, source)]
    if errors:
        raise ContractErrors(errors)
    return contract


def _of_events(columns: tuple[Column, ...], constant: str | None) -> Mapping[str, str]:
    """The type of each column that an event has."""
    types = {column.name: column.type for column in columns}
    return types if constant is None else types | {TYPE_COLUMN: "string"}


def _with_columns(rule: Rule, columns: tuple[Column, ...], roles: Mapping[str, str]) -> Rule:
    """A rule of uniqueness with what decides which row of a key counts."""
    if rule.kind != "unique":
        return rule
    return replace(rule, compared=tuple(item.name for item in columns), sequence=roles.get("sequence"))


def _columns(document: Document, source: Source, errors: list[TrendlakeError], *, lists: bool) -> tuple[Column, ...]:
    columns: list[Column] = []
    seen: dict[str, str] = {}
    for index, item in enumerate(document.table.properties):
        path = ("schema", 0, "properties", index)
        other = seen.get(same_name(item.name))
        if other is not None:
            what = f"column '{item.name}' twice"
            if other != item.name:
                what = (
                    f"columns '{other}' and '{item.name}' differ in upper and lower case only: Spark takes them for one"
                )
            errors.append(BadValueError(what, place=source.place((*path, "name"))))
        seen[same_name(item.name)] = item.name
        try:
            kind = spark_type(item, lists=lists)
        except ValueError as error:
            key = "physicalType" if item.physical_type else "logicalType" if item.logical_type else "name"
            errors.append(BadValueError(str(error), place=source.place((*path, key))))
            continue
        columns.append(Column(item.name, kind, item.required, item.description or ""))
    return tuple(columns)


def _names_of_quarantine(document: Document, source: Source) -> Iterator[TrendlakeError]:
    """Columns that rows could not have in the quarantine table."""
    for index, item in enumerate(document.table.properties):
        fault = name_fault(item.name, quarantined=True)
        if fault is not None and name_fault(item.name) is None:
            place = source.place(("schema", 0, "properties", index, "name"))
            yield BadValueError(fault, place=place, hint=f"such as {usable_name(item.name)}")


def _constant_type(document: Document, source: Source, errors: list[TrendlakeError]) -> str | None:
    """The type of every event of the table, where it has no column for it."""
    for index, custom in enumerate(document.table.custom_properties):
        if custom.property != "eventType":
            continue
        path = ("schema", 0, "customProperties", index)
        if not isinstance(custom.value, str) or not TYPE_NAME.fullmatch(custom.value):
            message = f"eventType is a name that patterns can use, not {custom.value!r}"
            errors.append(BadValueError(message, place=source.place((*path, "value"))))
            continue
        hidden = [item.name for item in document.table.properties if same_name(item.name) == TYPE_COLUMN]
        if hidden:
            message = f"the table has a column '{hidden[0]}': eventType would hide it"
            hint = "give that column the role event_type, or another name"
            errors.append(BadValueError(message, place=source.place((*path, "property")), hint=hint))
        return custom.value
    return None


def _roles(document: Document, source: Source, constant: str | None, errors: list[TrendlakeError]) -> dict[str, str]:
    roles: dict[str, str] = {} if constant is None else {"event_type": TYPE_COLUMN}
    for index, item in enumerate(document.table.properties):
        for number, custom in enumerate(item.custom_properties):
            path = ("schema", 0, "properties", index, "customProperties", number)
            if custom.property != "eventRole":
                continue
            role = str(custom.value)
            if role not in ROLES:
                place = source.place((*path, "value"))
                hint = did_you_mean(role, ROLES)
                errors.append(BadValueError(f"unknown event role '{role}'", place=place, hint=hint))
            elif role in roles:
                place = source.place((*path, "value"))
                errors.append(BadValueError(f"'{roles[role]}' has the role {role} already", place=place))
            else:
                roles[role] = item.name
                _check_role(role, item, source, (*path, "value"), errors)
    if "document" in roles:
        _refuse_types(constant, roles, document, source, errors)
    needed = () if names_no_event(document) else ROLES[:2] if "document" in roles else ROLES[:3]
    for role in needed:
        if role not in roles:
            errors.append(
                BadValueError(
                    f"no column has the role {role}",
                    place=source.place(("schema", 0, "properties")),
                    hint=f"give one column: customProperties: [{{property: eventRole, value: {role}}}]"
                    + (", or the table: [{property: eventType, value: Trade}]" if role == "event_type" else "")
                    + ("; a reference table has no event role" if role == "event_time" else ""),
                )
            )
    return roles


def _refuse_types(
    constant: str | None, roles: Mapping[str, str], document: Document, source: Source, errors: list[TrendlakeError]
) -> None:
    """A document has no type of event: queries tell documents apart by what they say."""
    if "event_type" in roles:
        index = [item.name for item in document.table.properties].index(roles["document"])
        place = source.place(("schema", 0, "properties", index))
        hint = "leave out eventType" if constant is not None else f"take the role from '{roles['event_type']}'"
        errors.append(BadValueError("a source of documents has no event type", place=place, hint=hint))


def _check_role(
    role: str, item: Property, source: Source, path: tuple[str | int, ...], errors: list[TrendlakeError]
) -> None:
    wanted = _TYPES_OF_ROLES.get(role, ())
    if wanted and item.logical_type not in wanted:
        message = f"{role} has type {' or '.join(wanted)}; column '{item.name}' has type {item.logical_type}"
        errors.append(BadValueError(message, place=source.place(path)))
    if role != "sequence" and not item.required:
        message = f"column '{item.name}' is {role} and must say required: true"
        errors.append(BadValueError(message, place=source.place(path)))


def _types(roles: Mapping[str, str], rules: tuple[Rule, ...]) -> tuple[str, ...] | None:
    """The event types: the valid values of the column that has the role."""
    for rule in rules:
        if rule.kind == "in_set" and rule.columns == (roles.get("event_type"),):
            return tuple(str(value) for value in rule.values)
    return None


def _tolerance(document: Document, source: Source, errors: list[TrendlakeError]) -> float:
    for index, custom in enumerate(document.table.custom_properties):
        if custom.property == "quarantineTolerance":
            value = custom.value
            if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= 1:
                return float(value)
            place = source.place(("schema", 0, "customProperties", index, "value"))
            errors.append(BadValueError("quarantineTolerance is a share between 0 and 1", place=place))
    return 0.0
