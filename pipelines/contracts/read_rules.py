"""The rules that an ODCS file states, in its order: those of columns by their options, and those of `quality`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from trendlake.cep_core.documents.document import RULES
from trendlake.cep_core.errors import BadValueError, NotSupportedError, Place, TextError, TrendlakeError, did_you_mean
from trendlake.cep_core.events.schema import family
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.column_names import bad_name
from trendlake.pipelines.contracts.odcs import Document, Property, Quality
from trendlake.pipelines.contracts.regular_expressions import expression_of
from trendlake.pipelines.contracts.row_conditions import check_types, parse_row_condition
from trendlake.pipelines.contracts.rule_options import bad_arguments, bad_options
from trendlake.pipelines.contracts.rule_values import rule_faults
from trendlake.pipelines.contracts.rules import Limit, Rule, Scalar

Path = tuple[str | int, ...]

BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
OPTIONS = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": (*BOUNDS, "multipleOf", "format"),
    "number": (*BOUNDS, "multipleOf", "format"),
    "timestamp": (*BOUNDS, "format", "timezone", "defaultTimezone"),
    "date": (*BOUNDS, "format"),
    "array": ("minItems", "maxItems", "uniqueItems"),
}


def rules_of(
    document: Document, source: Source, types: Mapping[str, str], errors: list[TrendlakeError]
) -> tuple[Rule, ...]:
    """Every rule of the document, in its order; mistakes are added to `errors`. `types`: Spark's, of columns; "" of one
    whose type is not known."""
    rules: list[Rule] = []
    names: dict[str, Place | None] = {}
    for rule in _all_rules(document, source, types, errors):
        if rule.name in names:
            errors.append(BadValueError(f"two rules are called '{rule.name}'", place=rule.place, hint="name one"))
        names[rule.name] = rule.place
        errors += rule_faults(rule, types)
        rules.append(rule)
    return tuple(rules)


def _all_rules(
    document: Document, source: Source, types: Mapping[str, str], errors: list[TrendlakeError]
) -> Iterator[Rule]:
    for index, item in enumerate(document.table.properties):
        path: Path = ("schema", 0, "properties", index)
        yield from _property_rules(item, source, path, errors)
        for number, quality in enumerate(item.quality):
            yield from _quality_rule(quality, (item.name,), source, (*path, "quality", number), types, errors)
    keys = tuple(item.name for item in document.table.properties if item.primary_key)
    single = len(keys) == 1 and any(item.unique for item in document.table.properties if item.primary_key)
    if keys and not single:
        yield Rule("primary_key_unique", "unique", keys, place=source.place(("schema", 0, "properties")))
    for number, quality in enumerate(document.table.quality):
        yield from _quality_rule(quality, (), source, ("schema", 0, "quality", number), types, errors)


def _property_rules(item: Property, source: Source, path: Path, errors: list[TrendlakeError]) -> Iterator[Rule]:
    place = source.place((*path, "name"))
    column = (item.name,)
    if item.required:
        yield Rule(f"{item.name}_required", "not_null", column, place=place)
    if item.unique:
        yield Rule(f"{item.name}_unique", "unique", column, place=place)
    if item.custom("eventRole") == "document":
        for rule in RULES:
            yield Rule(rule, "xml", column, text=rule, place=place)
    options = item.logical_type_options
    for key in options:
        if key not in OPTIONS.get(item.logical_type or "", ()):
            where = source.place((*path, "logicalTypeOptions", key), key=True)
            hint = did_you_mean(key, OPTIONS.get(item.logical_type or "", ()))
            errors.append(BadValueError(f"{item.logical_type} has no option '{key}'", place=where, hint=hint))
    wrong = [*bad_name(item, source, path), *bad_options(item, source, path)]
    if wrong:
        errors.extend(wrong)
        return
    try:
        bounds = {key: _bound(item, options[key]) for key in BOUNDS if key in options}
    except ValueError as error:
        errors.append(BadValueError(str(error), place=source.place((*path, "logicalTypeOptions"))))
        return
    if bounds:
        low = bounds.get("exclusiveMinimum", bounds.get("minimum"))
        high = bounds.get("exclusiveMaximum", bounds.get("maximum"))
        if low is not None and high is not None and low > high:  # type: ignore[operator]
            where = source.place((*path, "logicalTypeOptions"))
            errors.append(BadValueError(f"no value is between {low} and {high}", place=where))
        strict = ("exclusiveMinimum" in bounds, "exclusiveMaximum" in bounds)
        yield Rule(
            f"{item.name}_range",
            "range",
            column,
            low=low,
            high=high,
            low_strict=strict[0],
            high_strict=strict[1],
            place=place,
        )
    if "minLength" in options or "maxLength" in options:
        low, high = options.get("minLength"), options.get("maxLength")
        yield Rule(f"{item.name}_length", "length", column, low=low, high=high, place=place)
    if "pattern" in options:
        errors += _pattern_faults(str(options["pattern"]), source, (*path, "logicalTypeOptions", "pattern"))
        yield Rule(f"{item.name}_pattern", "pattern", column, text=str(options["pattern"]), place=place)
    if "minItems" in options or "maxItems" in options:
        low, high = options.get("minItems"), options.get("maxItems")
        yield Rule(f"{item.name}_items", "items", column, low=low, high=high, place=place)
    if options.get("uniqueItems"):
        yield Rule(f"{item.name}_distinct_items", "distinct_items", column, place=place)
    if "multipleOf" in options:
        yield Rule(f"{item.name}_multiple", "multiple", column, high=options["multipleOf"], place=place)


def _pattern_faults(text: str, source: Source, path: Path) -> Iterator[TrendlakeError]:
    try:
        expression_of(text)
    except TextError as error:
        place = source.place(path, offset=error.offset, width=max(1, error.width))
        yield BadValueError(f"this regular expression has {error.message}", place=place, hint=error.hint)


def _bound(item: Property, value: Any) -> Scalar:
    """A bound as a value of the column's type; times without an offset are UTC."""
    if item.logical_type == "timestamp":
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if item.logical_type == "date":
        return date.fromisoformat(str(value))
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"a bound of '{item.name}' is a number, not '{value}'")
    return value


