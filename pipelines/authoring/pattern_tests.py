"""Tests of patterns, written as YAML next to them: events in, rows expected. They need neither Spark nor a table.

`conf/patterns/tests/<pattern>.yaml` is a list of tests; events and rows of reference tables have the columns of their
table's contract (what a row does not say is NULL), expected rows the columns of the pattern's results that the test is
about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError

from trendlake.cep_core import AnyPlan, PatternWarning, run_plan
from trendlake.cep_core.errors import (
    MAX_ERRORS,
    BadValueError,
    PatternErrors,
    Place,
    TrendlakeError,
    UnknownKeyError,
    did_you_mean,
    in_words_of_yaml,
)
from trendlake.cep_core.events.schema import EventSchema, arrow_type
from trendlake.cep_core.yaml.source import Path_, Source, plain, read_yaml
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.project.paths import Project, files_of
from trendlake.pipelines.results.columns import Reading

Row = dict[str, Any]
_LIST, _TABLES = "a list", "by table"
"""The forms of `events`; pydantic has them in the place of a mistake."""


def _form(events: object) -> str:
    return _TABLES if isinstance(events, dict) else _LIST


class PatternTest(BaseModel):
    """One test: a name in words, the events in any order, of `sources` by table; rows of the tables of `lookup`, by
    table; every row that they give."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    events: Annotated[
        Annotated[tuple[Row, ...], Tag(_LIST)] | Annotated[dict[str, tuple[Row, ...]], Tag(_TABLES)],
        Discriminator(_form),
    ]
    tables: dict[str, tuple[Row, ...]] = {}
    expect: tuple[Row, ...]


@dataclass(frozen=True)
class Verdict:
    """`differences` in words, one a line; none: the test holds."""

    pattern: str
    test: str
    differences: tuple[str, ...]


def files_of_tests(project: Project) -> list[Path]:
    """The files of tests of a project's patterns."""
    return files_of(folder_of_tests(project), project.root)


def folder_of_tests(project: Project) -> Path:
    return project.patterns / "tests"


def run_tests(project: Project, file: Path) -> Iterator[Verdict]:
    """The verdict on each test of a file, which is named as the pattern it tests.

    Raises PatternErrors for mistakes of the file or of the pattern, ProjectError where there is no such pattern.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        pattern, plan = compiled(project, project.pattern_path(file.stem))
    tables, read = TablesOfTests.of(sources_of(project, pattern), plan), Reading.of(plan)
    order = (*read.every, *read.companions)
    for place, test in load_tests(project.own(file), tables):
        try:
            rows = tables.results(test).select(order).to_pylist()
        except TrendlakeError as error:
            error.place = error.place or place
            raise
        yield Verdict(pattern.name, test.name, tuple(differences(test.expect, rows)))


@dataclass(frozen=True)
class TablesOfTests:
    """The tables that the tests of a plan have rows of: the schema of each by its name, of events and of tables that
    lookups alone read. `source`: the one table of events, which tests do not name; None with `sources`."""

    plan: AnyPlan
    source: str | None
    events: Mapping[str, EventSchema]
    others: Mapping[str, EventSchema]
    contracts: Mapping[str, Contract]

    @classmethod
    def of(cls, sources: Sources, plan: AnyPlan) -> TablesOfTests:
        source = None if sources.united else sources.contract.name
        contracts = {table.contract.name: table.contract for table in sources.every}
        events = {name: _stored(contracts[name], alone=not sources.united) for name in sources.names}
        others = {name: _stored(one, alone=False) for name, one in contracts.items() if name not in events}
        return cls(plan, source, events, others, contracts)

    def rows(self, test: PatternTest) -> dict[str, tuple[Row, ...]]:
        """The rows of each table that a test names."""
        events = test.events if isinstance(test.events, dict) else {str(self.source): test.events}
        return {**test.tables, **events}

    def results(self, test: PatternTest) -> pa.Table:
        """The rows that a test's events give. Raises BadEventsError, LookupRepeatedError."""
        rows = self.rows(test)
        tables = {name: table_of(rows.get(name, ()), schema) for name, schema in {**self.events, **self.others}.items()}
        reference = {}
        if self.plan.schema.lookups:  # else Spark's package is not needed
            from trendlake.pipelines.results.reference_tables import columns_for, with_columns
        for name in {one.table for one in self.plan.schema.lookups}:
            contract = self.contracts[name]
            own = tables[name].select([column.name for column in contract.columns])
            reference[name] = with_columns(contract, own, columns_for(name, contract, self.plan))
        events = {name: tables[name] for name in self.events} if self.source is None else tables[self.source]
        return run_plan(self.plan, events, reference=reference)


