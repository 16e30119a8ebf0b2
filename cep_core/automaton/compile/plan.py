"""A compiled automaton: frozen data, printable, comparable, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import pyarrow as pa

from trendlake.cep_core.events.schema import TIME_TYPE, EventSchema, arrow_type, key_type
from trendlake.cep_core.events.windows import AGES, Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import ADDED, added, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import ResultShape

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of an automaton that stays the same changes."""

ENGINE_VERSION = 4
"""Raised when a plan that stays the same gives other results. It is no part of the hash: commits to a results table
record it (docs/adr/0012-versions-of-results.md)."""

ALWAYS = (-(2**63), 2**63 - 1)
MOST_MOMENTS = 200
"""A plan with more moments at which a lifetime begins or ends has one hash for all times: several would cost more to
find."""

EVENT, IGNORE, EPSILON, WINDOW_END = "event", "ignore", "epsilon", "window_end"

_WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True)
class Field:
    """A field of the register. `bits`: width of a whole number, 0 for all else. Times in `init` are microseconds."""

    name: str
    family: str
    bits: int
    init: int | float | str | bool | None

    @property
    def arrow(self) -> pa.DataType:
        """The type of its result column."""
        return _WIDTHS[self.bits] if self.bits else arrow_type(self.family)


@dataclass(frozen=True)
class Arc:
    """`source` and `target` are indices of states. It fires when all of `local` (which read the event only) and then
    `when` are true, at a moment in [valid_from, valid_to); `sets`: (index of a field, its new value)."""

    source: int
    target: int
    how: str
    local: tuple[s.Expr, ...] = ()
    when: s.Expr | None = None
    sets: tuple[tuple[int, s.Expr], ...] = ()
    valid_from: int | None = None
    valid_to: int | None = None


