"""The rows that a project can be asked for. Each is a plan of a read; its answer is of one version of a table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from trendlake.cep_core import AnyPlan, Pattern
from trendlake.cep_core.errors import did_you_mean
from trendlake.jobs.python.caller import Caller, needs_spark
from trendlake.jobs.terminal.times import micros_of
from trendlake.jobs.terminal.workspace import started_lake
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import BadNumberError, ProjectError
from trendlake.pipelines.lake.lake import Lake, exists, latest_version, read_at
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import newest
from trendlake.pipelines.results.good_events import GoodEvents
from trendlake.pipelines.results.history import between, values, version_of
from trendlake.pipelines.results.named import no_results
from trendlake.pipelines.results.read import Selection, key_values
from trendlake.pipelines.results.selected_rows import as_evaluated, frame_by_spark, rows_here
from trendlake.pipelines.runs.intervals import LocalTimes
from trendlake.pipelines.runs.record import SCHEMA, newest_records
from trendlake.pipelines.spark.frames import frame_of


class Answer(Protocol):
    """Rows of a version."""

    @property
    def version(self) -> int | None:
        """None where the rows are of no one version."""

    @property
    def plan(self) -> AnyPlan | None:
        """That whose results the rows are."""

    @property
    def zone(self) -> str | None:
        """That of the plan's pattern."""

    def table(self, caller: Caller) -> pa.Table:
        """The rows in this process. Raises NeedsSparkError."""

    def frame(self, lake: Lake) -> DataFrame:
        """The rows as a frame of the session of `lake`."""


class Read(Protocol):
    """A plan of a read, equal to another for equal arguments."""

    @property
    def title(self) -> str: ...

    def answer(self, caller: Caller) -> Answer:
        """Chooses the version. Raises what the command raises."""


@dataclass(frozen=True)
class Rows:
    """Rows that are read already."""

    version: int | None
    rows: pa.Table
    plan: AnyPlan | None = None
    zone: str | None = None

    def table(self, caller: Caller) -> pa.Table:
        return self.rows

    def frame(self, lake: Lake) -> DataFrame:
        return frame_of(lake.spark, self.rows)


@dataclass(frozen=True)
class ResultRows:
    """Rows of the results of a plan."""

    version: int
    plan: AnyPlan
    zone: str | None
    path: str
    selection: Selection
    names: tuple[str, ...]

    def table(self, caller: Caller) -> pa.Table:
        rows = rows_here(Table.at(caller.reading(), self.path, self.version), self.plan, self.selection, self.names)
        if not isinstance(rows, NotHere):
            return rows
        every = tuple(self.plan.result_schema.names)
        frame = frame_by_spark(self._frame(started(caller, rows)), self.plan, self.selection, every)
        return as_evaluated(frame.toArrow(), self.plan, self.names)

    def frame(self, lake: Lake) -> DataFrame:
        return frame_by_spark(self._frame(lake), self.plan, self.selection, self.names)

    def _frame(self, lake: Lake) -> DataFrame:
        return read_at(lake, self.path, self.version)


@dataclass(frozen=True)
class EventRows:
    """Good rows of a source."""

    version: int
    events: Callable[[Lake], GoodEvents]
    plan: None = None
    zone: None = None

    def table(self, caller: Caller) -> pa.Table:
        events = self.events(caller.reading())
        rows = events.here()
        if not isinstance(rows, NotHere):
            return rows
        return events.with_roles(self.events(started(caller, rows)).frame().toArrow())

    def frame(self, lake: Lake) -> DataFrame:
        return self.events(lake).frame()


def started(caller: Caller, otherwise: NotHere) -> Lake:
    """The lake of Spark that has started. Raises NeedsSparkError, with the reason why it is needed."""
    lake = started_lake(caller.place)
    if lake is None:
        raise needs_spark(otherwise.reason)
    return lake


@dataclass(frozen=True)
class OfResults:
    """As `trendlake show`, all rows. `where`: of key columns, values that a row may have."""

    pattern: str
    as_of: str | None
    start: str | None
    end: str | None
    where: Mapping[str, Any]
    columns: tuple[str, ...] | None

    @property
    def title(self) -> str:
        return self.pattern if self.as_of is None else f"{self.pattern} as of {self.as_of}"

    def answer(self, caller: Caller) -> ResultRows:
        loaded, plan, path = _published(caller, self.pattern)
        lake, times = caller.reading(), LocalTimes.of(loaded)
        start = None if self.start is None else times.micros(self.start, "--from")
        end = None if self.end is None else times.micros(self.end, "--to")
        selection = Selection(key_values(plan, self.where), start, end)
        names = _columns(plan, self.columns)
        _refuse_none(caller, lake, self.pattern, loaded.name, path)
        version = latest_version(lake, path) if self.as_of is None else version_of(lake, path, self.as_of)
        return ResultRows(version, plan, loaded.time_zone, path, selection, names)