def _stored(contract: Contract, *, alone: bool) -> EventSchema:
    """The columns of a table, without those that its contract derives. A row of a reference table plays no role."""
    if contract.is_reference:
        return EventSchema({column.name: column.type for column in contract.columns}, "", "", "")
    schema = contract.event_schema(alone=alone)
    derived = {name for one in schema.derived for name in one.names}
    columns = {name: kind for name, kind in schema.columns if name not in derived}
    return EventSchema(columns, schema.event_id, schema.event_time, schema.event_type, types=schema.types)


def load_tests(file: Path, tables: TablesOfTests) -> list[tuple[Place, PatternTest]]:
    """The tests of a file, each with its place. Raises PatternErrors with every mistake of its shape, each with its
    place."""
    source = read_yaml(file)
    try:
        tests = TypeAdapter(tuple[PatternTest, ...]).validate_python(plain(source.data))
    except ValidationError as failure:
        raise PatternErrors([_explained(source, error) for error in failure.errors()[: MAX_ERRORS + 2]]) from None
    errors = [error for number, test in enumerate(tests) for error in _mistakes(source, number, test, tables)]
    if errors:
        raise PatternErrors(errors)
    return [(source.place((number,)), test) for number, test in enumerate(tests)]


def _explained(source: Source, error: Any) -> TrendlakeError:
    path = tuple(part for part in error["loc"] if part not in (_LIST, _TABLES))
    if error["type"] == "extra_forbidden":
        hint = did_you_mean(str(path[-1]), tuple(PatternTest.model_fields))
        return UnknownKeyError(f"unknown key '{path[-1]}'", place=source.place(path, key=True), hint=hint)
    hint = "a file of tests is a list of {name, events, expect}"
    return BadValueError(in_words_of_yaml(error), place=source.place(path), hint=hint)


def _mistakes(source: Source, number: int, test: PatternTest, tables: TablesOfTests) -> Iterator[TrendlakeError]:
    """Those of one test."""
    by_table = isinstance(test.events, dict)
    if by_table == (tables.source is not None):
        reads = "one table" if by_table else f"the tables {', '.join(tables.events)}"
        of_each = ", ".join(f"{name}: [...]" for name in tables.events)
        hint = "events: [...]" if by_table else f"events: {{{of_each}}}"
        place = source.place((number, "events"), key=True)
        yield BadValueError(f"the pattern reads events of {reads}", place=place, hint=hint)
        return
    of_events = [("events", test.events, tables.events)] if isinstance(test.events, dict) else []
    for part, named, schemas in [*of_events, ("tables", test.tables, tables.others)]:
        for name in named:
            if name not in schemas:
                yield _unknown_table(name, part, tables, source.place((number, part, name), key=True))
    for name, rows in tables.rows(test).items():
        schema = tables.events.get(name) or tables.others.get(name)
        if schema is None:
            continue
        part = "events" if name in tables.events else "tables"
        path: Path_ = (number, part) if part == "events" and not by_table else (number, part, name)
        for index, row in enumerate(rows):
            yield from _mistakes_of_row(source, (*path, index), row, schema, name, tables)
            if part == "events" and row.get(schema.event_time) is None:
                yield BadValueError(f"the event has no {schema.event_time}", place=source.place((*path, index)))
    for index, row in enumerate(test.expect):
        for name in row:
            if name not in tables.plan.result_schema.names:
                near = did_you_mean(name, tables.plan.result_schema.names)
                place = source.place((number, "expect", index, name), key=True)
                yield UnknownKeyError(f"the results have no column '{name}'", place=place, hint=near)


def _unknown_table(name: str, part: str, tables: TablesOfTests, place: Place) -> TrendlakeError:
    """Of a name that is no key of `part` of a test."""
    if part == "tables" and name in tables.events:
        return BadValueError(f"the rows of '{name}' are events", place=place, hint="tables: those of `lookup` alone")
    if part == "events" and name in tables.others:
        return BadValueError(f"'{name}' is a table of `lookup`", place=place, hint=f"tables: {{{name}: [...]}}")
    names = tuple(tables.events if part == "events" else tables.others)
    hint = did_you_mean(name, names) or (f"it reads {', '.join(names)}" if names else "it has no `lookup`")
    return UnknownKeyError(f"the pattern does not read '{name}'", place=place, hint=hint)


