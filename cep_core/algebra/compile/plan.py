"""A compiled query of kind algebra: frozen data, printable, comparable, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from trendlake.cep_core.algebra.compile.form import Form, form_of
from trendlake.cep_core.algebra.compile.nodes import Aggregate, Base, Node, attributes_of, expressions, inputs
from trendlake.cep_core.events.schema import TIME_TYPE, EventSchema, key_type, result_type
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import ADDED, added, digest, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import InPanes, ResultShape

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of a query that stays the same changes."""

ENGINE_VERSION = 2
"""Raised when a plan that stays the same gives other results. It is no part of the hash: commits to a results table
record it (docs/adr/0012-versions-of-results.md)."""


@dataclass(frozen=True)
class AlgebraPlan(InPanes):
    """One pattern of kind algebra, ready to run (Hong 2009, chapters 3 and 4); an `AnyPlan`.

    `nodes`: the operators, each after what it reads; the last gives the rows. `within`: microseconds. `begins`: the
    column, less so many microseconds, with the time at which an event starts; None: events are points.
    `statements`: for each node the statement (from 1) that it is first written in. `published`: (name, node).
    """

    kind: ClassVar[str] = "algebra"
    engine_version: ClassVar[int] = ENGINE_VERSION

    nodes: tuple[Node, ...]
    partition_by: tuple[str, ...]
    within: int
    begins: tuple[str, int] | None
    limit: int
    schema: EventSchema
    statements: tuple[int, ...] = ()
    published: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""
        columns = {name: kind for name, kind in self.schema.columns if name in self.columns}
        read = (name if name in columns else None for name in (self.schema.event_id, self.schema.event_type))
        what = (self.nodes, self.partition_by, self.within, self.begins, self.limit)
        source = tuple(columns.items()), self.schema.event_time, *read
        later = *added(self.schema.derived), *added(self.having), *self.schema.tables_in_hash
        return fingerprint((*what, *source, *later), LANGUAGE_VERSION)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        names = [self.schema.event_time, *self.partition_by]
        names += [self.begins[0]] if self.begins is not None else []
        for node in self.nodes:
            if isinstance(node, Base):
                names += [self.schema.event_type] if node.type_name is not None else []
                names += [name for name, _ in node.attributes]
        return self.schema.sources(names)

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """Types that matter; None: every event does."""
        types = [node.type_name for node in self.nodes if isinstance(node, Base)]
        return None if None in types else tuple(dict.fromkeys(str(name) for name in types))

    @property
    def shard_key(self) -> tuple[str, ...]:
        return self.partition_by

    @property
    def unit_key(self) -> tuple[str, ...]:
        return self.schema.stored(self.partition_by)

    @cached_property
    def reach(self) -> int:
        """Rows that end at t depend on the events in (t - reach, t], microseconds: `within`, and as much again for each
        instance aggregation on a way from the rows to a base stream."""
        most: list[int] = []
        for node in self.nodes:
            most.append(max((most[place] for place in inputs(node)), default=0) + isinstance(node, Aggregate))
        return self.within * (1 + most[-1])

    @property
    def windows(self) -> Windows:
        """Window j ends with pane j, [j * pane, (j + 1) * pane), and holds the reach before it."""
        return Windows(self.reach + self.pane, self.pane, -self.reach)

    @property
    def attributes(self) -> tuple[tuple[str, str], ...]:
        """(name, family) of each column of a row other than its partition and interval."""
        return attributes_of(self.nodes[-1])

    @property
    def key(self) -> tuple[str, ...]:
        """Rows are a set: all that a row says tells it apart."""
        return (*self.partition_by, "start", "end", *(name for name, _ in self.attributes))

    @property
    def result_shape(self) -> ResultShape:
        """The partition and the attributes of an event."""
        attributes = tuple(name for name, _ in self.attributes)
        columns = {"partition": self.partition_by, "attribute": attributes}
        durations = tuple(name for name, family in self.attributes if family == "duration")
        return ResultShape("results_algebra", columns, durations=durations, begins=("start", 0))

    @property
    def result_schema(self) -> pa.Schema:
        """Partition columns, start, end, attributes."""
        kinds = dict(self.schema.columns)
        fields = [pa.field(name, key_type(kinds[name])) for name in self.partition_by]
        fields += [pa.field("start", TIME_TYPE), pa.field("end", TIME_TYPE)]
        fields += [pa.field(name, result_type(family)) for name, family in self.attributes]
        return pa.schema(fields)

    @cached_property
    def form(self) -> Form | None:
        """The form that it shares with queries that differ in constants only; None where it has no such constants."""
        families = self.schema.families
        form = form_of(self.nodes, {name: families[name] for name in self.partition_by})
        if form is None:
            return None
        what = (form.template, self.partition_by, self.within, self.begins, self.limit, self.schema)
        return replace(form, template=digest(what))

    def expressions(self) -> list[s.Expr]:
        """Every condition and value."""
        return [one for node in self.nodes for one in expressions(node)]
