"""The compiled plan of kind matches: frozen data, printable, comparable, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias, TypeVar

import pyarrow as pa

from trendlake.cep_core.errors import TypeMismatchError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.schema import COUNT_TYPE, TIME_TYPE, EventSchema, key_type, result_type
from trendlake.cep_core.events.windows import AGES, Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.expressions.types import NUMERIC, ORDERED, ExpressionError
from trendlake.cep_core.fingerprint import ADDED, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.model import Output
from trendlake.cep_core.matches.compile.positions import Positions, positions_of
from trendlake.cep_core.patterns.model import Selection
from trendlake.cep_core.plan import ANY, InPanes, ResultShape

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of a pattern that stays the same changes."""

ENGINE_VERSION = 4
"""Raised when a plan that stays the same gives other results. It is no part of the hash: commits to a results table
record it (docs/adr/0012-versions-of-results.md)."""

When: TypeAlias = Literal["each", "first", "later", "last"]
"""The moment of a condition within its part: every event that binds, the first, every other, or when the part is left
(`a[a.LEN]`)."""


Moments = TypeVar("Moments", int, Int64s)
"""One, or one for each match: microseconds."""


@dataclass(frozen=True)
class Part:
    """A variable of the pattern, in reading order. `kleene`: a match may have several events of it."""

    variable: str
    type_name: str
    kleene: bool


@dataclass(frozen=True)
class Negation:
    """`NOT type variable` after the first `after` parts of the text; `conditions` are those that speak of its events;
    `within`: it looks so many microseconds from the event before it, None: as far as the match, or its window,
    reaches."""

    variable: str
    type_name: str
    after: int
    conditions: tuple[s.Expr, ...] = ()
    within: int | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Condition:
    """A conjunct of `where`, at the moment its last variable binds. Of a plan with a `tree` that moment depends on the
    way to it: `part` is the last variable in reading order (see `cep_core.matches.compile.registers.Ask`)."""

    expression: s.Expr
    part: int
    when: When


@dataclass(frozen=True)
class Measure:
    """A `return` column. Aggregates are `syntax.Indexed` with the index `all`."""

    name: str
    expression: s.Expr
    family: str


