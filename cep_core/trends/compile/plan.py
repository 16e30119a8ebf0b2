"""The compiled plan of kind trends: frozen data, printable, comparable, picklable; its hash names a result's origin."""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from trendlake.cep_core.errors import (
    BadConditionError,
    BadPatternError,
    BadValueError,
    NotSupportedError,
    PatternErrors,
    PatternWarning,
)
from trendlake.cep_core.events.intervals import DURATION
from trendlake.cep_core.events.schema import COUNT_TYPE, TIME_TYPE, EventSchema, arrow_type, key_type
from trendlake.cep_core.events.tables import plain_name
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import ADDED, fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import Selection
from trendlake.cep_core.plan import ANY, OneForm, ResultShape
from trendlake.cep_core.trends.compile.check import CheckedQuery, check
from trendlake.cep_core.trends.compile.check_return import LONGEST_DURATION, CheckedMeasure, Lengths
from trendlake.cep_core.trends.compile.dfa import Automaton, Cube, implied, intersect, of_length
from trendlake.cep_core.trends.compile.glushkov import build
from trendlake.cep_core.trends.compile.model import Output, TrendsPattern
from trendlake.cep_core.trends.compile.predecessors import Layer, Method, PairPredicate, pair_predicate

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of a pattern that stays the same changes."""

ENGINE_VERSION = 3
"""Raised when a plan that stays the same gives other results. It is no part of the hash: commits to a results table
record it (docs/adr/0012-versions-of-results.md)."""


@dataclass(frozen=True)
class Plan(OneForm):
    """One pattern of kind trends, ready to run; an `AnyPlan`. `automata`: one; or, for `P AND Q`, those of P, of Q and
    of both."""

    kind: ClassVar[str] = "trends"
    engine_version: ClassVar[int] = ENGINE_VERSION

    automata: tuple[Automaton, ...]
    guards: tuple[Automaton, ...]
    """The automaton of the trends that each NOT rules out, by guard index; a guard's gaps name guards of smaller
    index."""
    types: tuple[tuple[str, str], ...]
    local: tuple[tuple[str, s.Expr], ...]
    pairs: tuple[PairPredicate, ...]
    """For each (V, W) that may be adjacent and has conditions."""
    never: bool
    shared: tuple[str, ...]
    """Attributes on which all events agree, those of NOT included."""
    scoped: tuple[tuple[str, frozenset[str]], ...]
    """(attribute, variables whose events agree on it)."""
    measures: tuple[CheckedMeasure, ...]
    group_by: tuple[str, ...]
    windows: Windows
    select: Selection
    empty_windows: bool
    schema: EventSchema
    warnings: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()
    """Group columns no equivalence names: they part trends, but not the stream of `partition_contiguous`."""
    advice: tuple[Advice, ...] = field(default=(), compare=False)
    output: Output = field(default="all", metadata=ADDED)
    """Whether all trends count, or those alone whose events are no proper part of another's."""
    having: tuple[s.Expr, ...] = field(default=(), metadata=ADDED)
    """Conditions on a result row: see `cep_core.having`."""
    interval_start: str | None = field(default=None, metadata=ADDED)
    """The column with the time at which an event begins; None: events are points."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""
        first = tuple(implied(automaton) for automaton in self.automata[:2])
        bare = replace(
            self,
            automata=first if len(first) == 1 else (*first, intersect(*first)),
            warnings=(),
            schema=EventSchema(
                {name: kind for name, kind in self.schema.columns if name in self.columns},
                self.schema.event_id,
                self.schema.event_time,
                self.schema.event_type,
                self.schema.sequence,
                derived=self.schema.derived,
                tables=self.schema.tables,
            ),
        )
        return fingerprint(bare, LANGUAGE_VERSION)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(variable for variable, _ in self.types)

    @property
    def positive(self) -> tuple[str, ...]:
        """Variables whose events are part of trends."""
        return tuple(dict.fromkeys(v for automaton in self.automata for v in automaton.variables))

    @property
    def window_by_window(self) -> bool:
        """Whether a NOT begins or ends with a NOT (an optional part next to it may be absent): the trends it rules out
        then depend on the window, and windows cannot share it."""
        return any(t.gap.holds or t.gap.fails for guard in self.guards for t in guard.starts) or any(
            option for guard in self.guards for state in guard.states for option in state.accepts
        )

    @property
    def whole_stream(self) -> bool:
        """Whether events of no variable matter too."""
        return self.select in ("contiguous", "partition_contiguous")

    @property
    def longest(self) -> bool:
        """Whether a longest trend is asked for."""
        return any(m.function == "longest" for m in self.measures)

    @property
    def turns(self) -> int:
        """In how many passes windows are computed, so that those of one pass do not overlap: times are counted from a
        window's start, and an event is in one trend's path. 1: no measure asks for it."""
        if self.longest or any(m.of == "duration" for m in self.measures):
            return self.windows.overlap
        return 1

    @property
    def of_any(self) -> bool:
        """Whether a variable binds events of every type."""
        return any(kind == ANY for _, kind in self.types)

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """Types that matter, in order; None: every event does."""
        if self.whole_stream or self.empty_windows or self.of_any:
            return None
        return tuple(dict.fromkeys(kind for _, kind in self.types))

    @property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""
        names = [self.schema.event_time, self.schema.event_type]
        if self.whole_stream:
            names.append(self.schema.sequence or self.schema.event_id)
            names += [] if self.schema.tables is None else [self.schema.event_id]
        names += [*self.shared, *(name for name, _ in self.scoped), *self.group_by]
        names += [name for m in self.measures for name in m.reads]
        if any(m.ordered for m in self.measures):
            names.append(self.schema.event_id)
        if self.schema.sequence is not None and self.longest:
            names.append(self.schema.sequence)
        for _, condition in self.local:
            names += [attribute.name for attribute in s.attributes(condition)]
        for pair in self.pairs:
            for node in (*(x for split in pair.splits for x in (split.earlier, split.later)), *pair.mixed):
                names += [attribute.name for attribute in s.attributes(node)]
        if self.interval_start is not None:
            names = [*(name for name in names if name != DURATION), self.interval_start]
        return self.schema.sources(names)

    @property
    def shard_key(self) -> tuple[str, ...]:
        """Events that differ on these never meet in a trend, nor does one end another's gap; () when all may."""
        if self.select == "contiguous":
            return ()
        if self.select == "partition_contiguous":
            return tuple(name for name in self.shared if name not in self.implied)
        return self.shared

    @property
    def parts_of_order(self) -> tuple[str, ...] | None:
        return self.shard_key if self.whole_stream else None

    @property
    def unit_key(self) -> tuple[str, ...]:
        """The part of `shard_key` that a result row shows: events that differ on it share no row."""
        return self.schema.stored(name for name in self.group_by if name in self.shard_key)

    @property
    def key(self) -> tuple[str, ...]:
        """A row is a group and a window."""
        return (*self.group_by, "window_start")

    def owned(self, windows: range) -> tuple[str, int, int]:
        """Rows of `windows` (not empty) are those with a `window_start` among theirs. The time between two starts is
        owned too: it has no row of this plan, but may have one of another `slide`."""
        return "window_start", self.windows.start(windows[0]), self.windows.start(windows[-1] + 1)

    @property
    def within(self) -> int:
        return self.windows.longest

    @property
    def result_schema(self) -> pa.Schema:
        """Group columns, window_start, window_end, measures with their _log10 companions."""
        families = dict(self.schema.columns)
        fields = [pa.field(name, key_type(families[name])) for name in self.group_by]
        fields += [pa.field("window_start", TIME_TYPE), pa.field("window_end", TIME_TYPE)]
        fields += [pa.field("window_date", pa.date32())] if self.windows.dated else []
        for measure in self.measures:
            fields.append(pa.field(measure.name, self._type(measure, families)))
            if measure.counts or measure.function == "sum":
                fields.append(pa.field(f"{measure.name}_log10", pa.float64()))
        return pa.schema(fields)

    def _type(self, measure: CheckedMeasure, families: dict[str, str]) -> pa.DataType:
        """The type in which results show a measure."""
        if measure.counts:
            return COUNT_TYPE
        if measure.family == "duration":
            return pa.int64()
        if measure.function in ("sum", "avg") or measure.of == "duration":
            return pa.float64()
        if measure.of == "length":
            return pa.int64()
        if measure.function == "longest":
            return pa.list_(key_type(families[self.schema.event_id]))
        return arrow_type(families[str(measure.attribute)])

    @property
    def result_shape(self) -> ResultShape:
        """Groups, and each measure by what it aggregates; the first count ranks the rows."""
        columns: dict[str, list[str]] = {"group": list(self.group_by)}
        columns |= {"window_date": ["window_date"]} if self.windows.dated else {}
        trends = "trend_count_or_zero" if self.empty_windows else "trend_count"
        for measure in self.measures:
            columns.setdefault(_sort(measure, trends), []).append(measure.name)
            if measure.counts or measure.function == "sum":
                columns.setdefault("log10", []).append(f"{measure.name}_log10")
        counts = [f"{measure.name}_log10" for measure in self.measures if measure.function == "count"]
        by_sort = {sort: tuple(names) for sort, names in columns.items()}
        rank = counts[0] if counts else None
        seconds = tuple(measure.name for measure in self.measures if measure.of == "duration")
        durations = tuple(measure.name for measure in self.measures if measure.family == "duration")
        shape = ResultShape("results_trends", by_sort, rank, durations=durations, seconds=seconds)
        return replace(shape, known_at="window_end", of_windows=True)

    def pair(self, earlier: str, later: str) -> PairPredicate:
        """The conditions on an adjacent (earlier, later) pair."""
        for pair in self.pairs:
            if (pair.earlier, pair.later) == (earlier, later):
                return pair
        return PairPredicate(earlier, later)

    def layer(self, earlier: str, later: str, gap: Cube) -> Layer:
        """The conditions on a transition."""
        several = tuple(g for g in gap.holds if self.guards[g].inner)
        return Layer(earlier, later, tuple(g for g in gap.holds if g not in several), several)

    def method(self, layer: Layer) -> Method:
        """How the predecessors of such a transition are found."""
        return self.pair(layer.earlier, layer.later).method_with(len(layer.resets), bool(layer.bounds))


