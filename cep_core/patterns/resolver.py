"""The part of checking that patterns of every kind need: names resolved against a schema, mistakes collected with their
places."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeVar

from trendlake.cep_core.errors import (
    BadConditionError,
    PatternSyntaxError,
    Place,
    TextError,
    TrendlakeError,
    TypeMismatchError,
    UnknownAttributeError,
    UnknownTypeError,
    UnknownVariableError,
    did_you_mean,
)
from trendlake.cep_core.events.schema import EventSchema, family
from trendlake.cep_core.events.tables import ROLES, TableColumn
from trendlake.cep_core.expressions.advice import Adviser
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.types import ExpressionError, infer
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.patterns.model import FamilyPattern, Pattern
from trendlake.cep_core.patterns.parameters import UnknownHereError, typed, why_text
from trendlake.cep_core.plan import ANY
from trendlake.cep_core.yaml.source import Path_

T = TypeVar("T")


class _FollowsError(UnknownVariableError):
    """A mistake that only follows from one that is reported."""


class Checking:
    """`types`: the event type of each variable, in reading order; `errors`: the mistakes found so far."""

    def __init__(self, pattern: Pattern, schema: EventSchema) -> None:
        self.pattern = pattern
        self.schema = schema
        self.families = schema.families
        self.errors: list[TrendlakeError] = []
        self.adviser = Adviser(pattern.parameters.empty if pattern.parameters else None)
        self.types: dict[str, str] = {}
        self.of_types: dict[str, TableColumn] = {}
        """Columns of events of some types, of the union of several tables."""
        self.faults: dict[str, TrendlakeError] = {}
        """The errors of names that the events of some types do not have."""
        self.unread: set[str] = set()
        """Variables of a part of the pattern that was refused: conditions on them are no mistakes of their own."""

    def report(self, error: TrendlakeError, path: Path_, span: s.Span = (0, 0)) -> None:
        """One mistake, at a span of the text at `path` in the file."""
        if isinstance(error, _FollowsError):
            return
        error.place = self.place_of(path, span)
        self.errors.append(error)

    def condition(self, text: str, path: Path_) -> s.Condition | None:
        """A condition whose parameters know their types; None where it is none, which is reported."""
        node = self.parsed(_condition, text, path)
        node = None if node is None else self.named(node)
        try:
            known = None if node is None else typed(node, self.pattern.parameters)
        except UnknownHereError as error:
            if not (isinstance(self.pattern, FamilyPattern) and self.pattern.unread_parameters):
                self.report(error.cause, path, (error.offset, error.offset + error.width))
            return None
        if known is None or isinstance(known, s.Equivalence):
            return known
        return on_clock(known, self.pattern.time_zone, self.resolve)

    def refuse_constant(self, part: s.Expr, path: Path_) -> bool:
        """Reports a condition that reads parameters and no event: it says nothing of any event."""
        if not s.parameters(part):
            return False
        error = BadConditionError("this reads parameters and no event", hint="leave the row out of for_each instead")
        self.report(error, path, part.span)
        return True

    def parsed(self, parser: Callable[[str], T], text: str, path: Path_) -> T | None:
        """The text, parsed by `parser`; None where it does not parse, which is reported."""
        try:
            return parser(text)
        except TextError as error:
            cause = PatternSyntaxError(error.message, hint=error.hint)
            self.report(cause, path, (error.offset, error.offset + error.width))
            return None

    def check_type(self, atom: s.Atom) -> None:
        """Reports an event type that the source does not have."""
        known = self.schema.types
        if atom.type_name == ANY:
            if ANY in (known or ()):
                message = f"{ANY} binds events of every type, and the source has a type of that name"
                self.report(UnknownTypeError(message, hint="rename the type"), ("pattern",), atom.span)
            return
        if known is not None and atom.type_name not in known:
            hint = did_you_mean(atom.type_name, known)
            error = UnknownTypeError(f"the source has no event type '{atom.type_name}'", hint=hint)
            self.report(error, ("pattern",), atom.span)

    def resolve(self, attribute: s.Attribute) -> str:
        """The family of an attribute. Raises ExpressionError."""
        if not attribute.variable:
            name = attribute.name
            if name in getattr(self.pattern, "returns", ()):
                message, hint = (
                    f"'{name}' is a measure: it is known of the finished row",
                    "write the condition in having",
                )
            elif name in self.types:
                message, hint = f"'{name}' is a variable: a condition compares its columns", f"write {name}.COLUMN"
            else:
                message, hint = f"'{name}' needs a variable", f"write {next(iter(self.types), 'V')}.{name}"
            raise ExpressionError(UnknownVariableError(message, hint=hint), attribute.span)
        self.variable(attribute.variable, attribute.span)
        return self.column(attribute.name, attribute.span, attribute.variable)

    def variable(self, name: str, span: s.Span) -> None:
        """Raises ExpressionError where the pattern has no such variable."""
        if name not in self.types:
            kind = _FollowsError if name in self.unread else UnknownVariableError
            cause = kind(f"the pattern has no variable '{name}'", hint=self.variable_hint(name))
            raise ExpressionError(cause, span)

    def variable_hint(self, word: str) -> str | None:
        """The variable that may have been meant."""
        of_type = [v for v, t in self.types.items() if t == word]
        if of_type:
            return f"{word} is a type; its variable is '{of_type[0]}'"
        return did_you_mean(word, self.types)

    def column(self, name: str, span: s.Span, variable: str | None = None) -> str:
        """The family of a column of the source, as events of a variable have it, or of all. Raises ExpressionError."""
        if name not in self.families:
            cause = self.faults.get(name) or self.schema.unknown(name)
            raise ExpressionError(copy(cause), span)
        types = self.types.values() if variable is None else (self.types[variable],)
        if (error := self.schema.looked_up_of(name, types)) is not None:
            raise ExpressionError(error, span)
        return self.families[name]

    # --- columns of several tables
    def named(self, node: s.Condition) -> s.Condition:
        """A condition whose names are those of columns: P.amount -> P.amount@Payment, where events are of several
        tables."""
        if self.schema.tables is None:
            return node
        if not isinstance(node, s.Equivalence):
            return self.named_in(node)
        scopes: dict[str, list[str | None]] = {}
        for variable, name, _ in node.entries:
            scopes.setdefault(name, []).append(variable)
        columns = {name: name if None in scope else self._column_of(scope, name) for name, scope in scopes.items()}
        entries = tuple((variable, columns[name], span) for variable, name, span in node.entries)
        return replace(node, entries=entries)

    def named_in(self, node: s.Expr) -> s.Expr:
        """As `named`, of an expression."""
        match node:
            case s.Attribute(variable=variable, name=name):
                return replace(node, name=self.column_of(variable, name)) if variable and name else node
            case s.Unary(operand=operand):
                return replace(node, operand=self.named_in(operand))
            case s.Binary(left=left, right=right):
                return replace(node, left=self.named_in(left), right=self.named_in(right))
            case s.In(operand=operand, choices=choices):
                return replace(node, operand=self.named_in(operand), choices=tuple(map(self.named_in, choices)))
            case s.Call(arguments=arguments):
                return replace(node, arguments=tuple(map(self.named_in, arguments)))
        return node

    def column_of(self, variable: str, name: str) -> str:
        """The column of an attribute of the events under a variable."""
        return self._column_of([variable], name)

    def _column_of(self, variables: Sequence[str | None], name: str) -> str:
        tables = self.schema.tables
        types = {self.types.get(str(variable), "") for variable in variables}
        if tables is None or name in ROLES or name in {name for one in self.schema.derived for name in one.names}:
            return name
        known = {one.name for one in tables.types}
        if not types <= {ANY, *known}:
            self.faults[f"{name}@"] = _FollowsError("")
            return f"{name}@" if types & {ANY, *known, *self.types.values()} else name
        types = known if ANY in types else types
        try:
            column = tables.column(types, name)
        except (UnknownAttributeError, TypeMismatchError) as error:
            column_name = f"{name}@{'+'.join(sorted(types))}"
            self.faults[column_name] = error
            return column_name
        if column.name not in self.families:
            self.of_types[column.name] = column
            self.families[column.name] = family(column.type_name)
        return column.name

    @property
    def schema_read(self) -> EventSchema:
        """The schema with the columns of events of some types that are read."""
        if self.schema.tables is None or not self.of_types:
            return self.schema
        schema = self.schema.wider({name: column.type_name for name, column in self.of_types.items()})
        return schema.of_tables(self.schema.tables.with_columns(self.of_types.values()))

    def typed(self, node: s.Expr, path: Path_) -> str | None:
        """The family of an expression; None where it has none, which is reported."""
        try:
            family = infer(node, self.resolve)
        except ExpressionError as error:
            error.cause.hint = error.cause.hint or why_text(node, self.pattern.parameters)
            self.report(error.cause, path, (error.offset, error.offset + error.width))
            return None
        self.advise(node, path)
        return family

    def advise(self, node: s.Expr, path: Path_) -> None:
        """Looks for what is rarely meant in an expression whose types are right."""
        self.adviser.look(node, self.resolve, partial(self.place_of, path))

    def place_of(self, path: Path_, span: s.Span) -> Place:
        return self.pattern.document.place(path, offset=span[0], width=span[1] - span[0])


def _condition(text: str) -> s.Condition:
    try:
        return parse_condition(text)
    except TextError:
        count = re.search(r"\bcount\s*\(\s*\*\s*\)", text, re.IGNORECASE)
        if count is None:
            raise
        message = "COUNT(*) is an aggregate: it goes into return, not into a condition"
        low, high = count.span()
        raise TextError(message, low, high - low, 'return: {n: COUNT(*)} and having: ["n >= 4"]') from None


def constant_true(node: s.Expr) -> bool:
    from trendlake.cep_core.expressions.columnar import constant

    return constant(node) is True
