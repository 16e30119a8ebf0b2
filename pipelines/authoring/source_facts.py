"""The rows of a source, as far as first patterns depend on them: which column holds a number, which one
says whose event it is, in which order event types come, and how much time passes between events."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.local_times import UTC
from trendlake.cep_core.events.number_texts import number_texts
from trendlake.cep_core.expressions.sql_functions import RESERVED
from trendlake.pipelines.authoring.advice import newest_file
from trendlake.pipelines.authoring.trial_file import FileOfRows
from trendlake.pipelines.contracts.column_types import LOGICAL_OF
from trendlake.pipelines.contracts.contract import TYPE_NAME, Contract
from trendlake.pipelines.project.paths import Project

MOST = 50_000
"""The rows that are looked at, the newest ones."""
EVENTS_OF_A_KEY = 3
"""A column says whose event it is if its values come so often, on average."""
MOST_STEPS = 3
_TAKEN = RESERVED | {"START", "END", "MATCH_ID"}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_LENGTHS = (
    *((n, "second") for n in (1, 2, 5, 10, 15, 30)),
    *((n, "minute") for n in (1, 2, 5, 10, 15, 30)),
    *((n, "hour") for n in (1, 2, 3, 6, 12)),
    *((n, "day") for n in (1, 2, 7, 14, 30, 90, 365)),
)


@dataclass(frozen=True)
class Length:
    """A length of time that people would choose."""

    number: int
    unit: str

    @property
    def delta(self) -> timedelta:
        return timedelta(seconds=self.number * _SECONDS[self.unit])

    @property
    def words(self) -> str:
        """As patterns write it."""
        return f"{self.number} {self.unit}{'s' if self.number != 1 else ''}"

    @property
    def sql(self) -> str:
        return f"INTERVAL '{self.number}' {self.unit.upper()}"


@dataclass(frozen=True)
class SourceFacts:
    """`rows`: events that keep the contract, in order of time, empty where there are no data; `where`: what holds them,
    in words."""

    contract: Contract
    rows: pa.Table | None
    where: str

    @classmethod
    def of(cls, project: Project, contract: Contract, file: Path | None) -> SourceFacts:
        """Of the rows of a file, else of the source's table, if it is on this machine's disk. Raises
        SourceFileError."""
        if file is not None:
            return cls(contract, _in_order(FileOfRows([file], contract, 0).take(None).good, contract), file.name)
        stored = newest_file(project, contract.name)
        if stored is None:
            return cls(contract, None, "")
        rows = pa.Table.from_batches(stored.iter_batches(MOST), stored.schema_arrow)
        return cls(contract, _in_order(rows, contract), f"the table {contract.name}")

    @property
    def time(self) -> str:
        return self.contract.event_time

    @property
    def zone(self) -> str | None:
        """The zone of a place whose clocks the files' times show."""
        written = self.contract.time_formats.get(self.time)
        return None if written is None or written.states_offset or written.zone == UTC else written.zone

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The event types, as far as anything says them: in the order in which they come."""
        if self.contract.constant_type is not None:
            return (self.contract.constant_type,)
        if self.rows is None:
            return self.contract.types or ()
        keys_of: dict[str, int] = Counter()
        places: dict[str, list[int]] = defaultdict(list)
        for series in self.series():
            for place, name in enumerate(dict.fromkeys(one for _, one, _ in series if one is not None)):
                keys_of[name] += 1
                places[name].append(place)
        names = [name for name in keys_of if TYPE_NAME.fullmatch(name)]
        return tuple(sorted(names, key=lambda name: (sum(places[name]) / len(places[name]), -keys_of[name], name)))

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The event types that come most, at most three, in the order in which they come."""
        if self.rows is None or self.contract.constant_type is not None:
            return self.types[:MOST_STEPS]
        counts = Counter(self._cells(self.contract.roles["event_type"]))
        most = sorted(self.types, key=lambda name: -counts[name])[:MOST_STEPS]
        return tuple(name for name in self.types if name in most)

    @cached_property
    def number(self) -> str | None:
        """The column of numbers that patterns are about: one with fractions before one of whole numbers."""
        kinds = self._free_columns
        names = [*(one for one in kinds if kinds[one] == "number"), *(one for one in kinds if kinds[one] == "integer")]
        usable = (one for one in names if not one.lower().endswith("id") and self._fills(one))
        return next(usable, None)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Columns that say whose event it is; without data the first text."""
        names = [
            name
            for name, kind in self._free_columns.items()
            if kind == "string" or (kind == "integer" and name.lower().endswith("id"))
        ]
        if self.rows is None:
            return tuple(names[:1])
        return tuple(name for name in names if self._tells_apart(name))

    @property
    def key(self) -> str | None:
        return next(iter(self.keys), None)

    def logical(self, name: str) -> str:
        """The logical type of a column that has no role."""
        return self._free_columns[name]

    @property
    def _free_columns(self) -> dict[str, str]:
        """The columns without a role that patterns can name, with their logical types."""
        roles = {*self.contract.roles.values(), *self.contract.id_columns, self.contract.named_by}
        return {
            item.name: LOGICAL_OF.get(item.type.partition("(")[0], "")
            for item in self.contract.columns
            if item.name not in roles and _NAME.fullmatch(item.name) and item.name.upper() not in _TAKEN
        }

    def _fills(self, name: str) -> bool:
        """Whether most events have a value."""
        return self.rows is None or 2 * self.rows.column(name).null_count < self.rows.num_rows

    def _tells_apart(self, name: str) -> bool:
        """Whether few values, which are no numbers written as texts, come often."""
        assert self.rows is not None
        column = self.rows.column(name)
        distinct = pc.count_distinct(column).as_py()
        few = distinct > 1 and len(column) >= EVENTS_OF_A_KEY * distinct
        return bool(few and self._fills(name) and number_texts(column) is None)

    def _cells(self, name: str) -> list[Any]:
        assert self.rows is not None
        cells: list[Any] = self.rows.column(name).to_pylist()
        return cells

    def series(self) -> list[list[tuple[int, str | None, float | None]]]:
        """Of each key its events in order: time (microseconds), type, number."""
        if self.rows is None:
            return []
        times = self.rows.column(self.time).cast(pa.int64()).to_pylist()
        nothing = [None] * len(times)
        kinds = self._cells(self.contract.roles["event_type"]) if self.contract.constant_type is None else nothing
        values = self._cells(self.number) if self.number is not None else nothing
        whose = self._cells(self.key) if self.key is not None else nothing
        by_key: dict[Any, list[tuple[int, str | None, float | None]]] = defaultdict(list)
        for key, time, kind, value in zip(whose, times, kinds, values, strict=True):
            by_key[key].append((time, kind, None if value != value else value))  # NaN
        return list(by_key.values())

    def gaps(self) -> list[int]:
        """The times between neighbours of one key, microseconds."""
        return [after[0] - before[0] for series in self.series() for before, after in pairwise(series)]

    def waits(self, first: str, then: str) -> list[int]:
        """How long it takes from an event of one type to the next one of another, of one key, microseconds."""
        waits = []
        for series in self.series():
            begun: list[int] = []
            for time, kind, _ in series:
                if kind == then:
                    waits += [time - one for one in begun]
                    begun = []
                if kind == first:
                    begun.append(time)
        return waits

    def values(self) -> list[Any]:
        return [value for series in self.series() for _, _, value in series if value is not None]

    def falls(self) -> list[Any]:
        """By how much the number falls, in each unbroken fall."""
        falls = []
        for series in self.series():
            top = bottom = None
            for (_, _, before), (_, _, after) in pairwise([*series, (0, None, None)]):
                if before is not None and after is not None and after < before:
                    top, bottom = (before if top is None else top), after
                elif top is not None and bottom is not None:
                    falls.append(top - bottom)
                    top = None
        return falls


def _in_order(rows: pa.Table, contract: Contract) -> pa.Table:
    """The newest rows, in order of time."""
    named = [item.name for item in contract.columns]
    return rows.select(named).filter(pc.is_valid(rows.column(contract.event_time))).sort_by(contract.event_time)[-MOST:]


def quantile(values: Sequence[Any], share: float) -> Any:
    """The least of the values (not empty) that at least this share of them does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def longer_than(micros: int) -> Length:
    """The shortest length that people would choose which is longer."""
    lengths = [Length(*one) for one in _LENGTHS]
    return next((one for one in lengths if one.delta > timedelta(microseconds=micros)), lengths[-1])
