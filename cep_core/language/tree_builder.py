"""Trees of the grammar in `grammar.lark` to nodes of `syntax`."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal, Overflow
from typing import Any, cast

from lark import Token, Transformer, v_args

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.language import syntax as s

MAX_REPEAT = 1_000
"""The largest n of `{n,m}`."""
MAX_DURATION = 10_000 * 366 * 86_400_000_000
"""Microseconds of the longest duration: no table's times are further apart."""
MAX_DIGITS = 400
"""Characters of a number."""

RUNNING = ("avg", "sum", "min", "max", "count")
"""Aggregates over the events before the i-th of a Kleene variable."""

_UNIT_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


class NoFixedLengthError(TextError):
    """A duration in months, quarters or years."""


def _span(meta: Any) -> s.Span:
    return (meta.start_pos, meta.end_pos)


def microseconds(amount: str, unit: str, span: s.Span) -> s.Literal:
    """A duration at a span of the text. Raises TextError."""
    if (name := unit.lower().rstrip("s")) not in _UNIT_US:
        raise NoFixedLengthError(f"'{name}' has no fixed length", span[0], span[1] - span[0], "write it in days")
    try:
        exact = Decimal(amount.strip()) * _UNIT_US[name]
    except Overflow:
        raise TextError("longer than 10,000 years", span[0], span[1] - span[0]) from None
    except ArithmeticError:
        raise TextError(f"'{amount}' is not a number", span[0], span[1] - span[0]) from None
    if not exact.is_finite() or abs(exact) > MAX_DURATION:
        raise TextError("longer than 10,000 years", span[0], span[1] - span[0])
    if exact != int(exact):
        raise TextError("finer than a microsecond", span[0], span[1] - span[0])
    return s.Literal(int(exact), "duration", span)


