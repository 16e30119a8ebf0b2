"""Conditions of kind matches: names resolved, types right, each at the moment its last variable binds."""

from __future__ import annotations

from trendlake.cep_core.errors import BadConditionError, TypeMismatchError
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import duration
from trendlake.cep_core.matches.compile.check_pattern import PatternChecker
from trendlake.cep_core.matches.compile.model import MatchesPattern
from trendlake.cep_core.matches.compile.plan import Condition, When, aggregated, iterates
from trendlake.cep_core.patterns.resolver import constant_true
from trendlake.cep_core.yaml.source import Path_


class ConditionChecker(PatternChecker):
    """Reads `where` into `conditions`, `partition`, `scoped` and `never`."""

    def __init__(self, pattern: MatchesPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.conditions: list[Condition] = []
        self.partition: list[str] = []
        self.scoped: list[tuple[str, frozenset[str]]] = []
        self.compared: list[tuple[list[str], s.Expr, Path_]] = []
        """The variables of each condition that compares several, but NOTs, and its place."""
        self.never = False
        self.warnings: list[str] = []

    def resolve(self, attribute: s.Attribute) -> str:
        if attribute.next:
            cause = BadConditionError("NEXT is of kind trends", hint="write a[i-1] and a[i], or the next part's name")
            raise ExpressionError(cause, attribute.span)
        if isinstance(attribute, s.Indexed) and attribute.index == "all":
            self.variable(attribute.variable, attribute.span)
            family = self.column(attribute.name, attribute.span, attribute.variable) if attribute.name else "int"
            return aggregated(attribute, family)
        family = super().resolve(attribute)
        if isinstance(attribute, s.Indexed):
            self._index(attribute)
            if attribute.function:
                return aggregated(attribute, family)
        return family

    def _index(self, read: s.Indexed) -> None:
        if not any(part.variable == read.variable and part.kleene for part in self.parts):
            what = "is under NOT" if read.variable in self.of_nots else "is one event"
            hint = f"write {read.variable}.{read.name}"
            cause = BadConditionError(f"'{read.variable}' {what}: it has no index", hint=hint)
            raise ExpressionError(cause, read.span)

    def read_condition(self, text: str, path: Path_) -> None:
        condition = self.condition(text, path)
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
            if not reads and self.refuse_constant(part, path):
                continue
            if not reads:
                self.never = self.never or not constant_true(part)
            elif self._mixed(part, reads, path):
                continue
            elif len(nots) > 1:
                message = f"a condition speaks of one NOT at most, not of {' and '.join(sorted(nots))}"
                self.report(BadConditionError(message), path, part.span)
            elif nots:
                self._looks_beyond(part, next(iter(nots)), path)
                self._compare(reads, part, path)
                self.of_nots[nots.pop()].append(part)
            else:
                self._compare(reads, part, path)
                self.conditions.append(self._moment(part, reads))

    def _compare(self, reads: list[s.Attribute], part: s.Expr, path: Path_) -> None:
        names = list(dict.fromkeys(read.variable for read in reads if read.variable not in self.of_nots))
        if len(names) > 1:
            self.compared.append((names, part, path))

    def _looks_beyond(self, part: s.Expr, variable: str, path: Path_) -> None:
        """Warns of a bound on the time of a first or last NOT that is further away than such a NOT looks."""
        negation = next(one for one in self.negations if one.variable == variable)
        bound = _bound(part, variable, self.schema.event_time)
        inside = 0 < negation.after < len(self.parts)
        if bound is None or inside or negation.within is not None or bound <= self.query.within:
            return
        limited = f"NOT {negation.type_name} {variable} within {duration(bound)}"
        hint = f"write {limited}" if negation.after else "make within longer"
        message = f"NOT {variable} looks no further than within, {duration(self.query.within)}"
        error = BadConditionError(message, hint=hint, place=self.place_of(path, part.span))
        self.warnings.append(str(error))

    def _mixed(self, part: s.Expr, reads: list[s.Attribute], path: Path_) -> bool:
        """Reports `a.x` together with `a[i].x`: one speaks of every event, the other of every one but the first."""
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
                self.column(name, span, variable)
            except ExpressionError as error:
                self.report(error.cause, path, span)
                continue
            scopes.setdefault(name, set()).add(variable)
        for name, scope in scopes.items():
            if None in scope:
                self.partition.append(name)
            else:
                self.scoped.append((name, frozenset(str(variable) for variable in scope)))


def _bound(part: s.Expr, variable: str, time: str) -> int | None:
    """The duration of `v.time < w.time + duration`, of `v.time - w.time < duration`, and of the same for an earlier v;
    None for other conditions."""
    match part:
        case s.Binary(op=">" | ">=" as op, left=left, right=right):
            return _bound(s.Binary("<" if op == ">" else "<=", right, left), variable, time)
        case (
            s.Binary(
                op="<" | "<=",
                left=s.Attribute(name=a) as early,
                right=s.Binary(
                    op="+", left=s.Attribute(name=b) as late, right=s.Literal(kind="duration", value=int(bound))
                ),
            )
            | s.Binary(
                op="<" | "<=",
                left=s.Binary(op="-", left=s.Attribute(name=a) as early, right=s.Attribute(name=b) as late),
                right=s.Literal(kind="duration", value=int(bound)),
            )
        ) if a == b == time and variable in (early.variable, late.variable):
            return bound
    return None
