"""A compiled row pattern: frozen data, printable, comparable, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from trendlake.cep_core.events.schema import TIME_TYPE, EventSchema, key_type
from trendlake.cep_core.events.windows import AGES, Windows, WindowsAhead
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import ADDED, added, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import LIST, Navigation, Number, columns_of, every
from trendlake.cep_core.match_recognize.compile.meanings import Meanings
from trendlake.cep_core.match_recognize.compile.program import Program, program_of
from trendlake.cep_core.match_recognize.compile.syntax import Anchor, Part, walk
from trendlake.cep_core.plan import InPanes, ResultShape

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of a text that stays the same changes."""

ENGINE_VERSION = 1
"""Raised when a plan that stays the same gives other results. It is no part of the hash: commits to a results table
record it (docs/adr/0012-versions-of-results.md)."""


@dataclass(frozen=True)
class Column:
    """A column of the input or of the result. `value`: what it is computed of; None for a column of the source, or of
    what is before, under `origin`. `type_name`: that of Spark, or a family."""

    name: str
    type_name: str
    family: str
    value: s.Expr | None = None
    origin: str = ""


@dataclass(frozen=True)
class SortKey:
    """A key of ORDER BY."""

    column: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Onward:
    """Where matching goes on after a match: `mode` past_last, next, first or last; the row mapped to one of `variables`
    that the last two mean, called `name`."""

    mode: str = "past_last"
    variables: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class RowPatternPlan(InPanes):
    """One pattern of kind match_recognize, ready to run; an `AnyPlan`.

    `inputs`: the columns of the rows; `where`: which events are rows. `rows`: one,
    or with ALL ROWS what becomes of rows without a match: show, omit, unmatched. `selected`: the columns of a result
    row, of those that the clause gives (`given`); `chosen`: which rows are results. `bound`: microseconds, None for
    none. `subsets`: for `explain`.
    """

    kind: ClassVar[str] = "match_recognize"
    engine_version: ClassVar[int] = ENGINE_VERSION

    schema: EventSchema
    inputs: tuple[Column, ...]
    where: s.Expr | None
    partition_by: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    pattern: Part
    defines: tuple[tuple[str, s.Expr], ...]
    measures: tuple[Column, ...]
    rows: str
    onward: Onward
    bound: int | None
    given: tuple[Column, ...]
    selected: tuple[Column, ...]
    chosen: s.Expr | None
    limit: int
    limit_per_start: int
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), compare=False)
    warnings: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""

    @cached_property
    def program(self) -> Program:
        """The places of the pattern and the ways between them."""
        return program_of(self.pattern)

    @property
    def all_rows(self) -> bool:
        return self.rows != "one"

    @property
    def by_time(self) -> bool:
        """Whether the first key of ORDER BY is the event time, in either direction."""
        return not self.order_by or self.order_by[0].column == self.schema.event_time

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""
        schema = self.schema
        types = {name: kind for name, kind in schema.columns if name in self.columns}
        roles = (schema.event_id, schema.event_time, schema.sequence)
        what = (self.inputs, self.where, self.partition_by, self.order_by, self.pattern, self.defines, self.measures)
        how = (self.rows, self.onward, self.bound, self.given, self.selected, self.chosen)
        limits = (self.limit, self.limit_per_start)
        later = *added(schema.derived), *added(self.having), *schema.tables_in_hash
        return fingerprint((*what, *how, *limits, tuple(types.items()), *roles, *later), LANGUAGE_VERSION)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        schema = self.schema
        names = [schema.event_id, schema.event_time, *([schema.sequence] if schema.sequence else [])]
        for column in self.inputs:
            names += columns_of(column.value) if column.value is not None else [column.origin]
        names += columns_of(self.where) if self.where is not None else []
        return self.schema.sources(names)

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """None: every event is a row."""
        return None

    @property
    def shard_key(self) -> tuple[str, ...]:
        return self.unit_key

    @property
    def unit_key(self) -> tuple[str, ...]:
        """Partition columns that are columns of the source: without computed ones a unit has several partitions. A
        result column of such a name has the values of that column."""
        plain = {column.name: column.origin for column in self.inputs if column.value is None}
        names = [(name, plain[name]) for name in self.partition_by if name in plain]
        return self.schema.stored(origin for name, origin in names if name == origin or origin not in self.key)

    @property
    def within(self) -> int:
        return AGES if self.bound is None else self.bound

    @cached_property
    def windows(self) -> Windows:
        """Window j owns the rows that end in pane j. They depend on all events of their partitions before, as matching
        is a chain, and on those up to `within` after. The former is so without a chain too, where conditions or
        measures read rows or numbers before the match; the latter is all events, where they read rows behind it."""
        asked = [value for _, value in self.defines]
        asked += [column.value for column in self.measures if column.value is not None]
        read = [leaf for value in asked for leaf in every(value)]
        signs = {leaf.sign for leaf in read if isinstance(leaf, Navigation)}
        anchors = {part.last for part in walk(self.pattern) if isinstance(part, Anchor)}
        numbered = any(isinstance(leaf, Number) for leaf in read)
        behind = ahead = self.within
        if self.onward.mode != "next" or numbered or -1 in signs or False in anchors or not self.forward:
            behind = AGES
        if 1 in signs or True in anchors or not self.forward:
            ahead = AGES
        return WindowsAhead(behind + self.pane, self.pane, -behind, ahead)

    @property
    def forward(self) -> bool:
        """Whether rows are ordered by event time, the earlier first."""
        return self.by_time and not (self.order_by and self.order_by[0].descending)

    @property
    def key(self) -> tuple[str, ...]:
        names = (*self.partition_by, "match_id")
        return (*names, self.schema.event_id) if self.all_rows else names

    @property
    def result_shape(self) -> ResultShape:
        key = {*self.key, "start", "end"}
        others = tuple(column.name for column in self.selected if column.name not in key)
        columns = {"partition": self.partition_by, "match": ("match_id",), "attribute": others}
        if self.all_rows:
            columns["event"] = (self.schema.event_id,)
        about = Meanings(self.inputs, self.measures, self.selected, self.schema.event_id)
        micros, ids = about.lengths, about.listed_ids
        return ResultShape("results_match_recognize", columns, begins=("start", 0), micros=micros, listed_ids=ids)

    @property
    def result_schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column_type(column.type_name)) for column in self.selected])


def column_type(type_name: str) -> pa.DataType:
    """The Arrow type of a column of the result."""
    if type_name.startswith(LIST):
        return pa.list_(column_type(type_name.removeprefix(LIST)))
    if type_name in ("timestamp", "timestamp_ntz"):
        return TIME_TYPE
    return pa.int64() if type_name == "duration" else key_type(type_name)