def filtered(automaton: Automaton, lengths: Lengths) -> Automaton:
    """The automaton of the trends of such lengths, for COUNT(*) FILTER."""
    variables = frozenset(automaton.variables if lengths.variable is None else (lengths.variable,))
    return of_length(automaton, variables, lengths.low, lengths.high)


def _sort(measure: CheckedMeasure, trends: str) -> str:
    """The sort of a measure's column in the results contract; `trends`: that of COUNT(*)."""
    if measure.counts:
        alone = measure.function == "count" and measure.variable is None and measure.lengths is None
        return trends if alone else "occurrence_count"
    if measure.of == "duration" and measure.function != "sum":
        return "duration"
    sorts = {"sum": "sum", "avg": "mean", "longest": "witness"}
    return sorts.get(measure.function) or measure.of or "extreme"


def compile_plan(pattern: TrendsPattern, schema: EventSchema) -> Plan:
    """Check `pattern` against `schema` and compile it.

    Raises PatternErrors with all mistakes; conditions without effect become `Plan.warnings` and a PatternWarning.
    """
    checked = check(pattern, schema)
    compiler = _Compiler()
    try:
        parts = checked.node.parts if isinstance(checked.node, s.And) else (checked.node,)
        next_match = pattern.select == "skip_till_next_match"
        automata = tuple(build(part, compiler.guard, next_match) for part in parts)
    except BadPatternError as error:
        error.place = pattern.document.place(("pattern",))
        raise PatternErrors([error]) from None
    if len(automata) == 2:
        automata = (*automata, intersect(automata[0], automata[1]))
    pairs, warnings = _pairs(pattern, checked, (*automata, *compiler.automata))
    warnings += _weeks(pattern)
    # asked of every variable is asked of every event; but `partition_contiguous` parts the whole stream
    everyone = frozenset(v for v, _ in checked.types) if pattern.select != "partition_contiguous" else frozenset()
    named = {name for text in pattern.where for name in _named(text)}
    plan = Plan(
        automata=automata,
        guards=tuple(compiler.automata),
        types=checked.types,
        local=checked.local,
        pairs=pairs,
        never=checked.never,
        shared=tuple(dict.fromkeys(e.name for e in checked.equivalence if e.scope in (None, everyone))),
        scoped=tuple((e.name, e.scope) for e in checked.equivalence if e.scope not in (None, everyone)),
        measures=checked.measures,
        group_by=pattern.group_by,
        windows=pattern.windows,
        select=pattern.select,
        empty_windows=pattern.empty_windows,
        schema=checked.schema,
        warnings=warnings,
        implied=tuple(name for name in pattern.group_by if name not in named),
        advice=checked.advice,
        output=pattern.output,
        interval_start=pattern.interval_start,
    )
    _supported(pattern, plan)
    for warning in warnings:
        python_warnings.warn(warning, PatternWarning, stacklevel=2)
    return plan


