"""From a pattern file of kind matches to its plan: names resolved, types right, every condition at its moment.

All mistakes are collected, each with its place, and raised together.
"""

from __future__ import annotations

from cep_core import parse
from cep_core import syntax as s
from cep_core.check import constant_true
from cep_core.checking import Checking
from cep_core.errors import (
    BadConditionError,
    BadPatternError,
    NotSupportedError,
    PatternErrors,
    TypeMismatchError,
    UnknownAttributeError,
    did_you_mean,
)
from cep_core.matches.model import RESERVED_COLUMNS, MatchesPattern
from cep_core.matches.plan import Condition, MatchesPlan, Measure, Negation, Part, When
from cep_core.schema import EventSchema
from cep_core.typing_rules import NUMERIC, ORDERED, ExpressionError, infer
from cep_core.yaml_source import Path_

AGGREGATES = ("count", "sum", "avg", "min", "max")
PATTERN: Path_ = ("pattern",)


def compile_matches(pattern: MatchesPattern, schema: EventSchema) -> MatchesPlan:
    """Check `pattern` against `schema` and compile it. Raises PatternErrors with every mistake found."""
    return _Checker(pattern, schema).plan()


def iterates(read: s.Attribute) -> str:
    """Which of a Kleene variable's events an attribute speaks of, one after the other: `each`, `later` (i > 1), or
    none ("")."""
    if isinstance(read, s.Indexed):
        return "later" if read.index in ("i", "i-1", "..i-1") else ""
    return "each"


