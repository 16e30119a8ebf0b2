"""From a pattern file to a checked query: names resolved, types right, every condition sorted into its kind.

All mistakes are collected, each with its place, and raised together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendlake.cep_core.errors import (
    BadConditionError,
    BadEventsError,
    BadPatternError,
    BadValueError,
    NotSupportedError,
    PatternErrors,
    TrendlakeError,
    TypeMismatchError,
)
from trendlake.cep_core.events.intervals import DURATION
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.resolver import constant_true
from trendlake.cep_core.trends.compile.check_return import CheckedMeasure, ReturnChecker
from trendlake.cep_core.trends.compile.model import TrendsPattern
from trendlake.cep_core.yaml.source import Path_


@dataclass(frozen=True)
class EquivalenceAttribute:
    """The events under `scope` (None: all of the trend, those of NOT included) agree on `name`."""

    name: str
    scope: frozenset[str] | None = None


@dataclass(frozen=True)
class CheckedQuery:
    """The contents of a pattern file, resolved against a schema."""

    node: s.PatternNode
    types: tuple[tuple[str, str], ...]
    """(variable, event type), in reading order."""
    local: tuple[tuple[str, s.Expr], ...]
    adjacent: tuple[tuple[str, str, s.Expr], ...]
    """(V, W, condition on an adjacent V-event and W-event)."""
    adjacent_paths: tuple[int, ...]
    """For each adjacent condition, its index in `where`."""
    never: bool
    """A constant condition is not true: no trend at all."""
    equivalence: tuple[EquivalenceAttribute, ...]
    measures: tuple[CheckedMeasure, ...]
    schema: EventSchema
    """The schema of the events, with the columns that some types have, where they are of several tables."""
    advice: tuple[Advice, ...] = ()


class _Checker(ReturnChecker):
    pattern: TrendsPattern

    def __init__(self, pattern: TrendsPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.positive: set[str] = set()
        self._interval()

    def _interval(self) -> None:
        """With `interval_start` events have the attribute `duration`; reports a column that cannot be the start."""
        name, path = self.pattern.interval_start, ("interval_start",)
        if name is None:
            return
        errors: list[TrendlakeError] = []
        if DURATION in self.families:
            message = f"with interval_start every event has a '{DURATION}', and the source has a column of that name"
            errors.append(BadValueError(message, hint="give the column of the source another name"))
        if name not in self.families:
            errors.append(self.schema.unknown(name, "column"))
        elif self.families[name] not in ("timestamp", "null"):
            message = f"an event starts at a time: '{name}' is a {self.families[name]}"
            errors.append(TypeMismatchError(message))
        elif not self.schema.stored([name]):
            hint = "a view or another source can have it"
            errors.append(NotSupportedError(f"interval_start: '{name}' is a derived column", hint=hint))
        for error in errors:
            self.report(error, path, (0, 0))
        self.families[DURATION] = "duration"

    def _of_events(self, name: str) -> None:
        """Raises a BadConditionError where a column is no column of the events: they do not have it in every window."""
        if name == DURATION and self.pattern.interval_start is not None:
            message = f"'{DURATION}' is the part of an event in a window: events are not grouped by it"
            raise BadConditionError(message, hint=f"a condition such as V.{DURATION} >= 5 minutes may read it")

    # --- the pattern
    def check_pattern(self) -> s.PatternNode | None:
        path: Path_ = ("pattern",)
        node = self.parsed(parse.parse_pattern, self.pattern.pattern, path)
        if node is None:
            return None
        for atom in s.atoms(node):
            self.check_type(atom)
            before = self.types.setdefault(atom.variable, atom.type_name)
            if before != atom.type_name:
                message = f"variable '{atom.variable}' is of type {before} already"
                self.report(BadPatternError(message, hint="give it a name of its own"), path, atom.span)
        self.positive = {atom.variable for atom in s.atoms(node, negated=False)}
        self._shape(node, outermost=True, root=True)
        return node

    def _shape(self, node: s.PatternNode, *, outermost: bool, root: bool = False) -> None:
        """Operators where they may stand. `outermost`: no SEQ or Kleene around."""
        path: Path_ = ("pattern",)
        match node:
            case s.Atom():
                return
            case s.Not():
                self.report(BadPatternError("NOT stands only inside SEQ"), path, node.span)
            case s.And(parts=parts):
                if not root:
                    self.report(BadPatternError("AND stands outermost only"), path, node.span)
                elif len(parts) != 2:
                    self.report(BadPatternError("AND joins two patterns"), path, node.span)
                for part in parts:
                    self._shape(part, outermost=outermost)
            case s.Or(options=options):
                for option in options:
                    self._shape(option, outermost=outermost)
            case s.Repeat(body=body):
                self._shape(body, outermost=False)
            case s.Seq(parts=parts):
                self._sequence(node, parts, outermost)

    def _sequence(self, node: s.Seq, parts: tuple[s.PatternNode, ...], outermost: bool) -> None:
        path: Path_ = ("pattern",)
        if all(isinstance(part, s.Not) for part in parts):
            self.report(BadPatternError("a SEQ has a part that is not a NOT"), path, node.span)
            return
        positive = [i for i, part in enumerate(parts) if not isinstance(part, s.Not)]
        for i, part in enumerate(parts):
            if not isinstance(part, s.Not):
                self._shape(part, outermost=False)
                continue
            if not outermost and not positive[0] < i < positive[-1]:
                message = "here a NOT stands between two parts; first or last it stands only in the outermost SEQ"
                self.report(BadPatternError(message), path, part.span)
            if part.within is not None:
                message, hint = "NOT ... within is of kind matches", "here a NOT looks at its whole gap in the window"
                self.report(NotSupportedError(message, hint=hint), path, part.span)
            body = part.body
            if not isinstance(body, s.Atom | s.Seq):
                message = "NOT takes a type or a SEQ"
                self.report(
                    BadPatternError(message, hint="NOT C already rules out C+; for alternatives write one NOT each"),
                    path,
                    part.span,
                )
            else:
                self._shape(body, outermost=False)

    # --- expressions
    def resolve(self, attribute: s.Attribute) -> str:
        if isinstance(attribute, s.Indexed):
            hint = f"kind trends has {attribute.variable}.{attribute.name} and NEXT"
            raise ExpressionError(BadConditionError("an index is of kind matches", hint=hint), attribute.span)
        return super().resolve(attribute)

    def check_where(
        self,
    ) -> tuple[list[tuple[str, s.Expr]], list[tuple[str, str, s.Expr, int]], bool, list[EquivalenceAttribute]]:
        local: list[tuple[str, s.Expr]] = []
        adjacent: list[tuple[str, str, s.Expr, int]] = []
        equivalence: list[EquivalenceAttribute] = []
        never = False
        for i, text in enumerate(self.pattern.where):
            path: Path_ = ("where", i)
            condition = self.condition(text, path)
            if condition is None:
                continue
            if isinstance(condition, s.Equivalence):
                equivalence.extend(self._equivalence(condition, path))
                continue
            kind = self.typed(condition, path)
            if kind is not None and kind not in ("boolean", "null"):
                self.report(TypeMismatchError(f"a condition is true or false, this is {kind}"), path, condition.span)
            for part in s.conjuncts(condition):
                attributes = s.attributes(part)
                now = {a.variable for a in attributes if not a.next}
                then = {a.variable for a in attributes if a.next}
                if not attributes and self.refuse_constant(part, path):
                    continue
                if not attributes:
                    never = never or (kind is not None and not self._constant_true(part, path))
                elif len(now) == 1 and not then:
                    local.append((now.pop(), part))
                elif len(now) == 1 and len(then) == 1:
                    adjacent.append((now.pop(), then.pop(), part, i))
                else:
                    self._neither(part, now, then, path)
        return local, adjacent, never, equivalence

    def _constant_true(self, part: s.Expr, path: Path_) -> bool:
        """Of a condition that speaks of no event; where it has no value, that is reported."""
        try:
            return constant_true(part)
        except BadEventsError as error:
            self.report(BadConditionError(f"this has no value: {error.message}"), path, part.span)
            return False

    def _neither(self, part: s.Expr, now: set[str], then: set[str], path: Path_) -> None:
        if not now:
            message, hint = (
                "a condition on NEXT speaks of the event before it too",
                "such as S.price > NEXT(S).price; a condition on one event needs no NEXT",
            )
        elif len(now | then) > 1 and not then:
            names = sorted(now)
            message = (
                f"a condition of kind trends is about one event or about two adjacent ones, not {' and '.join(names)}"
            )
            hint = f"for adjacent events write NEXT({names[-1]})"
        else:
            message, hint = "an adjacent condition is about one variable and one NEXT(variable)", None
        self.report(BadConditionError(message, hint=hint), path, part.span)

    def _equivalence(self, condition: s.Equivalence, path: Path_) -> list[EquivalenceAttribute]:
        scopes: dict[str, set[str]] = {}
        everywhere: list[str] = []
        for variable, name, span in condition.entries:
            try:
                self._of_events(name)
                if variable is not None:
                    self.resolve(s.Attribute(variable, name, span=span))
                    scopes.setdefault(name, set()).add(variable)
                else:
                    self.column(name, span)
                    everywhere.append(name)
            except ExpressionError as error:
                self.report(error.cause, path, span)
            except BadConditionError as error:
                self.report(error, path, span)
        scoped = [
            EquivalenceAttribute(name, frozenset(scope)) for name, scope in scopes.items() if name not in everywhere
        ]
        return [EquivalenceAttribute(name) for name in everywhere] + scoped

    # --- groups
    def check_groups(self) -> None:
        for i, name in enumerate(self.pattern.group_by):
            if name not in self.families:
                self.report(self.schema.unknown(name), ("group_by", i))
                continue
            try:
                self._of_events(name)
            except BadConditionError as error:
                self.report(error, ("group_by", i))


def _advise_on_counts(checker: _Checker, checked: CheckedQuery) -> None:
    """Advice on a count of all subsequences: of events that repeat without a bound and without a condition."""
    pattern = checker.pattern
    counts = any(measure.counts and measure.lengths is None and not measure.of for measure in checked.measures)
    if not counts or checked.never or (pattern.select, pattern.output) != ("skip_till_any_match", "all"):
        return
    asked = {v for v, _ in checked.local} | {v for pair in checked.adjacent for v in pair[:2]}
    for node in s.repeats(checked.node):
        atoms = list(s.atoms(node.body, negated=False))
        if node.high is None and asked.isdisjoint(atom.variable for atom in atoms):
            first = atoms[0].variable
            message = f"'{first}' repeats without a condition: of n events a count is of all choices, about 2^n"
            hint = f"narrow it: a condition such as {first}.x < NEXT({first}).x, or select: contiguous"
            place = checker.place_of(("pattern",), node.span)
            checker.adviser.add(Advice(message, hint, place, some=True))
            return


def check(pattern: TrendsPattern, schema: EventSchema) -> CheckedQuery:
    """Resolve `pattern` against `schema`. Raises PatternErrors with every mistake found."""
    checker = _Checker(pattern, schema)
    node = checker.check_pattern()
    if node is None:
        checker.check_groups()
        raise PatternErrors(checker.errors)
    local, adjacent, never, equivalence = checker.check_where()
    measures = checker.check_measures(pattern.returns, node)
    checker.check_groups()
    if checker.errors:
        raise PatternErrors(checker.errors)
    named = {attribute.name for attribute in equivalence}
    equivalence += [EquivalenceAttribute(name) for name in pattern.group_by if name not in named]
    checked = CheckedQuery(
        node=node,
        types=tuple(checker.types.items()),
        local=tuple(local),
        adjacent=tuple(item[:3] for item in adjacent),
        adjacent_paths=tuple(item[3] for item in adjacent),
        never=never,
        equivalence=tuple(dict.fromkeys(equivalence)),
        measures=tuple(measures),
        schema=checker.schema_read,
    )
    _advise_on_counts(checker, checked)
    return replace(checked, advice=tuple(checker.adviser.advice))
