"""`for_each`: the rows of values that stand for `$name` in a pattern. Values have types; they are never text to insert.

`for_each: {symbol: [AAPL, MSFT], threshold: [100, 110.5]}` stands for every combination,
`for_each: {file: price_alarm.csv}` for the rows of a CSV file, whose header names the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import product
from typing import Any, TypeAlias

import pyarrow as pa

from trendlake.cep_core.errors import (
    BadValueError,
    NotSupportedError,
    TextError,
    TrendlakeError,
    UnknownParameterError,
    did_you_mean,
)
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import TIME_TYPE, arrow_type
from trendlake.cep_core.fingerprint import canonical
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.tree_builder import timestamp_us
from trendlake.cep_core.yaml.source import Source

Value: TypeAlias = bool | int | float | str | None
Row: TypeAlias = tuple[Value, ...]

MOST_ROWS = 100_000
"""Rows of a family."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a family, in order: their `names`, their types (`kinds`, as of literals), and the `rows` of
    their values, all different. Times are microseconds since the epoch. `origin`: the file that contains them, or ""
    for lists; `texts`: the line that makes a column of the file text, of those that begin as numbers."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Row, ...]
    origin: str = field(default="", compare=False)
    texts: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def literals(self, row: Row) -> dict[str, s.Expr]:
        """A row as what may stand for each `$name`."""
        return {name: literal(value, kind) for name, kind, value in zip(self.names, self.kinds, row, strict=True)}

    @property
    def empty(self) -> dict[str, int]:
        """In how many rows each parameter is NULL."""
        return {name: sum(row[at] is None for row in self.rows) for at, name in enumerate(self.names)}

    def described(self, row: Row) -> str:
        """`symbol = 'AAPL', threshold = 100`."""
        from trendlake.cep_core.language.unparse import expression

        return ", ".join(f"{name} = {expression(node)}" for name, node in self.literals(row).items())

    @property
    def schema(self) -> pa.Schema:
        """The columns of the values."""
        return pa.schema([pa.field(name, column_type(kind)) for name, kind in zip(self.names, self.kinds, strict=True)])

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Some rows as columns."""
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.names]
        arrays = [_array(values, field.type) for values, field in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    @property
    def keys(self) -> list[str]:
        """Of each row a text that only equal rows have."""
        return [canonical(row) for row in self.rows]


def _array(values: list[Value], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def column_type(kind: str) -> pa.DataType:
    """The type of a parameter's result column. A parameter that is NULL in all rows is text."""
    if kind == "timestamp":
        return TIME_TYPE
    return pa.string() if kind == "null" else arrow_type(kind)


def literal(value: Value, kind: str) -> s.Expr:
    """A value as the expression that a file would have: -5 is a minus before a 5."""
    if value is None:
        return s.Literal(None, "null")
    if isinstance(value, int | float) and not isinstance(value, bool) and kind != "timestamp" and value < 0:
        return s.Unary("-", s.Literal(-value, kind))
    return s.Literal(value, kind)


def why_text(node: s.Condition, parameters: Parameters | None) -> str | None:
    """The reason why a parameter of a condition is text, where that may not be meant."""
    if isinstance(node, s.Equivalence):
        return None
    texts = dict(parameters.texts) if parameters else {}
    return next((texts[read.name] for read in s.parameters(node) if read.name in texts), None)


def typed(node: Any, parameters: Parameters | None) -> Any:
    """A condition whose parameters know their types. Raises TextError at one that `for_each` does not name."""
    if isinstance(node, s.Equivalence) or not s.parameters(node):
        return node
    kinds = dict(zip(parameters.names, parameters.kinds, strict=True)) if parameters else {}

    def with_kind(parameter: s.Parameter) -> s.Parameter:
        if parameter.name not in kinds:
            raise _unknown(parameter, kinds)
        return s.Parameter(parameter.name, kinds[parameter.name], parameter.span)

    return s.replaced(node, with_kind)


class UnknownHereError(TextError):
    """A parameter that does not exist, at its place in the text."""

    def __init__(self, cause: UnknownParameterError, span: s.Span) -> None:
        super().__init__(cause.message, span[0], span[1] - span[0], cause.hint)
        self.cause = cause


def _unknown(parameter: s.Parameter, kinds: Mapping[str, str]) -> UnknownHereError:
    if kinds:
        message, hint = f"for_each has no parameter '{parameter.name}'", did_you_mean(parameter.name, kinds)
    else:
        message = f"'${parameter.name}' has no values: the pattern has no for_each"
        hint = f"add for_each: {{{parameter.name}: [...]}}"
    return UnknownHereError(UnknownParameterError(message, hint=hint), parameter.span)


class ForEachError(Exception):
    """Mistakes in `for_each`, each with its place."""

    def __init__(self, errors: Sequence[TrendlakeError]) -> None:
        super().__init__(*errors)
        self.errors = list(errors)