def _mistakes_of_row(
    source: Source, path: Path_, row: Row, schema: EventSchema, table: str, tables: TablesOfTests
) -> Iterator[TrendlakeError]:
    types = dict(schema.columns)
    looked_up = {name: one.table for one in tables.plan.schema.lookups for name in one.names}
    for name, value in row.items():
        if name not in types:
            title, hint = "the source" if table == tables.source else table, did_you_mean(name, types)
            if name in looked_up:
                hint = f"it is a column of {looked_up[name]}: give rows of that under `tables`"
            place = source.place((*path, name), key=True)
            yield UnknownKeyError(f"{title} has no column '{name}'", place=place, hint=hint)
            continue
        try:
            kind = arrow_type(types[name])
            pa.array([_cell(value, kind)], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            message = f"{name}: expected {types[name]}, found {value!r}"
            yield BadValueError(message, place=source.place((*path, name)))


def table_of(events: Sequence[Row], schema: EventSchema) -> pa.Table:
    """Events as the engine reads them. Where an event does not say its type and there is only one, it is of that; one
    without an id is named by its place."""
    fill: Row = {}
    if schema.types is not None and len(schema.types) == 1:
        fill[schema.event_type] = schema.types[0]
    rows = [fill | event for event in events]
    columns = {}
    for name, kind in schema.columns:
        shown = arrow_type(kind)
        cells = [_cell(row.get(name), shown) for row in rows]
        columns[name] = pa.array(_named(cells, shown) if name == schema.event_id else cells, shown)
    return pa.table(columns)


def _named(ids: list[Any], kind: pa.DataType) -> list[Any]:
    """The ids, each that is missing named by its place; where they are numbers, behind all that are given."""
    if pa.types.is_string(kind):
        return [f"event {n:06}" if given is None else given for n, given in enumerate(ids, 1)]
    last = max((given for given in ids if given is not None), default=0)
    return [last + n if given is None else given for n, given in enumerate(ids, 1)]


def _cell(value: Any, kind: pa.DataType) -> Any:
    """A YAML value as Arrow takes it for a column of `kind`: times that say no zone are UTC."""
    if not pa.types.is_timestamp(kind):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) and moment.tzinfo is None else moment


def differences(expected: Sequence[Row], actual: Sequence[Row]) -> list[str]:
    """Expected rows that are not there and rows not expected, each found row answering for one expected row."""
    taken = _assigned(expected, actual)
    lines = [f"missing    {_row_text(row)}" for n, row in enumerate(expected) if n not in taken]
    lines += [f"unexpected {_row_text(row)}" for n, row in enumerate(actual) if n not in taken.values()]
    return lines


def _assigned(expected: Sequence[Row], actual: Sequence[Row]) -> dict[int, int]:
    """Which found row answers for which expected one, as many as can (augmenting paths): a row that says little does
    not take another's."""
    fits = [[n for n, row in enumerate(actual) if _agrees(wanted, row)] for wanted in expected]
    owner: dict[int, int] = {}

    def place(wanted: int, tried: set[int]) -> bool:
        for row in fits[wanted]:
            if row not in tried:
                tried.add(row)
                if row not in owner or place(owner[row], tried):
                    owner[row] = wanted
                    return True
        return False

    for wanted in range(len(expected)):
        place(wanted, set())
    return {wanted: row for row, wanted in owner.items()}


def _agrees(expected: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(_same(value, row[name]) for name, value in expected.items())


def _same(expected: Any, actual: Any) -> bool:
    """Doubles to nine digits, all else exactly."""
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if isinstance(actual, datetime):
        return bool(_cell(expected, pa.timestamp("us", "UTC")) == actual)
    if isinstance(actual, date):
        return str(expected) == str(actual)
    if isinstance(actual, float) and isinstance(expected, int | float):
        return math.isclose(expected, actual, rel_tol=1e-9)
    if isinstance(actual, Decimal) and isinstance(expected, int):
        return int(actual) == expected
    return bool(expected == actual)


def _row_text(row: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in row.items()) + "}"


def _short(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    return "null" if value is None else str(value)
