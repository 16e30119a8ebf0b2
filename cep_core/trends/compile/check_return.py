"""The columns of `return`: names resolved, types right, each measure sorted into its kind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trendlake.cep_core.errors import (
    BadConditionError,
    BadPatternError,
    BadValueError,
    NotSupportedError,
    TypeMismatchError,
    did_you_mean,
)
from trendlake.cep_core.events.intervals import DURATION
from trendlake.cep_core.expressions.local_clock import on_clock
from trendlake.cep_core.expressions.types import NUMERIC, ORDERED, ExpressionError
from trendlake.cep_core.fingerprint import ADDED
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.parameters import UnknownHereError, typed
from trendlake.cep_core.patterns.resolver import Checking
from trendlake.cep_core.trends.compile.model import TrendsPattern
from trendlake.cep_core.yaml.source import Path_

MOST_LENGTH = 64
"""The largest k of `FILTER (WHERE LENGTH(*) >= k)`: the states of the pattern are multiplied by it."""
LONGEST_DURATION = 2**53
"""Microseconds that a float64 holds exactly: the longest `within` of a pattern that measures durations."""

AGGREGATES = ("count", "min", "max", "sum", "avg")
CHOICES = ("first", "last", "min_by", "max_by")
"""Measures that are an attribute's value at one occurrence, which time or another attribute chooses."""
_OF = ("length", "duration")


@dataclass(frozen=True)
class Lengths:
    """Trends that have `low` to `high` events (None: no bound) under `variable` (None: in all)."""

    variable: str | None
    low: int
    high: int | None


