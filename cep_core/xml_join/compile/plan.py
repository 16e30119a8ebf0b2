"""The compiled plan of kind xml_join: definitions, sides of queries and joins as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from trendlake.cep_core.documents.paths import Path
from trendlake.cep_core.events.schema import TIME_TYPE, EventSchema, key_type
from trendlake.cep_core.events.windows import AGES, Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import ADDED, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import InPanes, ResultShape
from trendlake.cep_core.xml_join.compile.query import Form

LANGUAGE_VERSION = 1
"""Part of the hashes: raised when the meaning of a query that stays the same changes."""
ENGINE_VERSION = 1
"""Raised when a plan that stays the same gives other results (docs/adr/0012-versions-of-results.md)."""

Value = tuple[int, Form]
"""A node's place in a side, and what is taken of it."""


@dataclass(frozen=True)
class Definition:
    """Nodes that `path` selects from those of the definition `parent`; from the document, where that is -1."""

    parent: int
    path: Path


@dataclass(frozen=True)
class Side:
    """The witnesses of one block, as far as a join needs them.

    `nodes`: definitions of the minor's nodes; `parents`: the tree; `keys`: values that are joined, sorted; `cells`:
    values that are returned.
    """

    parents: tuple[int, ...]
    nodes: tuple[int, ...]
    keys: tuple[Value, ...]
    cells: tuple[Value, ...]


@dataclass(frozen=True)
class Template:
    """A form of queries: the trees of both sides, the joined nodes, the returned ones.

    `plan`: the number of the plan that serves it: one for a template and its mirror image. `text`: for people.
    """

    form: tuple[object, ...] = field(repr=False)
    plan: int
    text: str


@dataclass(frozen=True)
class Join:
    """One distinct query: a row of the table of constants of its template. `pairs`: places in the keys of the left and
    right side that are equal; `columns`: name, whether of the left side, and the place in its cells."""

    template: int
    left: int
    right: int
    pairs: tuple[tuple[int, int], ...]
    columns: tuple[tuple[str, bool, int], ...]
    followed: bool
    within: int
    hash: str


@dataclass(frozen=True)
class XmlJoinPlan(InPanes):
    """All queries of a file, ready to run; an `AnyPlan`."""

    kind: ClassVar[str] = "xml_join"
    engine_version: ClassVar[int] = ENGINE_VERSION

    definitions: tuple[Definition, ...]
    sides: tuple[Side, ...]
    joins: tuple[Join, ...]
    queries: tuple[tuple[str, int], ...]
    """(name, its join)."""
    templates: tuple[Template, ...]
    returned: tuple[str, ...]
    """Columns of `return`, of all queries."""
    limit: int
    schema: EventSchema
    blocks: int
    """Blocks as they are written, of all queries: how many share a side."""
    warnings: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when a query, its name, the limit or the source's columns change."""
        queries = tuple(sorted(self.query_hashes.items()))
        return fingerprint((queries, self.returned, self.limit), LANGUAGE_VERSION)

    @cached_property
    def query_hashes(self) -> Mapping[str, str]:
        """Of each query its own hash: the `plan_hash` of its rows."""
        hashes = {name: self.joins[join].hash for name, join in self.queries}
        if not self.having:
            return hashes
        return {name: fingerprint((one, self.having), LANGUAGE_VERSION) for name, one in hashes.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        return (self.schema.event_id, self.schema.event_time, self.schema.document)

    @property
    def event_types(self) -> None:
        """Every document matters."""
        return None

    @property
    def shard_key(self) -> tuple[str, ...]:
        """Any two documents may meet."""
        return ()

    @property
    def unit_key(self) -> tuple[str, ...]:
        """A row is of two documents."""
        return ()

    @cached_property
    def within(self) -> int:
        """The largest of all queries, microseconds."""
        return max(join.within for join in self.joins)

    @property
    def windows(self) -> Windows:
        """Window j ends with pane j, [j*pane, (j+1)*pane), and holds the documents up to `within` before."""
        return Windows(self.within + self.pane, self.pane, -self.within)

    @property
    def key(self) -> tuple[str, ...]:
        return ("answer_id",)

    @property
    def result_shape(self) -> ResultShape:
        columns = {"query": ("query",), "document": ("left_id", "right_id"), "returned": self.returned}
        return ResultShape("results_xml_join", columns, hashed_by=("query", self.query_hashes))

    @property
    def result_schema(self) -> pa.Schema:
        ids = key_type(dict(self.schema.columns)[self.schema.event_id])
        text = pa.string()
        own = {"answer_id": text, "query": text, "left_id": ids, "right_id": ids, "start": TIME_TYPE, "end": TIME_TYPE}
        return pa.schema([*own.items(), *((name, text) for name in self.returned)])

    @property
    def unbounded(self) -> bool:
        """Whether a query reads all history."""
        return self.within >= AGES