def _quality_rule(
    quality: Quality,
    columns: tuple[str, ...],
    source: Source,
    path: Path,
    types: Mapping[str, str],
    errors: list[TrendlakeError],
) -> Iterator[Rule]:
    place = source.place(path)
    if quality.type == "text":
        return
    if quality.type == "sql":
        message = "a rule of type sql judges a table, not a row; Trendlake runs library rules and its own row rules"
        hint = "type: custom, engine: trendlake, implementation: <condition a good row meets>"
        errors.append(NotSupportedError(message, place=place, hint=hint))
        return
    common: dict[str, Any] = {
        "limit": _limit(quality),
        "warning": (quality.severity or "").lower() in ("warning", "info"),
        "description": (quality.description or "").strip(),
        "place": place,
    }
    if quality.type == "custom":
        yield from _row_rule(quality, columns, source, path, types, errors, common)
        return
    if wrong := list(bad_arguments(quality, source, path)):
        errors.extend(wrong)
        return
    arguments, prefix = quality.arguments, "_".join(columns)
    if quality.metric == "rowCount":
        yield Rule(quality.name or "row_count", "row_count", columns, **common)
    elif quality.metric == "duplicateValues":
        named = tuple(str(name) for name in arguments.get("properties", columns))
        for one in named:
            if one not in types:
                closest = did_you_mean(one, types)
                errors.append(BadValueError(f"there is no column '{one}'", place=place, hint=closest))
        yield Rule(quality.name or f"{'_'.join(named)}_unique", "unique", named, **common)
    elif not columns:
        errors.append(BadValueError(f"{quality.metric} is a rule of a column", place=place))
    elif quality.metric == "nullValues":
        yield Rule(quality.name or f"{prefix}_not_null", "not_null", columns, **common)
    elif quality.metric == "missingValues":
        values = tuple(arguments.get("missingValues", (None, "")))
        yield Rule(quality.name or f"{prefix}_not_missing", "not_missing", columns, values=values, **common)
    else:
        if isinstance(arguments.get("pattern"), str):
            errors += _pattern_faults(str(arguments["pattern"]), source, (*path, "arguments", "pattern"))
        yield from _invalid_values(quality, columns, place, errors, common)


def _invalid_values(
    quality: Quality, columns: tuple[str, ...], place: Place, errors: list[TrendlakeError], common: Mapping[str, Any]
) -> Iterator[Rule]:
    """A set, a pattern, or both: a name given is the rule's, with the kind appended where there are two."""
    arguments, prefix = quality.arguments, "_".join(columns)
    both = "validValues" in arguments and "pattern" in arguments
    if "validValues" not in arguments and "pattern" not in arguments:
        errors.append(BadValueError("invalidValues needs arguments: validValues or pattern", place=place))
    if "validValues" in arguments:
        name = quality.name or f"{prefix}_valid"
        values = tuple(arguments["validValues"])
        yield Rule(f"{name}_set" if both else name, "in_set", columns, values=values, **common)
    if "pattern" in arguments:
        name = quality.name or f"{prefix}_valid"
        text = str(arguments["pattern"])
        yield Rule(f"{name}_pattern" if both else name, "pattern", columns, text=text, **common)


def _row_rule(
    quality: Quality,
    columns: tuple[str, ...],
    source: Source,
    path: Path,
    types: Mapping[str, str],
    errors: list[TrendlakeError],
    common: Mapping[str, Any],
) -> Iterator[Rule]:
    place = source.place((*path, "engine"))
    if quality.engine != "trendlake":
        message = f"rules of engine '{quality.engine}' are not run"
        errors.append(NotSupportedError(message, place=place, hint="engine: trendlake, or type: library"))
    elif not isinstance(quality.implementation, str):
        errors.append(BadValueError("implementation is the condition a good row meets, as text", place=place))
    elif not quality.name:
        errors.append(BadValueError("a rule of engine trendlake has a name", place=source.place(path)))
    else:
        text = quality.implementation.strip()
        try:
            condition = parse_row_condition(text)
            if all(types.values()):  # a column without a type has its own error
                check_types(condition, {name: family(kind) for name, kind in types.items()})
            yield Rule(quality.name, "row", columns, text=text, condition=condition, **common)
        except TextError as error:
            spot = source.place((*path, "implementation"), offset=error.offset, width=error.width)
            errors.append(BadValueError(error.message, place=spot, hint=error.hint))


def _limit(quality: Quality) -> Limit:
    if not quality.operators:
        return Limit()
    (operator, value), *_ = quality.operators.items()
    low, high = value if isinstance(value, tuple) else (value, value)
    return Limit(operator, low, high, percent=quality.unit == "percent")
