"""The allowed options and arguments of a contract's rules: a clause is understood or refused, never ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from trendlake.cep_core.errors import BadValueError, TrendlakeError, did_you_mean
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.odcs import Property, Quality

INTEGER_FORMATS = {"i8": "tinyint", "i16": "smallint", "i32": "int", "i64": "bigint"}
NUMBER_FORMATS = {"f32": "float", "f64": "double"}
FORMATS = {"integer": INTEGER_FORMATS, "number": NUMBER_FORMATS}
LENGTHS = (("minLength", "maxLength"), ("minItems", "maxItems"))
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "nullValues": (),
    "missingValues": ("missingValues",),
    "invalidValues": ("validValues", "pattern"),
    "duplicateValues": ("properties",),
    "rowCount": (),
}
"""The options and arguments of each metric."""
UNITS = ("rows", "percent")


def bad_options(item: Property, source: Source, path: Path_) -> Iterator[TrendlakeError]:
    """Mistakes in the values of a column's `logicalTypeOptions`; bounds are read by `read_rules`."""
    options = item.logical_type_options

    def bad(key: str, message: str, hint: str | None = None) -> TrendlakeError:
        return BadValueError(message, place=source.place((*path, "logicalTypeOptions", key)), hint=hint)

    for low, high in LENGTHS:
        counts = [key for key in (low, high) if key in options]
        wrong = [key for key in counts if not _whole(options[key])]
        for key in wrong:
            yield bad(key, f"{key} is a whole number, 0 or more, not {options[key]!r}")
        if len(counts) == 2 and not wrong and options[low] > options[high]:
            yield bad(high, f"{high} is less than {low}: no value keeps both")
    if "multipleOf" in options and not (_number(options["multipleOf"]) and options["multipleOf"] > 0):
        yield bad("multipleOf", f"multipleOf is a number more than 0, not {options['multipleOf']!r}")
    if "pattern" in options and not isinstance(options["pattern"], str):
        yield bad("pattern", f"pattern is a regular expression, not {options['pattern']!r}")
    if "uniqueItems" in options and not isinstance(options["uniqueItems"], bool):
        yield bad("uniqueItems", f"uniqueItems is true or false, not {options['uniqueItems']!r}")
    if "format" in options:
        known = FORMATS.get(item.logical_type or "")
        written = options["format"]
        if not isinstance(written, str):
            yield bad("format", f"format is a word, not {written!r}")
        elif known is not None and written not in known:
            message = f"no format '{written}' of {item.logical_type} is read"
            yield bad("format", message, did_you_mean(written, known))


def bad_arguments(quality: Quality, source: Source, path: Path_) -> Iterator[TrendlakeError]:
    """Mistakes in what a library rule is given."""
    arguments = quality.arguments
    known = ARGUMENTS[str(quality.metric)]

    def bad(key: str, message: str) -> TrendlakeError:
        return BadValueError(message, place=source.place((*path, "arguments", key)))

    for key, value in arguments.items():
        if key not in known:
            place = source.place((*path, "arguments", key), key=True)
            yield BadValueError(f"{quality.metric} has no argument '{key}'", place=place, hint=did_you_mean(key, known))
        elif key == "pattern":
            if not isinstance(value, str):
                yield bad(key, f"pattern is a regular expression, not {value!r}")
        elif not isinstance(value, list) or not value or any(isinstance(one, list | dict) for one in value):
            yield bad(key, f"{key} is a list of values, such as [A, B]")
    if quality.unit is not None and quality.unit not in UNITS:
        hint = did_you_mean(quality.unit, UNITS)
        yield BadValueError(f"unknown unit '{quality.unit}'", place=source.place((*path, "unit")), hint=hint)
    for name, value in quality.operators.items():
        low, high = value if isinstance(value, tuple) else (value, value)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            message = f"the bound of '{name.replace('_', ' ')}' is a number, or two numbers, the smaller first"
            yield BadValueError(message, place=source.place(path))


def decimal_fits(digits: str) -> bool:
    """Whether `(38,10)` says digits that Spark has: 38 at most, not fewer than those after the point."""
    parts = [int(part) if len(part) < 4 else 999 for part in digits.strip("()").split(",")]
    precision, scale = parts[0], parts[1] if len(parts) > 1 else 0
    return 1 <= precision <= 38 and scale <= precision


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
