"""Tests of patterns, written as YAML next to them: events in, rows expected. They need neither Spark nor a table.

`conf/patterns/tests/<pattern>.yaml` is a list of tests; events have the columns of the source's contract (what an
event does not say is NULL), expected rows the columns of the pattern's results that the test is about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from trendlake.cep_core import AnyPlan, PatternWarning, run_plan
from trendlake.cep_core.errors import (
    MAX_ERRORS,
    BadValueError,
    PatternErrors,
    TrendlakeError,
    UnknownKeyError,
    did_you_mean,
    in_words_of_yaml,
)
from trendlake.cep_core.events.schema import EventSchema, arrow_type
from trendlake.cep_core.yaml.source import Source, plain, read_yaml
from trendlake.pipelines.authoring.trial import refuse_lookups
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import Project, files_of

Row = dict[str, Any]


class PatternTest(BaseModel):
    """One test: a name in words, the events in any order, every row that they give."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    events: tuple[Row, ...]
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
    refuse_lookups(pattern)
    for test in load_tests(project.own(file), plan):
        rows = run_plan(plan, table_of(test.events, plan.schema)).to_pylist()
        yield Verdict(pattern.name, test.name, tuple(differences(test.expect, rows)))


def load_tests(file: Path, plan: AnyPlan) -> tuple[PatternTest, ...]:
    """The tests of a file. Raises PatternErrors with every mistake of its shape, each with its place."""
    source = read_yaml(file)
    try:
        tests = TypeAdapter(tuple[PatternTest, ...]).validate_python(plain(source.data))
    except ValidationError as failure:
        raise PatternErrors([_explained(source, error) for error in failure.errors()[: MAX_ERRORS + 2]]) from None
    errors = list(_unknown_columns(source, tests, plan)) + list(_bad_values(source, tests, plan.schema))
    if errors:
        raise PatternErrors(errors)
    return tests


def _explained(source: Source, error: Any) -> TrendlakeError:
    if error["type"] == "extra_forbidden":
        hint = did_you_mean(str(error["loc"][-1]), tuple(PatternTest.model_fields))
        place = source.place(error["loc"], key=True)
        return UnknownKeyError(f"unknown key '{error['loc'][-1]}'", place=place, hint=hint)
    hint = "a file of tests is a list of {name, events, expect}"
    return BadValueError(in_words_of_yaml(error), place=source.place(error["loc"]), hint=hint)


def _unknown_columns(source: Source, tests: Sequence[PatternTest], plan: AnyPlan) -> Iterator[TrendlakeError]:
    known = {"events": [name for name, _ in plan.schema.columns], "expect": plan.result_schema.names}
    for number, test in enumerate(tests):
        for part, columns in known.items():
            for index, row in enumerate(getattr(test, part)):
                for name in row:
                    if name not in columns:
                        what = "the source" if part == "events" else "the results"
                        place = source.place((number, part, index, name), key=True)
                        hint = did_you_mean(name, columns)
                        yield UnknownKeyError(f"{what} has no column '{name}'", place=place, hint=hint)


def _bad_values(source: Source, tests: Sequence[PatternTest], schema: EventSchema) -> Iterator[TrendlakeError]:
    types = dict(schema.columns)
    for number, test in enumerate(tests):
        for index, event in enumerate(test.events):
            for name, value in event.items():
                if name not in types:
                    continue
                try:
                    kind = arrow_type(types[name])
                    pa.array([_cell(value, kind)], kind)
                except (pa.ArrowException, TypeError, ValueError, OverflowError):
                    place = source.place((number, "events", index, name))
                    yield BadValueError(f"{name}: expected {types[name]}, found {value!r}", place=place)
            if event.get(schema.event_time) is None:
                place = source.place((number, "events", index))
                yield BadValueError(f"the event has no {schema.event_time}", place=place)


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
    return "null" if value is None else str(value)