@dataclass(frozen=True)
class AutomatonPlan:
    """One pattern of kind automaton, ready to run (AFA, definition 1). Attributes of variable `e` are the event's,
    those of variable "" fields of the register. `within` is in microseconds."""

    kind: ClassVar[str] = "automaton"
    engine_version: ClassVar[int] = ENGINE_VERSION

    states: tuple[str, ...]
    start: int
    final: tuple[int, ...]
    register: tuple[Field, ...]
    arcs: tuple[Arc, ...]
    partition_by: tuple[str, ...]
    within: int
    schema: EventSchema
    warnings: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    non_overlap: bool = field(default=False, metadata=ADDED)
    """Of runs that overlap only the one that ends first, then begins first."""
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""
        return self._hash_in(*ALWAYS)

    def _hash_in(self, low: int, high: int) -> str:
        """A hash that identifies the results of runs that are completely in [low, high): it leaves out arcs that live
        elsewhere, and the moments outside at which a lifetime begins or ends."""
        arcs = tuple(
            replace(
                arc,
                valid_from=None if arc.valid_from is None or arc.valid_from <= low else arc.valid_from,
                valid_to=None if arc.valid_to is None or arc.valid_to >= high else arc.valid_to,
            )
            for arc in self.arcs
            if not (arc.valid_to is not None and arc.valid_to <= low)
            and not (arc.valid_from is not None and arc.valid_from >= high)
        )
        read = set(replace(self, arcs=arcs).columns)
        columns = {name: kind for name, kind in self.schema.columns if name in read}
        roles = (self.schema.event_id, self.schema.event_time, self.schema.event_type, self.schema.sequence)
        named = tuple(
            (self.states[arc.source], self.states[arc.target], replace(arc, source=0, target=0)) for arc in arcs
        )
        final = frozenset(self.states[q] for q in self.final) & {target for _, target, _ in named}
        what = (self.states[self.start], final, self.register, named, self.partition_by, self.within)
        return fingerprint(
            (*what, EventSchema(columns, *roles, derived=self.schema.derived, tables=self.schema.tables), *self._added),
            LANGUAGE_VERSION,
        )

    @property
    def _added(self) -> tuple[object, ...]:
        return (*added(("non_overlap",) if self.non_overlap else ()), *added(self.having))

    def stretches(self, windows: range) -> tuple[tuple[range, str], ...]:
        """A window in whose time a lifetime begins or ends is by itself; those between two such have the same arcs.
        Where runs must not overlap, every window is of all arcs."""
        moments = {t for arc in self.arcs for t in (arc.valid_from, arc.valid_to) if t is not None}
        if len(moments) > MOST_MOMENTS or self.non_overlap:
            return ((windows, self.hash),)
        touched = {j for t in moments for j in self.windows.holding(t) if j in windows}
        borders = sorted({windows[0], windows[-1] + 1, *touched, *(j + 1 for j in touched)})
        intervals: list[tuple[range, str]] = []
        for first, end in pairwise(borders):
            plan_hash = self._hash_in(*self.windows.span(range(first, end)))
            if intervals and intervals[-1][1] == plan_hash:
                first = intervals.pop()[0][0]
            intervals.append((range(first, end), plan_hash))
        return tuple(intervals)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        names = [self.schema.event_time, self.schema.event_id]
        names += [self.schema.sequence] if self.schema.sequence else []
        names += self.partition_by
        for arc in self.arcs:
            for node in (*arc.local, *((arc.when,) if arc.when else ()), *(value for _, value in arc.sets)):
                names += [attribute.name for attribute in s.attributes(node) if attribute.variable]
        return self.schema.sources(names)

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """None: a run consumes every event of its partition, whatever its type."""
        return None

    @property
    def shard_key(self) -> tuple[str, ...]:
        return self.partition_by

    @property
    def parts_of_order(self) -> tuple[str, ...]:
        return self.partition_by

    @property
    def unit_key(self) -> tuple[str, ...]:
        return self.schema.stored(self.partition_by)

    @property
    def windows(self) -> Windows:
        """Window j owns the runs that begin in [j * within, (j + 1) * within): they end before (j + 2) * within. Where
        they must not overlap, they depend on everything before."""
        reach = AGES if self.non_overlap else 0
        return Windows(reach + 2 * self.within, self.within, -reach)

    def owned(self, windows: range) -> tuple[str, int, int]:
        """A run that begins at t has `lifetime_end` t + within."""
        low = self.windows.end(windows[0]) - self.within
        return "lifetime_end", low, self.windows.end(windows[-1])

    @property
    def interval_start(self) -> str | None:
        return None

    @property
    def waits(self) -> bool:
        """An arc at the window's end fires once that end is reached."""
        return any(arc.how == WINDOW_END for arc in self.arcs)

    @property
    def held_back(self) -> bool:
        return self.waits

    @property
    def key(self) -> tuple[str, ...]:
        """The results are a set: all that a row says tells it apart."""
        return (*self.partition_by, "first", "last", "state", *(field.name for field in self.register))

    @property
    def result_shape(self) -> ResultShape:
        """The partition, the first and last event, and the register of a run."""
        register = tuple(field.name for field in self.register)
        columns = {"partition": self.partition_by, "event": ("first", "last"), "register": register}
        begins = "lifetime_end", self.within
        return ResultShape("results_automaton", columns, lifetime=self.within, known_at="lifetime_start", begins=begins)

    @property
    def result_schema(self) -> pa.Schema:
        """Partition columns, first, last (event ids), state, the register, lifetime_start, lifetime_end."""
        kinds = dict(self.schema.columns)
        fields = [pa.field(name, key_type(kinds[name])) for name in self.partition_by]
        fields += [pa.field(name, key_type(kinds[self.schema.event_id])) for name in ("first", "last")]
        fields.append(pa.field("state", pa.string()))
        fields += [pa.field(field.name, field.arrow) for field in self.register]
        return pa.schema([*fields, pa.field("lifetime_start", TIME_TYPE), pa.field("lifetime_end", TIME_TYPE)])