@v_args(meta=True)
class Builder(Transformer[Token, Any]):
    """Tree of `text` to `syntax` nodes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    # --- patterns
    def bare_atom(self, meta: Any, c: list[Token]) -> s.Atom:
        return s.Atom(str(c[0]), str(c[0]), _span(meta))

    def atom(self, meta: Any, c: list[Token]) -> s.Atom:
        return s.Atom(str(c[0]), str(c[1]), _span(meta))

    def group(self, meta: Any, c: list[Any]) -> Any:
        return c[0]

    def plus(self, meta: Any, c: list[Any]) -> s.Repeat:
        return s.Repeat(c[0], 1, None, _span(meta))

    def star(self, meta: Any, c: list[Any]) -> s.Repeat:
        return s.Repeat(c[0], 0, None, _span(meta))

    def optional(self, meta: Any, c: list[Any]) -> s.Repeat:
        return s.Repeat(c[0], 0, 1, _span(meta))

    def _repeat(self, meta: Any, body: Any, low: Token, high: Token | None) -> s.Repeat:
        wide = max(len(low), 0 if high is None else len(high)) > MAX_DIGITS  # Python takes no such number
        least, most = (0, None) if wide else (int(low), None if high is None else int(high))
        if wide or max(least, most or 0) > MAX_REPEAT:
            raise TextError(f"more than {MAX_REPEAT} repetitions", meta.start_pos, meta.end_pos - meta.start_pos)
        if most is not None and (most < least or most == 0):
            raise TextError(
                f"{{{least},{most}}} allows no repetition",
                meta.start_pos,
                meta.end_pos - meta.start_pos,
                "write {n,m} with 0 <= n <= m and m >= 1",
            )
        return s.Repeat(body, least, most, _span(meta))

    def exactly(self, meta: Any, c: list[Any]) -> s.Repeat:
        return self._repeat(meta, c[0], c[1], c[1])

    def at_least(self, meta: Any, c: list[Any]) -> s.Repeat:
        return self._repeat(meta, c[0], c[1], None)

    def at_most(self, meta: Any, c: list[Any]) -> s.Repeat:
        return self._repeat(meta, c[0], Token("INT", "0"), c[1])

    def between_times(self, meta: Any, c: list[Any]) -> s.Repeat:
        return self._repeat(meta, c[0], c[1], c[2])

    def reluctant(self, meta: Any, c: list[s.Repeat]) -> s.Repeat:
        first, last = c[0].span
        raise TextError(
            "a reluctant quantifier: SQL has them, this language does not",
            first,
            meta.end_pos - first,
            f"for a part that may be absent write ({self.text[first:last]})?",
        )

    def seq(self, meta: Any, c: list[Any]) -> s.Seq:
        return s.Seq(tuple(c), _span(meta))

    def negation(self, meta: Any, c: list[Any]) -> s.Not:
        if len(c) == 1:
            return s.Not(c[0], _span(meta))
        within, (low, high) = cast(int, c[1].value), c[1].span
        if not 0 < within <= MAX_DURATION:
            raise TextError("a NOT looks as far as some time, 10,000 years at most", low, high - low)
        return s.Not(c[0], _span(meta), within)

    def or_pattern(self, meta: Any, c: list[Any]) -> s.Or:
        return s.Or(tuple(c), _span(meta))

    def and_pattern(self, meta: Any, c: list[Any]) -> s.And:
        return s.And(tuple(c), _span(meta))

    # --- conditions
    def reference(self, meta: Any, c: list[Token]) -> tuple[str | None, str, s.Span]:
        return (str(c[0]) if len(c) == 2 else None, str(c[-1]), _span(meta))

    def equivalence(self, meta: Any, c: list[Any]) -> s.Equivalence:
        return s.Equivalence(tuple(c), _span(meta))

    def _fold(self, op: str, meta: Any, c: list[Any]) -> Any:
        node = c[0]
        for right in c[1:]:
            node = s.Binary(op, node, right, _span(meta))
        return node

    def disjunction(self, meta: Any, c: list[Any]) -> Any:
        return self._fold("or", meta, c)

    def conjunction(self, meta: Any, c: list[Any]) -> Any:
        return self._fold("and", meta, c)

    def not_(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("not", c[0], _span(meta))

    def compare(self, meta: Any, c: list[Any]) -> s.Binary:
        op = "!=" if c[1] == "<>" else str(c[1])
        return s.Binary(op, c[0], c[2], _span(meta))

    def arithmetic(self, meta: Any, c: list[Any]) -> s.Binary:
        return s.Binary(str(c[1]), c[0], c[2], _span(meta))

    def negative(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("-", c[-1], _span(meta))

    def in_(self, meta: Any, c: list[Any]) -> s.In:
        return s.In(c[0], tuple(c[1:]), _span(meta))

    def not_in(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("not", self.in_(meta, c), _span(meta))

    def between(self, meta: Any, c: list[Any]) -> s.Binary:
        span = _span(meta)
        return s.Binary("and", s.Binary(">=", c[0], c[1], span), s.Binary("<=", c[0], c[2], span), span)

    def not_between(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("not", self.between(meta, c), _span(meta))

    def is_null(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("isnull", c[0], _span(meta))

    def is_not_null(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary("not", s.Unary("isnull", c[0], _span(meta)), _span(meta))

    def number(self, meta: Any, c: list[Token]) -> s.Literal:
        text = str(c[0])
        if len(text) > MAX_DIGITS or math.isinf(float(text)):
            raise TextError("a number that no column holds", meta.start_pos, len(text))
        literal = s.number(text)
        return s.Literal(literal.value, literal.kind, _span(meta))

    def duration(self, meta: Any, c: list[Token]) -> s.Literal:
        return microseconds(str(c[0]), c[1], _span(meta))

    def interval(self, meta: Any, c: list[Token]) -> s.Literal:
        return microseconds(_unquote(c[0]), c[1], _span(meta))

    def duration_text(self, meta: Any, c: list[s.Literal]) -> s.Literal:
        return s.Literal(sum(cast(int, part.value) for part in c), "duration", _span(meta))

    def timestamp(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(timestamp_us(_unquote(c[0]), meta.start_pos), "timestamp", _span(meta))

    def date(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(date_us(_unquote(c[0]), meta.start_pos), "date", _span(meta))

    def string(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(_unquote(c[0]), "string", _span(meta))

    def true(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(True, "boolean", _span(meta))

    def false(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(False, "boolean", _span(meta))

    def null(self, meta: Any, c: list[Token]) -> s.Literal:
        return s.Literal(None, "null", _span(meta))

    def parameter(self, meta: Any, c: list[Token]) -> s.Parameter:
        return s.Parameter(str(c[0])[1:], "", _span(meta))

    def attribute(self, meta: Any, c: list[Token]) -> s.Attribute:
        return s.Attribute(str(c[0]), str(c[1]).strip("`"), False, _span(meta))

    def quoted_attribute(self, meta: Any, c: list[Token]) -> s.Attribute:
        return s.Attribute("", str(c[0]).strip("`"), False, _span(meta))

    def bare_attribute(self, meta: Any, c: list[Token]) -> s.Attribute:
        return s.Attribute("", str(c[0]), False, _span(meta))

    def next_attribute(self, meta: Any, c: list[Token]) -> s.Attribute:
        return s.Attribute(str(c[0]), str(c[1]).strip("`"), True, _span(meta))

    def index_number(self, meta: Any, c: list[Token]) -> str:
        if str(c[0]) != "1":
            raise _no_index(f"[{c[0]}]", meta)
        return "1"

    def index_here(self, meta: Any, c: list[Token]) -> str:
        if str(c[0]) != "i":
            raise _no_index(f"[{c[0]}]", meta)
        return "i"

    def index_before(self, meta: Any, c: list[Token]) -> str:
        if (str(c[0]), str(c[2])) != ("i", "1"):
            raise _no_index(f"[{c[0]}-{c[2]}]", meta)
        return "i-1"

    def index_last(self, meta: Any, c: list[Token]) -> str:
        if str(c[1]) != "LEN":
            raise _no_index(f"[{c[0]}.{c[1]}]", meta)
        return str(c[0])

    def indexed(self, meta: Any, c: list[Any]) -> s.Indexed:
        variable, index, name = str(c[0]), c[1], str(c[2]).strip("`")
        if index not in ("1", "i", "i-1"):
            if index != variable:
                raise _no_index(f"[{index}.LEN]", meta, f"the last event of {variable} is {variable}[{variable}.LEN]")
            index = "LEN"
        return s.Indexed(variable, name, False, _span(meta), index)

    def running(self, meta: Any, c: list[Any]) -> s.Indexed:
        function, variable, name = str(c[0]).lower(), str(c[1]), str(c[5]).strip("`")
        width = meta.end_pos - meta.start_pos
        if function not in RUNNING:
            hint = "running aggregates are " + ", ".join(RUNNING)
            raise TextError(f"there is no running aggregate '{c[0]}'", meta.start_pos, width, hint)
        if (str(c[2]), str(c[4])) != ("i", "1"):
            hint = f"write {function}({variable}[..i-1].{name})"
            raise TextError("a running aggregate is over [..i-1]", meta.start_pos, width, hint)
        return s.Indexed(variable, name, False, _span(meta), "..i-1", function)

    def call(self, meta: Any, c: list[Any]) -> s.Call:
        return s.Call(str(c[0]).lower(), tuple(c[1:]), _span(meta))

    def parenthesis(self, meta: Any, c: list[Any]) -> Any:
        return c[0]

    # --- measures
    def measure_star(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), None, None, _span(meta))

    def measure_variable(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), str(c[1]), None, _span(meta))

    def measure_attribute(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), str(c[1]), str(c[2]), _span(meta))

    def measure_of_trends(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), None, None, _span(meta), of=str(c[1]).lower())

    def measure_of_variable(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), str(c[2]), None, _span(meta), of=str(c[1]).lower())

    def measure_by(self, meta: Any, c: list[Token]) -> s.Measure:
        return s.Measure(str(c[0]).lower(), str(c[1]), str(c[2]), _span(meta), by=(str(c[3]), str(c[4])))

    def measure_distinct(self, meta: Any, c: list[Token]) -> s.Measure:
        if c[1].lower() != "distinct":
            first, last = c[1].start_pos or 0, c[1].end_pos or 0
            raise TextError(
                f"'{c[1]}' is not expected here", first, last - first, "such as COUNT(DISTINCT V.attribute)"
            )
        return s.Measure(str(c[0]).lower(), str(c[2]), str(c[3]), _span(meta), distinct=True)

    def filter_of_trends(self, meta: Any, c: list[Any]) -> s.Binary:
        name, op, bound = c
        first = name.start_pos or 0
        call = s.Call(str(name).lower(), (), (first, first + len(name)))
        return s.Binary("!=" if op == "<>" else str(op), call, bound, _span(meta))

    def filtered(self, meta: Any, c: list[Any]) -> s.Measure:
        measure: s.Measure = c[0]
        return replace(measure, where=c[1], span=_span(meta))


def _no_index(
    text: str, meta: Any, hint: str = "indices are [1], [i], [i-1] and [v.LEN] of the variable v"
) -> TextError:
    return TextError(f"no event has the index {text}", meta.start_pos, meta.end_pos - meta.start_pos, hint)


def _unquote(token: Token | str) -> str:
    return str(token)[1:-1].replace("''", "'")


def date_us(text: str, offset: int = 0) -> int:
    """An ISO 8601 date in microseconds since the epoch."""
    try:
        return (date.fromisoformat(text.strip()) - date(1970, 1, 1)).days * _UNIT_US["day"]
    except ValueError:
        raise TextError(f"'{text}' is not a date", offset, len(text), "write it like 2013-03-10") from None


def timestamp_us(text: str, offset: int = 0) -> int:
    """An ISO 8601 time (UTC where no zone is given) in microseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise TextError(f"'{text}' is not a time", offset, len(text), "write it like 2013-01-31T09:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise TextError(f"'{text}' is not in the years 1 to 9999 of UTC", offset, len(text)) from None
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