@dataclass(frozen=True)
class MatchesPlan(InPanes):
    """One pattern of kind matches, ready to run; an `AnyPlan`."""

    kind: ClassVar[str] = "matches"
    engine_version: ClassVar[int] = ENGINE_VERSION

    parts: tuple[Part, ...]
    negations: tuple[Negation, ...]
    conditions: tuple[Condition, ...]
    partition: tuple[str, ...]
    """Attributes on which all events agree, those of NOT included."""
    scoped: tuple[tuple[str, frozenset[str]], ...]
    """(attribute, variables whose events agree on it)."""
    measures: tuple[Measure, ...]
    within: int
    select: Selection
    output: Output
    limit: int | None
    never: bool
    """A constant condition is not true: no match at all."""
    schema: EventSchema
    warnings: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""
    tree: s.PatternNode | None = field(default=None, metadata=ADDED)
    """The pattern, where it is more than one SEQ of types, Kleene parts and NOTs."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""
        known = {name: kind for name, kind in self.schema.columns if name in self.columns}
        roles = (self.schema.event_id, self.schema.event_time, self.schema.event_type, self.schema.sequence)
        schema = EventSchema(known, *roles, derived=self.schema.derived, tables=self.schema.tables)
        return fingerprint(replace(self, warnings=(), schema=schema), LANGUAGE_VERSION)

    @cached_property
    def positions(self) -> Positions:
        """The positions of the pattern."""
        numbers = {negation.variable: number for number, negation in enumerate(self.negations)}
        return positions_of(self.tree or _sequence(self.parts, self.negations), numbers)

    @property
    def bound(self) -> tuple[Part | Negation, ...]:
        """Parts and NOTs."""
        return (*self.parts, *self.negations)

    @property
    def contiguous(self) -> bool:
        """Whether events of no part matter: a run may not ignore them."""
        return self.select in ("contiguous", "partition_contiguous")

    @property
    def of_any(self) -> bool:
        """Whether a variable binds events of every type."""
        return any(part.type_name == ANY for part in self.bound)

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """Types that matter; None: every event does."""
        if self.contiguous or self.of_any:
            return None
        return tuple(dict.fromkeys(part.type_name for part in self.bound))

    @property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        schema = self.schema
        names = [schema.event_id, schema.event_time, schema.event_type]
        names += [schema.sequence] if schema.sequence is not None else []
        names += [*self.partition, *(name for name, _ in self.scoped)]
        for expression in self.expressions:
            names += [read.name for read in s.attributes(expression) if read.name]
        return self.schema.sources(names)

    @property
    def expressions(self) -> tuple[s.Expr, ...]:
        """Every condition and measure."""
        of_nots = (one for negation in self.negations for one in negation.conditions)
        return (*(c.expression for c in self.conditions), *of_nots, *(m.expression for m in self.measures))

    @property
    def shard_key(self) -> tuple[str, ...]:
        """Events that differ on these never meet, nor does one break another's contiguity; () when all may."""
        return () if self.select == "contiguous" else self.partition

    @property
    def parts_of_order(self) -> tuple[str, ...] | None:
        return self.shard_key if self.contiguous else None

    @property
    def unit_key(self) -> tuple[str, ...]:
        """A row is a match, and all events of a match are of one partition."""
        return self.schema.stored(self.shard_key)

    @property
    def leads(self) -> bool:
        """Whether a NOT may stand first."""
        return any(way for ways in self.positions.start.values() for way in ways)

    @property
    def trails(self) -> bool:
        """Whether a NOT may stand last: a match is decided later than by its last event."""
        return bool(self._last_nots)

    @property
    def held_back(self) -> bool:
        """Until a NOT with a limit of its own is decided."""
        return self.limit_of_last is not None

    @property
    def limit_of_last(self) -> int | None:
        """So many microseconds after its last event a match is decided; None: at its last event, or, where a NOT
        `trails`, `within` after its first."""
        limits = (self.negations[number].within for number in self._last_nots)
        return max((limit for limit in limits if limit is not None), default=None)

    @property
    def _last_nots(self) -> frozenset[int]:
        return frozenset(number for ways in self.positions.end.values() for way in ways for number in way)

    @property
    def windows(self) -> Windows:
        """Window j ends with pane j, [j*pane, (j+1)*pane), and holds all that a match decided in that pane needs: the
        events up to `within` before (twice that where a NOT looks back from a match that another decides late;
        everything, where matches must not overlap). A match is decided by its last event, or, where a NOT trails, when
        `within` has passed since its first; a compressed row with such a NOT, when it has passed since the last. A NOT
        with a limit of its own decides when that has passed since the last."""
        looks_back = self.trails and (self.leads or self.output == "compressed")
        reach = 2 * self.within if looks_back else self.within
        if self.limit_of_last is not None:
            reach = self.within + self.limit_of_last
        if self.output == "non_overlap":
            reach = AGES
        return Windows(reach + self.pane, self.pane, -reach)

    def decided(self, start: Moments, end: Moments) -> Moments:
        """The moment (microseconds) whose pane a match belongs to; `start` and `end`: times of its first and last
        event. Of a compressed row, that of its last match."""
        if self.limit_of_last is not None:
            return end + self.limit_of_last - 1
        if not self.trails:
            return end
        return (end if self.output == "compressed" else start) + self.within - 1

    def owned(self, windows: range) -> tuple[str, int, int]:
        """Matches of `windows` (not empty) are those decided in their panes."""
        column, low, high = super().owned(windows)
        if (limit := self.limit_of_last) is not None:
            return column, low - limit + 1, high - limit + 1
        if self.trails:
            column = "end" if self.output == "compressed" else "start"
            return column, low - self.within + 1, high - self.within + 1
        return column, low, high

    @property
    def key(self) -> tuple[str, ...]:
        """A row is a match; compressed, an event that ends some."""
        return ("end_event",) if self.output == "compressed" else ("match_id",)

    @property
    def result_shape(self) -> ResultShape:
        """The events of each variable and the measures; compressed, the event that ends matches and their graph."""
        if self.output == "compressed":
            graphs = {"end_event": ("end_event",), "graph": ("graph",)}
            return ResultShape("results_compressed", graphs, begins=("start", 0))
        optional = tuple(part.variable for part in self.parts if self.positions.optional(part.variable))
        events = tuple(part.variable for part in self.parts if part.variable not in optional)
        columns = {"events": events, "measure": tuple(m.name for m in self.measures)}
        if optional:
            columns["optional_events"] = optional
        durations = tuple(m.name for m in self.measures if m.family == "duration")
        return ResultShape("results_matches", columns, durations=durations, begins=("start", 0))

    @property
    def result_schema(self) -> pa.Schema:
        """match_id, start, end; for each variable the ids of its events; measures. Compressed: see `compressed`."""
        families = dict(self.schema.columns)
        ids = key_type(families[self.schema.event_id])
        if self.output == "compressed":
            return schema_of_graphs(ids)
        fields = [pa.field("match_id", pa.string()), pa.field("start", TIME_TYPE), pa.field("end", TIME_TYPE)]
        fields += [pa.field(part.variable, pa.list_(ids)) for part in self.parts]
        fields += [pa.field(measure.name, result_type(measure.family)) for measure in self.measures]
        return pa.schema(fields)