class _Compiler:
    """Numbers the NOTs: equal ones share a guard, inner ones come first."""

    def __init__(self) -> None:
        self.index: dict[s.PatternNode, int] = {}
        self.automata: list[Automaton] = []

    def guard(self, node: s.Not) -> int:
        if node.body not in self.index:
            automaton = build(node.body, self.guard)
            self.index[node.body] = len(self.automata)
            self.automata.append(automaton)
        return self.index[node.body]


def _named(text: str) -> list[str]:
    from trendlake.cep_core.language.parse import parse_condition

    condition = parse_condition(text)
    return [name for _, name, _ in condition.entries] if isinstance(condition, s.Equivalence) else []


def _pairs(
    pattern: TrendsPattern, checked: CheckedQuery, automata: tuple[Automaton, ...]
) -> tuple[tuple[PairPredicate, ...], tuple[str, ...]]:
    follows = {pair for automaton in automata for pair in automaton.follows}
    conditions: dict[tuple[str, str], list[s.Expr]] = {}
    warnings = []
    for (earlier, later, condition), index in zip(checked.adjacent, checked.adjacent_paths, strict=True):
        if (earlier, later) in follows:
            conditions.setdefault((earlier, later), []).append(condition)
        else:
            error = BadConditionError(
                f"no effect: the pattern never makes {later} follow {earlier} directly",
                place=pattern.document.place(
                    ("where", index), offset=condition.span[0], width=condition.span[1] - condition.span[0]
                ),
            )
            warnings.append(str(error))
    pairs = tuple(pair_predicate(v, w, tuple(predicates)) for (v, w), predicates in conditions.items())
    return pairs, tuple(warnings)


