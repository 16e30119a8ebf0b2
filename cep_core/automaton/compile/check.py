"""From a pattern file of kind automaton to its plan: names resolved, types right, every mistake with its place."""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from trendlake.cep_core.automaton.compile.model import BITS, ArcModel, AutomatonPattern, FieldModel
from trendlake.cep_core.automaton.compile.plan import EPSILON, EVENT, IGNORE, WINDOW_END, Arc, AutomatonPlan, Field
from trendlake.cep_core.errors import (
    BadConditionError,
    BadPatternError,
    BadValueError,
    PatternErrors,
    PatternSyntaxError,
    PatternWarning,
    Place,
    TextError,
    TrendlakeError,
    TypeMismatchError,
    UnknownVariableError,
    did_you_mean,
)
from trendlake.cep_core.events.schema import EventSchema, family
from trendlake.cep_core.expressions.advice import Advice, Adviser
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.language.tree_builder import timestamp_us
from trendlake.cep_core.patterns.parameters import UnknownHereError, typed, why_text
from trendlake.cep_core.yaml.source import Path_


class _Checker:
    """Collects mistakes. An expression that many arcs share is parsed and typed once."""

    def __init__(self, pattern: AutomatonPattern, schema: EventSchema) -> None:
        self.pattern = pattern
        self.schema, self.columns = schema, schema.families
        self.fields = {name: family(field.type) for name, field in pattern.register_.items()}
        self.errors: list[TrendlakeError] = []
        self.expressions: dict[tuple[str, bool], tuple[s.Expr, str]] = {}
        self.places: dict[tuple[str, bool], Path_] = {}
        self.adviser = Adviser(pattern.parameters.empty if pattern.parameters else None)

    def report(self, error: TrendlakeError, path: Path_, span: s.Span = (0, 0), *, key: bool = False) -> None:
        error.place = self.place_of(path, span, key=key)
        self.errors.append(error)

    def place_of(self, path: Path_, span: s.Span, *, key: bool = False) -> Place:
        return self.pattern.document.place(path, key=key, offset=span[0], width=span[1] - span[0])

    # --- the register
    def register(self) -> tuple[Field, ...]:
        fields = []
        for name, field in self.pattern.register_.items():
            try:
                init = _init(field)
            except (ValueError, OverflowError) as error:
                self.report(BadValueError(str(error)), ("register", name, "init"))
                init = None
            if isinstance(field.init, str) and field.init[:1] == "$" and field.init[1:] in self.pattern.parameter_names:
                message, hint = "init takes no parameter", f"set the field to {field.init} by an arc"
                self.report(BadConditionError(message, hint=hint), ("register", name, "init"))
            fields.append(Field(name, family(field.type), BITS.get(field.type, 0), init))
        return tuple(fields)

    # --- expressions
    def expression(self, raw: Any, path: Path_, *, event: bool) -> tuple[s.Expr, str] | None:
        """The tree and its family. `event`: the arc consumes an event, which the expression may read."""
        text = raw if isinstance(raw, str) else _as_text(raw)
        if (text, event) not in self.expressions:
            try:
                node = parse_condition(text)
                if isinstance(node, s.Equivalence):
                    raise ExpressionError(BadConditionError("an arc has no equivalence: use partition_by"), node.span)
                node = typed(node, self.pattern.parameters)
                resolve = partial(self._resolve, event=event)
                node = on_clock(node, self.pattern.time_zone, resolve)
                self.expressions[text, event] = node, infer(node, resolve)
                _small(node)
                self.places[text, event] = path
            except ExpressionError as error:
                error.cause.hint = error.cause.hint or why_text(node, self.pattern.parameters)
                self.report(error.cause, path, (error.offset, error.offset + error.width))
                self.expressions.pop((text, event), None)
                return None
            except UnknownHereError as error:
                if not self.pattern.unread_parameters:
                    self.report(error.cause, path, (error.offset, error.offset + error.width))
                return None
            except TextError as error:
                cause = PatternSyntaxError(error.message, hint=error.hint)
                self.report(cause, path, (error.offset, error.offset + error.width))
                return None
        return self.expressions[text, event]

    def _resolve(self, attribute: s.Attribute, event: bool) -> str:
        if attribute.next:
            cause: TrendlakeError = BadConditionError("an arc reads its own event and the register: there is no NEXT")
            raise ExpressionError(cause, attribute.span)
        if not attribute.variable:
            if attribute.name not in self.fields and attribute.name in self.pattern.declared:
                return "null"
            if attribute.name not in self.fields:
                hint = did_you_mean(attribute.name, self.fields)
                if event and attribute.name in self.columns:
                    hint = f"the event's attribute is e.{attribute.name}"
                message = f"the register has no field '{attribute.name}'"
                raise ExpressionError(UnknownVariableError(message, hint=hint), attribute.span)
            return self.fields[attribute.name]
        if attribute.variable != "e":
            message = f"there is no variable '{attribute.variable}': the event is e"
            raise ExpressionError(UnknownVariableError(message), attribute.span)
        if not event:
            message = f"this arc consumes no event: there is no e.{attribute.name} here"
            raise ExpressionError(BadConditionError(message), attribute.span)
        if attribute.name not in self.columns:
            raise ExpressionError(self.schema.unknown(attribute.name), attribute.span)
        return self.columns[attribute.name]

    # --- arcs
    def arc(self, i: int, arc: ArcModel, states: dict[str, int]) -> Arc:
        how = EPSILON if arc.epsilon else WINDOW_END if arc.at else IGNORE if arc.ignore else EVENT
        event = how in (EVENT, IGNORE)
        local: list[s.Expr] = []
        rest: s.Expr | None = None
        if condition := self.expression(arc.when, ("arcs", i, "when"), event=event):
            node, kind = condition
            if kind not in ("boolean", "null"):
                message = f"a condition is true or false, this is {_a(kind)}"
                self.report(TypeMismatchError(message), ("arcs", i, "when"), node.span)
            for part in s.conjuncts(node):
                if part == s.Literal(True, "boolean"):
                    continue
                if not s.attributes(part) and s.parameters(part):
                    message, hint = (
                        "this reads parameters, and neither an event nor the register",
                        "leave the row out of for_each instead",
                    )
                    self.report(BadConditionError(message, hint=hint), ("arcs", i, "when"), part.span)
                elif event and all(attribute.variable for attribute in s.attributes(part)):
                    local.append(part)
                else:
                    rest = part if rest is None else s.Binary("and", rest, part)
        order = list(self.fields)
        sets = []
        for name, raw in arc.set_.items():
            path: Path_ = ("arcs", i, "set", name)
            value = self.expression(raw, path, event=event)
            if value is None or name not in self.fields:
                continue
            node, kind = value
            wanted = self.fields[name]
            if kind not in (wanted, "null") and (wanted, kind) != ("double", "int"):
                field_type = self.pattern.register_[name].type
                self.report(
                    TypeMismatchError(f"the field '{name}' is of type {field_type}, this is {_a(kind)}"),
                    path,
                    node.span,
                )
            sets.append((order.index(name), node))
        return Arc(
            states[arc.source], states[arc.target], how, tuple(local), rest, tuple(sets), arc.valid_from, arc.valid_to
        )

    def advise(self, arcs: Iterable[Arc]) -> tuple[Advice, ...]:
        """Looks for what is rarely meant; a text of the register is of the columns that arcs set it to."""
        sets = [(list(self.fields)[field], value) for arc in arcs for field, value in arc.sets]
        sources: dict[str, set[str]] = {name: set() for name in self.fields}

        def columns(read: s.Attribute) -> Iterable[str]:
            return (read.name,) if read.variable else sorted(sources.get(read.name, ()))

        for _ in self.fields:  # a field that is set to another one has its columns
            for name, value in sets:
                sources[name].update(column for read in s.attributes(value) for column in columns(read))
        for (text, event), (node, _) in self.expressions.items():
            resolve = partial(self._resolve, event=event)
            self.adviser.look(node, resolve, partial(self.place_of, self.places[text, event]), columns)
        return tuple(self.adviser.advice)

    def partitions(self) -> None:
        for i, name in enumerate(self.pattern.partition_by):
            if name not in self.columns:
                self.report(self.schema.unknown(name), ("partition_by", i))

    def graph(self, arcs: tuple[Arc, ...], start: int, final: Iterable[int]) -> list[str]:
        """Refuses epsilon cycles that change the register and patterns without a way to a final state; warns of arcs
        that no run can take."""
        epsilon = [arc for arc in arcs if arc.how == EPSILON]
        for i, arc in enumerate(arcs):
            if arc.how == EPSILON and arc.sets and arc.source in _reached({arc.target}, epsilon):
                message = "this arc is on a cycle of epsilon arcs and changes the register: it could fire for ever"
                self.report(BadPatternError(message), ("arcs", i, "set"), key=True)
        before = _reached({start}, [arc for arc in arcs if arc.how != WINDOW_END])
        ended = {arc.target for arc in arcs if arc.how == WINDOW_END and arc.source in before}
        after = _reached(ended, epsilon)
        if not (before | after) & set(final):
            self.report(BadPatternError("no arcs lead from the start to a final state"), ("final",))
        names = self.pattern.arcs
        return [
            f"arc {i + 1} ({names[i].source} -> {names[i].target}) can never fire: no run reaches its state before it"
            for i, arc in enumerate(arcs)
            if arc.source not in before and not (arc.how == EPSILON and arc.source in after)
        ]