class _Checker(Checking):
    def __init__(self, pattern: MatchesPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.query = pattern
        self.parts: list[Part] = []
        self.negations: list[Negation] = []
        self.conditions: list[Condition] = []
        self.of_nots: dict[str, list[s.Expr]] = {}
        self.partition: list[str] = []
        self.scoped: list[tuple[str, frozenset[str]]] = []
        self.never = False

    def plan(self) -> MatchesPlan:
        if self._read_pattern():
            for index, text in enumerate(self.query.where):
                self._where(text, ("where", index))
        measures = [found for name, text in self.query.returns.items() if (found := self._measure(name, text))]
        self._names()
        if len(self.types) > 63:
            self.report(NotSupportedError("more than 63 variables"), PATTERN)
        if self.schema.event_id not in self.families:
            hint = did_you_mean(self.schema.event_id, self.families)
            message = f"a match lists its events' ids, and the source has no column '{self.schema.event_id}'"
            self.report(UnknownAttributeError(message, hint=hint), PATTERN)
        if self.errors:
            raise PatternErrors(self.errors)
        return MatchesPlan(
            parts=tuple(self.parts),
            negations=tuple(
                Negation(n.variable, n.type_name, n.after, tuple(self.of_nots[n.variable])) for n in self.negations
            ),
            conditions=tuple(self.conditions),
            partition=tuple(dict.fromkeys(self.partition)),
            scoped=tuple(dict.fromkeys(self.scoped)),
            measures=tuple(measures),
            within=self.query.within,
            select=self.query.select,
            output=self.query.output,
            limit=self.query.limit_per_partition,
            never=self.never,
            schema=self.schema,
        )

    # --- the pattern
    def _read_pattern(self) -> bool:
        node = self.parsed(parse.parse_pattern, self.query.pattern, PATTERN)
        if node is None:
            return False
        for part in node.parts if isinstance(node, s.Seq) else (node,):
            match part:
                case s.Atom():
                    self._add(part, kleene=False)
                case s.Repeat(body=s.Atom() as atom, low=1, high=None):
                    self._add(atom, kleene=True)
                case s.Not(body=s.Atom() as atom) if isinstance(node, s.Seq):
                    if self._known(atom):
                        self.negations.append(Negation(atom.variable, atom.type_name, len(self.parts)))
                        self.of_nots[atom.variable] = []
                case _:
                    self._no_part(part)
        if not self.parts and not self.errors:
            self.report(BadPatternError("a SEQ has a part that is not a NOT"), PATTERN, node.span)
        return bool(self.types)

    def _no_part(self, part: s.PatternNode) -> None:
        message = "a pattern of kind matches is one SEQ (or one part) of types, Kleene parts T v+ and NOT T v"
        hints = {
            s.Repeat: "of the operators only + stands here, after one type",
            s.Not: "NOT takes one type here, inside SEQ",
            s.Seq: "write the inner SEQ's parts in the outer one",
        }
        self.report(BadPatternError(message, hint=hints.get(type(part))), PATTERN, part.span)

    def _known(self, atom: s.Atom) -> bool:
        self.check_type(atom)
        if atom.variable in self.types:
            message = f"variable '{atom.variable}' stands for another part already"
            self.report(BadPatternError(message, hint="give each part a variable of its own"), PATTERN, atom.span)
            return False
        self.types[atom.variable] = atom.type_name
        return True

    def _add(self, atom: s.Atom, *, kleene: bool) -> None:
        if self._known(atom):
            self.parts.append(Part(atom.variable, atom.type_name, kleene))
            if atom.variable.lower() in RESERVED_COLUMNS:
                message = f"'{atom.variable}' is a column of every results table of kind matches"
                self.report(BadPatternError(message, hint="name the variable differently"), PATTERN, atom.span)

    def _names(self) -> None:
        columns: dict[str, str] = {}
        for variable in (part.variable for part in self.parts):
            if variable.lower() in columns:
                message = f"variables '{columns[variable.lower()]}' and '{variable}' would be one column"
                self.report(BadPatternError(message), PATTERN)
            columns[variable.lower()] = variable
        for name in self.query.returns:
            if name.lower() in columns:
                place = self.pattern.document.place(("return", name), key=True)
                error = BadConditionError(f"'{name}' is the column of the variable '{columns[name.lower()]}'")
                error.place = place
                self.errors.append(error)
        if self.query.output == "compressed":
            self._compressed()

    def _compressed(self) -> None:
        """What a row that stands for many matches cannot have."""
        for key, given in (("return", self.query.returns), ("limit_per_partition", self.query.limit_per_partition)):
            if given:
                message = f"a compressed row stands for any number of matches: it has no {key}"
                self.report(BadConditionError(message, hint=f"leave out {key}, or write output: all"), ("output",))
        if self.negations:
            message = "output: compressed of a pattern with NOT"
            self.report(NotSupportedError(message, hint="write output: all"), ("output",))

    # --- expressions
    def resolve(self, attribute: s.Attribute) -> str:
        if attribute.next:
            cause = BadConditionError("NEXT is of kind trends", hint="write a[i-1] and a[i], or the next part's name")
            raise ExpressionError(cause, attribute.span)
        if isinstance(attribute, s.Indexed) and attribute.index == "all":
            self.variable(attribute.variable, attribute.span)
            family = self.column(attribute.name, attribute.span) if attribute.name else "int"
            return aggregated(attribute, family)
        family = super().resolve(attribute)
        if isinstance(attribute, s.Indexed):
            self._index(attribute)
            if attribute.function:
                return aggregated(attribute, family)
        return family

    def _index(self, read: s.Indexed) -> None:
        if not any(part.variable == read.variable and part.kleene for part in self.parts):
            what = "stands under NOT" if read.variable in self.of_nots else "is one event"
            hint = f"write {read.variable}.{read.name}"
            cause = BadConditionError(f"'{read.variable}' {what}: it has no index", hint=hint)
            raise ExpressionError(cause, read.span)

    def _where(self, text: str, path: Path_) -> None:
        condition = self.parsed(parse.parse_condition, text, path)
        if condition is None:
            return
        if isinstance(condition, s.Equivalence):
            self._equivalence(condition, path)
            return
        kind = self.typed(condition, path)
        if kind is None:
            return
        if kind not in ("boolean", "null"):
            self.report(TypeMismatchError(f"a condition is true or false, this is {kind}"), path, condition.span)
        for part in s.conjuncts(condition):
            reads = s.attributes(part)
            nots = {read.variable for read in reads} & self.of_nots.keys()
            if not reads:
                self.never = self.never or not constant_true(part)
            elif self._mixed(part, reads, path):
                continue
            elif len(nots) > 1:
                message = f"a condition speaks of one NOT at most, not of {' and '.join(sorted(nots))}"
                self.report(BadConditionError(message), path, part.span)
            elif nots:
                self.of_nots[nots.pop()].append(part)
            else:
                self.conditions.append(self._moment(part, reads))

    def _mixed(self, part: s.Expr, reads: list[s.Attribute], path: Path_) -> bool:
        """Reports `a.x` beside `a[i].x`: one speaks of every event, the other of every one but the first."""
        kleene = {one.variable for one in self.parts if one.kleene}
        for name in dict.fromkeys(read.variable for read in reads if read.variable in kleene):
            styles = {iterates(read) for read in reads if read.variable == name} - {""}
            if len(styles) > 1:
                message = f"{name}.x speaks of each of {name}'s events, {name}[i].x of each after the first"
                hint = f"write {name}[i] for the one event in both places"
                self.report(BadConditionError(message, hint=hint), path, part.span)
                return True
        return False

    def _moment(self, expression: s.Expr, reads: list[s.Attribute]) -> Condition:
        """The part whose binding completes the condition, and when (Agrawal et al. 2008, section 3.2, step 2)."""
        place = {part.variable: number for number, part in enumerate(self.parts)}
        last = max(place[read.variable] for read in reads)
        when: When = "each"
        if self.parts[last].kleene:
            mine = [read for read in reads if place[read.variable] == last]
            styles = {iterates(read) for read in mine}
            if any(isinstance(read, s.Indexed) and read.index == "LEN" for read in mine):
                when = "last"
            elif "each" not in styles:
                when = "later" if "later" in styles else "first"
        return Condition(expression, last, when)

    def _equivalence(self, condition: s.Equivalence, path: Path_) -> None:
        scopes: dict[str, set[str | None]] = {}
        for variable, name, span in condition.entries:
            try:
                if variable is not None:
                    self.variable(variable, span)
                self.column(name, span)
            except ExpressionError as error:
                self.report(error.cause, path, span)
                continue
            scopes.setdefault(name, set()).add(variable)
        for name, scope in scopes.items():
            if None in scope:
                self.partition.append(name)
            else:
                self.scoped.append((name, frozenset(str(variable) for variable in scope)))

    # --- measures
    def _measure(self, name: str, text: str) -> Measure | None:
        path: Path_ = ("return", name)
        parsed = self.parsed(parse.parse_condition, text, path)
        if parsed is None or not self.types:
            return None
        if isinstance(parsed, s.Equivalence):
            self.report(BadConditionError("a measure is a value, not an equivalence"), path, parsed.span)
            return None
        try:
            expression = self._reduced(parsed)
            family = infer(expression, self.resolve)
            self._of_one_match(expression)
        except ExpressionError as error:
            self.report(error.cause, path, (error.offset, error.offset + error.width))
            return None
        if family in ("other", "duration", "null"):
            hint = "compare durations in where instead" if family == "duration" else None
            self.report(TypeMismatchError(f"a measure cannot be of type {family}", hint=hint), path, expression.span)
            return None
        return Measure(name, expression, family)

    def _reduced(self, node: s.Expr) -> s.Expr:
        """COUNT(a), SUM|AVG|MIN|MAX(a.x) as attributes with the index `all`."""
        match node:
            case s.Call(function=function, arguments=(s.Attribute() as read,), span=span) if function in AGGREGATES:
                if isinstance(read, s.Indexed):
                    cause = BadConditionError(f"{function.upper()} is over all of {read.variable}'s events")
                    raise ExpressionError(cause, span)
                if function == "count":
                    if read.variable:
                        hint = f"write COUNT({read.variable})"
                        raise ExpressionError(BadConditionError("COUNT takes a variable", hint=hint), span)
                    self.variable(read.name, read.span)
                    return s.Indexed(read.name, "", False, span, "all", function)
                if not read.variable:
                    hint = f"such as {function.upper()}({next(iter(self.types), 'a')}.{read.name})"
                    cause = BadConditionError(f"{function.upper()} takes a variable's attribute", hint=hint)
                    raise ExpressionError(cause, span)
                self.variable(read.variable, read.span)
                aggregated(read, self.column(read.name, read.span), function)
                return s.Indexed(read.variable, read.name, False, span, "all", function)
            case s.Unary(op=op, operand=operand, span=span):
                return s.Unary(op, self._reduced(operand), span)
            case s.Binary(op=op, left=left, right=right, span=span):
                return s.Binary(op, self._reduced(left), self._reduced(right), span)
            case s.In(operand=operand, choices=choices, span=span):
                return s.In(self._reduced(operand), tuple(map(self._reduced, choices)), span)
            case s.Call(function=function, arguments=arguments, span=span):
                return s.Call(function, tuple(map(self._reduced, arguments)), span)
        return node

    def _of_one_match(self, expression: s.Expr) -> None:
        """Refuses what has no one value in a match."""
        kleene = {part.variable for part in self.parts if part.kleene}
        for read in s.attributes(expression):
            if read.variable in self.of_nots:
                cause = BadConditionError(f"'{read.variable}' stands under NOT: no match has events of it")
                raise ExpressionError(cause, read.span)
            if read.variable in kleene and iterates(read):
                v, x = read.variable, read.name
                hint = f"write {v}[1].{x}, {v}[{v}.LEN].{x} or an aggregate such as AVG({v}.{x})"
                raise ExpressionError(BadConditionError(f"a match has several events of {v}", hint=hint), read.span)


def aggregated(read: s.Attribute, family: str, function: str | None = None) -> str:
    """The family of an aggregate over values of `family`. Raises ExpressionError."""
    name = function or (read.function if isinstance(read, s.Indexed) else "")
    if name == "count":
        return "int"
    takes = NUMERIC if name in ("sum", "avg") else ORDERED - {"boolean"}
    if family not in takes and family != "null":
        raise ExpressionError(TypeMismatchError(f"{name.upper()} does not take a {family}"), read.span)
    return "double" if name == "avg" else family