def iterates(read: s.Attribute) -> str:
    """The events of a Kleene variable that an attribute speaks of, one after the other: `each`, `later` (i > 1), or
    none ("")."""
    if isinstance(read, s.Indexed):
        return "later" if read.index in ("i", "i-1", "..i-1") else ""
    return "each"


def aggregated(read: s.Attribute, family: str, function: str | None = None) -> str:
    """The family of an aggregate over values of `family`. Raises ExpressionError."""
    name = function or (read.function if isinstance(read, s.Indexed) else "")
    if name == "count":
        return "int"
    takes = NUMERIC if name in ("sum", "avg") else ORDERED - {"boolean"}
    if family not in takes and family != "null":
        raise ExpressionError(TypeMismatchError(f"{name.upper()} does not take a {family}"), read.span)
    return "double" if name == "avg" else family


def is_fence(plan: MatchesPlan, negation: Negation) -> bool:
    """Whether it rules out by place alone, or, last, by its time alone."""
    number = plan.negations.index(negation)
    if any(len(ways) > 1 and any(number in way for way in ways) for ways in plan.positions.end.values()):
        return False
    between = (way for follow in plan.positions.follow for ways in follow.values() for way in ways)
    if negation.within is not None and any(number in way for way in between):
        return False
    bound = {part.variable for part in plan.parts}
    reads = (read.variable for one in negation.conditions for read in s.attributes(one))
    scoped = any(negation.variable in scope and scope & bound for _, scope in plan.scoped)
    return not scoped and all(variable == negation.variable for variable in reads)


def _sequence(parts: tuple[Part, ...], negations: tuple[Negation, ...]) -> s.PatternNode:
    """The pattern of a plan without a tree."""
    nodes: list[s.PatternNode] = []
    for number in range(len(parts) + 1):
        nodes += [s.Not(s.Atom(one.type_name, one.variable)) for one in negations if one.after == number]
        if number < len(parts):
            atom = s.Atom(parts[number].type_name, parts[number].variable)
            nodes.append(s.Repeat(atom, 1, None) if parts[number].kleene else atom)
    return s.Seq(tuple(nodes))


def schema_of_graphs(ids: pa.DataType) -> pa.Schema:
    """`start`: of the earliest match; `matches`: how many there are, exact up to 38 digits, NULL beyond, and
    `matches_log10`; `graph`: its nodes in the order of their events."""
    node = pa.struct([("variable", pa.string()), ("event", ids), ("before", pa.list_(pa.int32()))])
    counts = [("matches", COUNT_TYPE), ("matches_log10", pa.float64())]
    times = [("start", TIME_TYPE), ("end", TIME_TYPE)]
    return pa.schema([("end_event", ids), *times, *counts, ("graph", pa.list_(node))])