@dataclass(frozen=True)
class OfDiff:
    """As `trendlake diff`, all rows: columns `kind`, `before` and `after`."""

    pattern: str
    first: str
    last: str

    @property
    def title(self) -> str:
        return f"{self.pattern} from {self.first} to {self.last}"

    def answer(self, caller: Caller) -> Rows:
        _, plan, path = _published(caller, self.pattern)
        lake = caller.reading()
        first, last = (version_of(lake, path, text) for text in (self.first, self.last))
        row = _row_type(lake, path, last)
        schema = pa.schema([("kind", pa.string()), ("before", row), ("after", row)])
        rows = [_aware(dataclasses.asdict(one)) for one in between(lake, path, plan, first, last)[1]]
        return Rows(last, pa.Table.from_pylist(rows, schema))


@dataclass(frozen=True)
class OfHistory:
    """As `trendlake history`: a row for each value, with the commit that wrote it; `note` is JSON, `row` NULL where it
    was retracted."""

    pattern: str
    group: Mapping[str, Any]
    window: str

    @property
    def title(self) -> str:
        return f"{self.pattern} in {self.window}"

    def answer(self, caller: Caller) -> Rows:
        loaded, plan, path = _published(caller, self.pattern)
        lake, groups = caller.reading(), key_values(plan, self.group)
        _refuse_none(caller, lake, self.pattern, loaded.name, path)
        version = latest_version(lake, path)
        kinds = [("version", pa.int64()), ("run_id", pa.string()), ("stage", pa.string())]
        kinds += [("source_version", pa.int64()), ("note", pa.string())]
        schema = pa.schema([*kinds, ("row", _row_type(lake, path, version))])
        rows = [
            {
                "version": value.commit.version,
                **{name: value.commit.note.get(name) for name in ("run_id", "stage", "source_version")},
                "note": json.dumps(value.commit.note),
                "row": _aware(value.row),
            }
            for value in values(lake, path, plan, groups, micros_of(self.window, "--window"))
            if value.commit.version <= version
        ]
        return Rows(version, pa.Table.from_pylist(rows, schema))


@dataclass(frozen=True)
class OfRuns:
    """As `trendlake runs`: the columns of `trendlake_runs`, some of them JSON."""

    pattern: str | None
    limit: int

    @property
    def title(self) -> str:
        return "runs" if self.pattern is None else f"runs of {self.pattern}"

    def answer(self, caller: Caller) -> Rows:
        records = newest_records(caller.reading(), self.pattern, self.limit) or []
        schema = to_arrow_schema(SCHEMA, timezone="UTC")
        return Rows(None, pa.Table.from_pylist(list(map(_aware, records)), schema))


@dataclass(frozen=True)
class OfEvents:
    """The good rows of a source, as `GoodEvents`."""

    source: str
    start: str | None
    end: str | None
    version: int | None

    @property
    def title(self) -> str:
        return f"events of {self.source}"

    def answer(self, caller: Caller) -> EventRows:
        contract = load_contract(caller.place.project.contract_path(self.source))
        if contract.is_reference and (self.start, self.end) != (None, None):
            message = f"'{self.source}' is a reference table, whose rows have no time"
            raise ProjectError(message, hint="leave out start and end")
        start = None if self.start is None else micros_of(self.start, "--from")
        end = None if self.end is None else micros_of(self.end, "--to")
        lake = caller.reading()
        table = newest(lake, lake.warehouse.source(self.source))
        if table is None:
            raise lake.warehouse.missing(self.source)
        version = table.version if self.version is None else self.version
        if not 0 <= version <= table.version:
            raise BadNumberError(f"version {version} does not exist: '{self.source}' has versions 0 to {table.version}")
        return EventRows(version, lambda lake: GoodEvents(lake, contract, version, start, end))


def _published(caller: Caller, pattern: str) -> tuple[Pattern, AnyPlan, str]:
    """A pattern, its plan, and the place of its results."""
    loaded, plan = compiled(caller.place.project, caller.place.project.pattern_path(pattern))
    return loaded, plan, caller.place.warehouse.results(loaded.name)


def _refuse_none(caller: Caller, lake: Lake, pattern: str, name: str, path: str) -> None:
    if not exists(lake, path):
        raise no_results(lake, caller.place.project, pattern, name)


def _columns(plan: AnyPlan, asked: Sequence[str] | None) -> tuple[str, ...]:
    every = plan.result_schema.names
    for name in asked or ():
        if name not in every:
            raise ProjectError(f"the results have no column '{name}'", hint=did_you_mean(name, every))
    return tuple(every if asked is None else asked)


def _row_type(lake: Lake, path: str, version: int) -> pa.DataType:
    """The type of a row of a table, with all its columns."""
    return pa.struct(list(to_arrow_schema(Table.at(lake, path, version).schema, timezone="UTC")))


def _aware(value: Any) -> Any:
    """The value with all times in UTC: Spark's have no zone, and are those of the machine's."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Mapping):
        return {name: _aware(item) for name, item in value.items()}
    return [_aware(item) for item in value] if isinstance(value, list | tuple) else value