@dataclass(frozen=True)
class CheckedMeasure:
    """A `return` column: `function` of `attribute` over occurrences of `variable` (`count` of trends when None).

    `of`: aggregated is the `length` or the `duration` of trends, of all their events or those of `variable`. `by`: the
    attribute that chooses an occurrence. `where`: only occurrences whose event satisfies it. `lengths`: only such
    trends. The function `longest`: the events of a longest trend."""

    name: str
    function: str
    variable: str | None
    attribute: str | None
    family: str
    of: str = field(default="", metadata=ADDED)
    by: str | None = field(default=None, metadata=ADDED)
    where: s.Expr | None = field(default=None, metadata=ADDED)
    lengths: Lengths | None = field(default=None, metadata=ADDED)

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of the source."""
        named = [name for name in (self.attribute, self.by) if name is not None]
        return (*named, *(read.name for read in (s.attributes(self.where) if self.where is not None else ())))

    @property
    def counts(self) -> bool:
        """Whether it is a number of trends or events, of any size."""
        return self.function == "count" or (self.function, self.of) == ("sum", "length")

    @property
    def ordered(self) -> bool:
        """Whether the ids of events order those of equal time."""
        return self.function in ("longest", *CHOICES)


class ReturnChecker(Checking):
    """Adds to the mistakes found those of `return`. `positive`: variables that are not under NOT."""

    pattern: TrendsPattern
    positive: set[str]

    def check_measures(self, texts: dict[str, str], node: s.PatternNode | None) -> list[CheckedMeasure]:
        """The measures that are right."""
        measures = []
        for name, text in texts.items():
            path: Path_ = ("return", name)
            measure = self.parsed(parse.parse_measure, text, path)
            if measure is None:
                continue
            try:
                measures.append(self._measure(name, measure))
            except ExpressionError as error:
                self.report(error.cause, path, (error.offset, error.offset + error.width))
                continue
            if isinstance(node, s.And) and measure != s.Measure("count", None, None):
                self.report(BadPatternError("a pattern with AND returns COUNT(*) only"), path, measure.span)
        return measures

    def _measure(self, name: str, measure: s.Measure) -> CheckedMeasure:
        self._function(measure)
        measure = self._named(measure)
        if measure.variable is not None:
            self.variable(measure.variable, measure.span)
            if measure.variable not in self.positive:
                message = f"'{measure.variable}' is under NOT: no trend has events of it"
                raise ExpressionError(BadConditionError(message), measure.span)
        where, lengths = self._filter(name, measure)
        if measure.of or measure.function == "longest":
            return CheckedMeasure(name, measure.function, measure.variable, None, "int", of=measure.of)
        family = "int"
        if measure.attribute is not None:
            family = self.column(measure.attribute, measure.span, measure.variable)
            self._takes(name, measure, measure.attribute, family)
        return CheckedMeasure(
            name,
            measure.function,
            measure.variable,
            measure.attribute,
            family,
            by=self._by(name, measure),
            where=where,
            lengths=lengths,
        )

    def _named(self, measure: s.Measure) -> s.Measure:
        """A measure whose names are those of columns, where events are of several tables."""
        if self.schema.tables is None:
            return measure
        variable, attribute, by, where = measure.variable, measure.attribute, measure.by, measure.where
        return replace(
            measure,
            attribute=self.column_of(variable, attribute) if variable and attribute else attribute,
            by=None if by is None else (by[0], self.column_of(*by)),
            where=None if where is None else self.named_in(where),
        )

    def _function(self, measure: s.Measure) -> None:
        """Raises ExpressionError where there is no such measure."""
        written, variable = measure.function.upper(), measure.variable
        known = (*AGGREGATES, *CHOICES, "longest")

        def refuse(error: BadConditionError | NotSupportedError) -> None:
            raise ExpressionError(error, measure.span)

        if measure.function in _UNSUPPORTED:
            refuse(NotSupportedError(f"{written} is not supported", hint=_UNSUPPORTED[measure.function]))
        if measure.function not in known:
            hint = did_you_mean(measure.function, known)
            if measure.function in _OF:
                of = "*" if variable is None or measure.function == "duration" else variable
                hint = f"of which trend? write MAX({written}({of})), MIN({written}({of})), AVG({written}({of})) ..."
            refuse(BadConditionError(f"there is no aggregate '{written}'", hint=hint))
        if measure.distinct:
            hint = "COUNT(V) counts the events under V, once for each trend that they are in"
            refuse(NotSupportedError(f"{written}(DISTINCT ...) is not supported", hint=hint))
        if measure.of:
            self._of(measure)
        elif measure.function == "longest":
            if variable is not None:
                refuse(BadConditionError("LONGEST takes *", hint="LONGEST(*) is the events of a longest trend"))
        elif measure.function == "count":
            if measure.attribute is not None:
                hint = f"COUNT(*) counts trends, COUNT({variable}) the events under {variable}"
                refuse(BadConditionError("COUNT takes * or a variable", hint=hint))
        elif measure.function in ("min_by", "max_by"):
            if measure.by is None:
                v = variable or "S"
                hint = f"such as {written}({v}.id, {v}.price): the id where the price is extreme"
                refuse(BadConditionError(f"{written} takes two attributes of a variable", hint=hint))
        elif measure.attribute is None:
            refuse(BadConditionError(f"{written} takes a variable's attribute", hint=f"such as {written}(S.price)"))
        if measure.by is not None and measure.function not in ("min_by", "max_by"):
            refuse(BadConditionError(f"{written} takes one attribute", hint=f"such as {written}(S.price)"))

    def _of(self, measure: s.Measure) -> None:
        """Checks an aggregate of a function of trends."""
        if measure.of not in _OF:
            hint = did_you_mean(measure.of, _OF) or "LENGTH(*), LENGTH(V) and DURATION(*) can be aggregated"
            error = BadConditionError(f"trends have no '{measure.of.upper()}'", hint=hint)
            raise ExpressionError(error, measure.span)
        of, takes = measure.of.upper(), ("min", "max", "sum", "avg")
        if measure.function not in takes:
            hint = f"MIN, MAX, SUM and AVG of {of} are; how many trends there are of a length says COUNT(*) FILTER"
            error = BadConditionError(f"{measure.function.upper()}({of}(..)) is not among the measures", hint=hint)
            raise ExpressionError(error, measure.span)
        if measure.of == "duration" and self.pattern.interval_start is not None:
            hint = f"SUM(V.{DURATION}) is the time that the events under V cover in the window"
            raise ExpressionError(NotSupportedError("DURATION(*) of events with intervals", hint=hint), measure.span)
        if measure.of == "duration" and measure.variable is not None:
            hint = f"write {measure.function.upper()}(DURATION(*)): from the first event of a trend to its last"
            raise ExpressionError(BadConditionError("DURATION takes *", hint=hint), measure.span)

    def _takes(self, name: str, measure: s.Measure, attribute: str, family: str) -> None:
        """Raises ExpressionError where a function does not take an attribute's type."""
        function = measure.function
        takes = NUMERIC | {"duration"} if function in ("sum", "avg") else ORDERED - {"boolean"}
        if function in CHOICES:
            takes = ORDERED | {"boolean"}
        if family not in takes and family != "null":
            raise ExpressionError(TypeMismatchError(f"{function.upper()} does not take a {family}"), measure.span)
        if family == "string" and function in ("min", "max"):
            self.adviser.order(function.upper(), [attribute], self.place_of(("return", name), measure.span))

    def _by(self, name: str, measure: s.Measure) -> str | None:
        """The attribute that chooses."""
        if measure.by is None:
            return None
        variable, attribute = measure.by
        written = measure.function.upper()
        if variable != measure.variable:
            message = f"{written} takes two attributes of one variable, not of {measure.variable} and {variable}"
            raise ExpressionError(BadConditionError(message), measure.span)
        family = self.column(attribute, measure.span, variable)
        if family not in ORDERED - {"boolean"} and family != "null":
            raise ExpressionError(TypeMismatchError(f"{written} does not order a {family}"), measure.span)
        if family == "string":
            self.adviser.order(written, [attribute], self.place_of(("return", name), measure.span))
        return attribute

    # --- FILTER
    def _filter(self, name: str, measure: s.Measure) -> tuple[s.Expr | None, Lengths | None]:
        """The condition of FILTER: on the event of an occurrence, or on the length of trends."""
        if measure.where is None:
            return None, None
        try:
            known: s.Expr = typed(measure.where, self.pattern.parameters)
            where = on_clock(known, self.pattern.time_zone, self.resolve)
        except UnknownHereError as error:
            raise ExpressionError(error.cause, (error.offset, error.offset + error.width)) from None
        trends = measure.function == "count" and measure.variable is None
        if any(isinstance(part, s.Call) and part.function in _OF for part in _parts(where)):
            if not trends:
                hint = "only COUNT(*) is filtered by the length of trends"
                raise ExpressionError(NotSupportedError("a FILTER by length here", hint=hint), where.span)
            return None, self._lengths(where)
        if trends:
            hint = "such as COUNT(*) FILTER (WHERE LENGTH(*) >= 3); `where` has conditions on the events of all trends"
            raise ExpressionError(
                BadConditionError("COUNT(*) is filtered by the length of trends", hint=hint), where.span
            )
        if measure.of or measure.function == "longest":
            raise ExpressionError(
                NotSupportedError("a FILTER here", hint="a condition in `where` is of all measures"), where.span
            )
        reads = s.attributes(where)
        if any(read.next or isinstance(read, s.Indexed) for read in reads):
            message = f"the condition of FILTER is on one event of {measure.variable}"
            raise ExpressionError(
                BadConditionError(message, hint="conditions on neighbours stand in `where`"), where.span
            )
        if others := sorted({read.variable for read in reads} - {measure.variable, ""}):
            message = f"the condition of FILTER is on {measure.variable}, not on {others[0]}"
            raise ExpressionError(BadConditionError(message), where.span)
        family = self.typed(where, ("return", name))
        if family is not None and family not in ("boolean", "null"):
            raise ExpressionError(TypeMismatchError(f"a condition is true or false, this is {family}"), where.span)
        if family is not None and not reads:
            message = f"the condition of FILTER reads no event of {measure.variable}"
            raise ExpressionError(BadConditionError(message), where.span)
        return where, None

    def _lengths(self, where: s.Expr) -> Lengths:
        """The trends that a condition on LENGTH chooses."""
        shape = "write LENGTH(*) or LENGTH(V), then = < <= > or >=, then a whole number, such as LENGTH(*) >= 3"
        if not (isinstance(where, s.Binary) and isinstance(where.left, s.Call) and where.op in _RANGES):
            raise ExpressionError(NotSupportedError("such a condition on the length of trends", hint=shape), where.span)
        call, bound = where.left, where.right
        if call.function != "length":
            raise ExpressionError(NotSupportedError("a FILTER by duration", hint=shape), where.span)
        if not (isinstance(bound, s.Literal) and bound.kind == "int" and isinstance(bound.value, int)):
            raise ExpressionError(NotSupportedError("a length that is no whole number", hint=shape), where.span)
        if not 1 <= bound.value <= MOST_LENGTH:
            message, hint = f"LENGTH {where.op} {bound.value}", f"a number from 1 to {MOST_LENGTH}"
            if bound.value > MOST_LENGTH:
                hint = f"{MOST_LENGTH} at most"
            raise ExpressionError(BadValueError(message, hint=hint), where.span)
        variable = None
        if call.arguments:
            (argument, *more) = call.arguments
            if more or not isinstance(argument, s.Attribute) or argument.variable or argument.next:
                raise ExpressionError(BadConditionError("LENGTH takes * or a variable", hint=shape), call.span)
            variable = argument.name
            self.variable(variable, argument.span)
            if variable not in self.positive:
                message = f"'{variable}' is under NOT: no trend has events of it"
                raise ExpressionError(BadConditionError(message), argument.span)
        low, high = _RANGES[where.op]
        return Lengths(variable, 0 if low is None else bound.value + low, None if high is None else bound.value + high)


_RANGES: dict[str, tuple[int | None, int | None]] = {
    "=": (0, 0),
    "<": (None, -1),
    "<=": (None, 0),
    ">": (1, None),
    ">=": (0, None),
}
"""Numbers to add to k for the lowest and the highest length."""

_MEASURES = "kind trends has COUNT, MIN, MAX, SUM, AVG, FIRST, LAST, MIN_BY and MAX_BY"
_UNSUPPORTED = dict.fromkeys(
    (
        *("median", "percentile", "percentile_approx", "percentile_cont", "percentile_disc", "quantile", "mode"),
        *("stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "approx_count_distinct"),
        *("array_agg", "collect_list", "collect_set", "any_value", "arg_max", "arg_min"),
    ),
    _MEASURES,
) | {"arg_max": "MAX_BY(V.a, V.b) is V.a where V.b is largest", "arg_min": "MIN_BY(V.a, V.b) is V.a where V.b is least"}


def _parts(node: s.Expr) -> list[s.Expr]:
    return [node, *(part for child in s.children(node) for part in _parts(child))]