def read_lists(lists: Mapping[str, Any], source: Source) -> Parameters:
    """Every combination of the values of lists; the last list changes fastest. Raises ForEachError."""
    errors: list[TrendlakeError] = []
    names, kinds, columns = list[str](), list[str](), list[list[Value]]()
    for name, given in lists.items():
        if not isinstance(given, list) or not given:
            message = "the list is empty, so that there is no pattern" if given == [] else "expected a list of values"
            errors.append(BadValueError(f"for_each: {name}: {message}", place=source.place(("for_each", name))))
            continue
        kind, values = _column(name, given, source, errors)
        names.append(name)
        kinds.append(kind)
        columns.append(values)
    if not errors and math.prod(len(column) for column in columns) > MOST_ROWS:
        message = f"for_each: the lists have more than {MOST_ROWS:,} combinations"
        hint = "name the combinations that matter in a CSV file"
        errors.append(NotSupportedError(message, place=source.place(("for_each",)), hint=hint))
    if errors:
        raise ForEachError(errors)
    return Parameters(tuple(names), tuple(kinds), tuple(product(*columns)))


def read_rows(table: pa.Table) -> Parameters:
    """The rows of a table, a column a parameter. Raises ForEachError."""
    errors = list(refuse_names(table.column_names, lambda name: None))
    if not table.num_rows or not table.num_columns:
        errors.append(BadValueError("for_each: the frame has no rows, so that there is no pattern"))
    if table.num_rows > MOST_ROWS:
        errors.append(NotSupportedError(f"for_each: more than {MOST_ROWS:,} rows"))
    if errors:
        raise ForEachError(errors)
    kinds, columns = list[str](), list[list[Value]]()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind, values = _values(name, column, errors)
        kinds.append(kind)
        columns.append(values)
    rows = tuple(zip(*columns, strict=True)) if not errors else ()
    first: dict[str, int] = {}
    for at, row in enumerate(rows, 1):
        before = first.setdefault(canonical(row), at)
        if before != at:
            errors.append(BadValueError(f"for_each: row {at} of the frame is equal to row {before}"))
    if errors:
        raise ForEachError(errors)
    return Parameters(tuple(table.column_names), tuple(kinds), rows)


def _values(name: str, column: pa.ChunkedArray, errors: list[TrendlakeError]) -> tuple[str, list[Value]]:
    """The type of a column of parameters, as of literals, and its values. Mistakes are added to `errors`."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)))
    typed, values = "null", list[Value]()
    for at, item in enumerate(column.to_pylist(), 1):
        try:
            own, value = _value(item)
        except ValueError as problem:
            errors.append(BadValueError(f"for_each: {name}: row {at}: {problem}"))
            continue
        typed = typed if own == "null" else own
        values.append(value)
    return typed, as_doubles(values) if typed == "double" else values


def _column(name: str, given: list[Any], source: Source, errors: list[TrendlakeError]) -> tuple[str, list[Value]]:
    """The type of a list's values, and the values. Mistakes are added to `errors`."""
    kind, values, places = "null", list[Value](), list[int]()
    for i, item in enumerate(given):
        place = source.place(("for_each", name, i))
        try:
            own, value = _value(item)
        except ValueError as problem:
            errors.append(BadValueError(f"for_each: {name}: {problem}", place=place))
            continue
        if "null" not in (kind, own) and kind != own:
            if {kind, own} != {"int", "double"}:
                message = (
                    f"for_each: {name}: expected values of one type, this is of type {own}, those before are {kind}"
                )
                errors.append(BadValueError(message, place=place, hint="write all of them in quotes, or none"))
                continue
            own = "double"
        kind = own if own != "null" else kind
        values.append(value)
        places.append(i)
    if kind == "double":
        values = as_doubles(values)
    first: dict[str, int] = {}
    for i, value in zip(places, values, strict=True):  # as they are compared: 1 and 1.0 are one value among doubles
        if first.setdefault(canonical(value), i) != i:
            message = f"for_each: {name}: this value is in the list already, as number {first[canonical(value)] + 1}"
            errors.append(BadValueError(message, place=source.place(("for_each", name, i))))
    return kind, values


def as_doubles(values: Sequence[Value]) -> list[Value]:
    """Whole numbers among doubles; there is no -0.0."""
    return [None if value is None else float(value) + 0.0 for value in values]


def _value(item: Any) -> tuple[str, Value]:
    """The type and value of an item of a list. Raises ValueError."""
    if item is None:
        return "null", None
    if isinstance(item, bool):
        return "boolean", item
    if isinstance(item, int):
        if not -(2**63) < item < 2**63:
            raise ValueError("this number does not fit 64 bits")
        return "int", item
    if isinstance(item, float):
        if not math.isfinite(item):
            raise ValueError("expected a finite number")
        return "double", item
    if isinstance(item, date):
        moment = item if isinstance(item, datetime) else datetime(item.year, item.month, item.day)
        return "timestamp", timestamp_us((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())
    if isinstance(item, str):
        return "string", item
    raise ValueError("expected a number, a text, true, false, a time, or null")


def refuse_names(names: Sequence[str], place_of: Any) -> Iterator[TrendlakeError]:
    """Names that differ in case only, or that no `$name` can name."""
    seen: set[str] = set()
    for name in names:
        if not (name.isascii() and name.isidentifier()):
            message = f"for_each: '{name}' is no name: letters, digits and _, beginning with a letter"
            yield BadValueError(message, place=place_of(name))
        elif same_name(name) in seen:
            yield BadValueError(f"for_each: '{name}' is a parameter already", place=place_of(name))
        seen.add(same_name(name))