def _reached(states: set[int], arcs: list[Arc]) -> set[int]:
    """`states` and all that arcs lead to from there."""
    outgoing: dict[int, set[int]] = {}
    for arc in arcs:
        outgoing.setdefault(arc.source, set()).add(arc.target)
    reached, new = set(states), set(states)
    while new:
        new = {target for state in new for target in outgoing.get(state, ())} - reached
        reached |= new
    return reached


def _as_text(raw: Any) -> str:
    """A YAML number, boolean or null as an expression."""
    if raw is None:
        return "NULL"
    return str(raw).upper() if isinstance(raw, bool) else repr(raw)


def _a(kind: str) -> str:
    return "an integer" if kind == "int" else f"a {kind}"


def _small(node: s.Expr) -> None:
    """Raises ExpressionError for a whole number that does not fit 64 bits."""
    if isinstance(node, s.Literal) and isinstance(node.value, int) and not -(2**63) <= node.value < 2**63:
        raise ExpressionError(TypeMismatchError("this number does not fit 64 bits"), node.span)
    for child in s.children(node):
        _small(child)


def _init(field: FieldModel) -> Any:
    """The initial value as the plan has it. Raises ValueError."""
    value, kind = field.init, family(field.type)
    if value is None:
        return None
    given: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "double": (int, float),
        "string": (str,),
        "boolean": (bool,),
        "timestamp": (str, date),
        "date": (str, date),
    }
    if not isinstance(value, given[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise ValueError(f"init: expected a value of type {field.type}, or null")
    if kind == "int" and isinstance(value, int):
        bits = BITS[field.type] - 1
        if not -(2**bits) <= value < 2**bits:
            raise ValueError(f"init: {value} does not fit a {field.type}")
    if kind == "double":
        number = float(value)  # type: ignore[arg-type]
        if not math.isfinite(number):
            raise ValueError("init: expected a finite number, or null")
        return number + 0.0
    if kind in ("timestamp", "date"):
        if isinstance(value, date):
            value = (value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value).isoformat()
        moment = timestamp_us(str(value))
        if kind == "date" and moment % 86_400_000_000:
            raise ValueError("init: expected a date")
        return moment
    return value


def compile_automaton(pattern: AutomatonPattern, schema: EventSchema) -> AutomatonPlan:
    """Check `pattern` against `schema` and compile it.

    Raises PatternErrors with all mistakes; arcs that can never fire become `warnings` and a PatternWarning.
    """
    checker = _Checker(pattern, schema)
    register = checker.register()
    named = (pattern.start, *(name for arc in pattern.arcs for name in (arc.source, arc.target)), *pattern.final)
    states = {name: i for i, name in enumerate(dict.fromkeys(named))}
    arcs = tuple(checker.arc(i, arc, states) for i, arc in enumerate(pattern.arcs))
    checker.partitions()
    final = tuple(dict.fromkeys(states[name] for name in pattern.final))
    warnings = checker.graph(arcs, states[pattern.start], final)
    if checker.errors:
        raise PatternErrors(checker.errors)
    for warning in warnings:
        python_warnings.warn(warning, PatternWarning, stacklevel=2)
    return AutomatonPlan(
        tuple(states),
        states[pattern.start],
        final,
        register,
        arcs,
        pattern.partition_by,
        pattern.within,
        schema,
        tuple(warnings),
        checker.advise(arcs),
        pattern.output == "non_overlap",
    )
