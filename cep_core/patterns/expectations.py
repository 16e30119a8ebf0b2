"""`expect`: what a person wants of a pattern's results from window to window. It is no part of what is computed.

Here is what a file may say; results are judged by it in `pipelines.history_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from trendlake.cep_core.errors import BadValueError, TrendlakeError, TypeMismatchError, did_you_mean
from trendlake.cep_core.yaml.source import Path_, Source

ROWS = "rows"
"""The measure that every kind has: how many result rows there are."""
MOST_WINDOWS = 1_000
"""Windows that one is compared with."""
MOST_TIMES = 10**9
"""The largest bound."""

Bounds = tuple[Fraction | None, Fraction | None]


def _bounds(value: object) -> Bounds:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("expected two numbers such as [0.5, 2]; null where there is no bound")
    low, high = (_number(bound) for bound in value)
    if low is None and high is None:
        raise ValueError("expected a number at one side at least, such as [0.5, null]")
    if low is not None and high is not None and low > high:
        raise ValueError("the first number is larger than the second")
    return low, high


def _number(value: object) -> Fraction | None:
    """As it was written: 0.1 is a tenth."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TIMES:
        raise ValueError("expected two numbers from 0 to a billion, such as [0.5, 2]; null where there is no bound")
    return Fraction(repr(value))


def _windows(value: object) -> int:
    match = re.fullmatch(r"\s*([0-9]{1,9})\s+windows?\s*", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("expected a number of windows such as 7 windows")
    if not 1 <= int(match[1]) <= MOST_WINDOWS:
        raise ValueError(f"expected 1 to {MOST_WINDOWS:,} windows")
    return int(match[1])


class ExpectationModel(BaseModel):
    """One expectation of each window, compared with the windows before it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, arbitrary_types_allowed=True)

    measure: str | None = None
    """A column of `return` that is a number, or rows: how many result rows there are."""
    between: Annotated[
        Bounds | None,
        BeforeValidator(_bounds),
        WithJsonSchema(
            {
                "type": "array",
                "items": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
                "minItems": 2,
                "maxItems": 2,
                "examples": [[0.5, 2]],
            }
        ),
    ] = None
    """How many times its median of the windows before the measure may be: [0.5, 2]; null where there is no bound."""
    groups: Literal["none_vanish"] | None = None
    """None vanishes: a group that has a row in each of the windows before has one in this."""
    of_last: Annotated[int, BeforeValidator(_windows), WithJsonSchema({"type": "string", "examples": ["7 windows"]})]
    """With how many windows before it a window is compared."""
    on_break: Literal["warn", "fail"] = "warn"
    """The reaction to a broken expectation: report it (warn), or publish nothing (fail)."""

    @property
    def name(self) -> str:
        """The name of its check."""
        last = f"of_last_{self.of_last}"
        if self.between is None:
            return f"none_vanish_{last}"
        low, high = (None if bound is None else shown(bound) for bound in self.between)
        range_ = (
            f"at_most_{high}" if low is None else f"at_least_{low}" if high is None else f"between_{low}_and_{high}"
        )
        return f"{self.measure}_{range_}_{last}"


def shown(number: Fraction) -> str:
    """A bound as a file may write it."""
    return str(int(number)) if number.denominator == 1 else repr(float(number))


def mistakes(
    expected: Sequence[ExpectationModel], groups: Sequence[str], measures: Sequence[str], source: Source
) -> list[TrendlakeError]:
    """The keys that do not go together. `groups`: the columns that identify the groups of results; `measures`: the
    columns with one value a group and window."""
    errors: list[TrendlakeError] = []
    seen: set[str] = set()
    for i, one in enumerate(expected):
        path: Path_ = ("expect", i)

        def bad(message: str, *key: str, hint: str | None = None, path: Path_ = path) -> None:
            errors.append(BadValueError(message, place=source.place((*path, *key), key=bool(key)), hint=hint))

        if (one.measure is None) == (one.groups is None):
            bad("it expects something of a measure, or of the groups: one of the two", hint="measure: rows")
        elif one.groups is not None and one.between is not None:
            bad("'between' is for a measure", "between")
        elif one.groups is not None and not groups:
            bad("the results have no groups that could vanish", "groups", hint="expect it of the measure 'rows'")
        elif one.measure is not None and one.between is None:
            bad("'between' is missing", hint="between: [0.5, 2], times the median of the windows before")
        elif one.measure is not None and one.measure not in (ROWS, *measures):
            hint = did_you_mean(one.measure, (*measures, ROWS))
            message = f"no measure is called '{one.measure}'"
            errors.append(BadValueError(message, place=source.place((*path, "measure")), hint=hint))
        elif one.name in seen:
            bad("this is expected already", hint="make it one, with on_break: fail where either has it")
        seen.add(one.name)
    return errors


def type_mistakes(
    expected: Sequence[ExpectationModel], measures: Sequence[str], results: pa.Schema, source: Source
) -> list[TrendlakeError]:
    """Measures that are no numbers. `results`: the columns of the results."""
    errors: list[TrendlakeError] = []
    for i, one in enumerate(expected):
        if one.measure in measures and one.measure in results.names:
            kind = results.field(one.measure).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                message = f"'{one.measure}' is a {kind}, not a number"
                place = source.place(("expect", i, "measure"))
                errors.append(TypeMismatchError(message, place=place, hint="expect something of a count or a number"))
    return errors