def _weeks(pattern: TrendsPattern) -> tuple[str, ...]:
    """The warning that weeks of 7 times 24 hours begin on the weekday of the epoch."""
    key = "slide" if pattern.slide is not None else "within"
    if pattern.time_zone is not None or pattern.origin is not None or not pattern.asked.slide.weeks:
        return ()
    message = "without time_zone weeks begin on Thursday, at 00:00 UTC, as 1970-01-01 did"
    hint = "`time_zone: UTC` begins them on Monday; an origin says it, too"
    return (str(BadValueError(message, place=pattern.document.place((key,)), hint=hint)),)


def _supported(pattern: TrendsPattern, plan: Plan) -> None:
    """Refuse constructs that the kernels do not support, with an error that names them: never answer with a guess."""
    for name, scope in plan.scoped:
        if plain_name(name) in plan.group_by and not set(plan.positive) <= scope:
            name = plain_name(name)
            place = pattern.document.place(("group_by", plan.group_by.index(name)))
            message = f"not all events of a trend agree on '{name}': a condition asks it of some variables only"
            raise PatternErrors(
                [BadConditionError(message, place=place, hint=f"add [{name}] to where, or do not group by it")]
            )
    if plan.output == "maximal":
        _maximal(pattern, plan)
    lasting = [m.name for m in plan.measures if "duration" in (m.of, m.family)]
    if lasting and plan.within > LONGEST_DURATION:
        message, place = "a duration within more than 285 years", pattern.document.place(("return", lasting[0]))
        raise PatternErrors([NotSupportedError(message, place=place, hint="make `within` shorter")])
    if len(plan.variables) > 63:
        raise PatternErrors([NotSupportedError("more than 63 variables", place=pattern.document.place(("pattern",)))])
    if len(plan.guards) > 63:
        raise PatternErrors([NotSupportedError("more than 63 NOTs", place=pattern.document.place(("pattern",)))])


def _maximal(pattern: TrendsPattern, plan: Plan) -> None:
    """Refuse `output: maximal` where no pass finds the trends that are part of others."""
    place = pattern.document.place(("output",))
    if not plan.whole_stream:
        message = "`output: maximal` needs `select: partition_contiguous` or `contiguous`"
    elif len(plan.automata) > 1:
        message = "`output: maximal` with AND"
    elif plan.longest:
        message = "LONGEST with `output: maximal`"
        at = next(m.name for m in plan.measures if m.function == "longest")
        place = pattern.document.place(("return", at))
    elif any(not set(plan.variables) <= scope for _, scope in plan.scoped):
        message = "`output: maximal` with an equivalence of some variables only"
    else:
        return
    raise PatternErrors([NotSupportedError(message, place=place)])
