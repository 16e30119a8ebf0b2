"""The pattern file: a checked pydantic model, every mistake reported with its place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from cep_core import parse
from cep_core.errors import (
    BadValueError,
    FileUnreadableError,
    NotSupportedError,
    PatternErrors,
    TrendlakeError,
    UnknownKeyError,
    YamlSyntaxError,
    did_you_mean,
)
from cep_core.yaml_source import Source, from_data, plain, read_yaml

Selection = Literal["skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous"]
Kind = Literal["trends", "matches", "automaton", "algebra", "xml_join"]
Consistency = Literal["strong", "middle", "weak"]

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
SnakeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]

RESERVED_COLUMNS = frozenset({"window_start", "window_end", "plan_hash", "source_version", "run_id", "computed_at"})
"""Columns every results table has: no measure or group may take their names."""


def _duration(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("expected a duration such as 10 minutes")
    return parse.parse_duration(value)


def _origin(value: object) -> int:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return parse.timestamp_us(moment.isoformat())
    if isinstance(value, date):
        return parse.timestamp_us(value.isoformat())
    if not isinstance(value, str):
        raise ValueError("expected a time such as 2013-01-31T09:00:00Z")
    return parse.timestamp_us(value)


class Pattern(BaseModel):
    """One pattern as an analyst wrote it. Durations and `origin` are microseconds (since the epoch)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: SnakeName = "query"
    kind: Kind = "trends"
    description: str = ""
    owner: str = ""
    source: SnakeName | None = None
    pattern: str
    where: tuple[str, ...] = ()
    returns: dict[Identifier, str] = Field(alias="return", min_length=1)
    group_by: tuple[Identifier, ...] = ()
    within: Annotated[int, BeforeValidator(_duration)]
    slide: Annotated[int | None, BeforeValidator(lambda v: None if v is None else _duration(v))] = None
    origin: Annotated[int, BeforeValidator(_origin)] = 0
    select: Selection = "skip_till_any_match"
    schedule: str | None = None
    tags: tuple[str, ...] = ()
    consistency: Consistency = "middle"
    empty_windows: bool = False

    _source: Source = PrivateAttr()

    @property
    def document(self) -> Source:
        """The document the pattern came from, for places in errors."""
        return self._source


def load_pattern(query: str | Path | Mapping[str, Any]) -> Pattern:
    """The pattern in a file, or given as a mapping.

    Raises PatternErrors with every mistake of the file's shape (unknown keys, bad values, syntax of durations). What
    the pattern and conditions say is checked by `compile_plan`; `compile_query` does both at once.
    """
    pattern, errors = read_pattern(query)
    if errors or pattern is None:
        raise PatternErrors(errors)
    return pattern


def read_pattern(query: str | Path | Mapping[str, Any]) -> tuple[Pattern | None, list[TrendlakeError]]:
    """The pattern and the mistakes of its shape. With mistakes, the pattern is what is left of it when they are put
    aside, so that the rest can be checked too; None when too little is left."""
    from_file = isinstance(query, str | Path)
    try:
        source = read_yaml(query) if isinstance(query, str | Path) else from_data(query)
    except (FileUnreadableError, YamlSyntaxError) as error:
        return None, [error]
    if not isinstance(source.data, Mapping):
        return None, [BadValueError("a pattern file is a mapping of keys", place=source.place(()))]
    data = plain(source.data)
    kind = data.get("kind", "trends")
    if kind in ("matches", "automaton", "algebra", "xml_join"):
        place = source.place(("kind",))
        return None, [NotSupportedError(f"kind '{kind}' is not built yet; kind trends is", place=place)]
    errors: list[TrendlakeError] = []
    try:
        pattern = Pattern.model_validate(data)
    except ValidationError as failure:
        errors.extend(_explain(source, error) for error in failure.errors())
        wrong = {str(error["loc"][0]) for error in failure.errors() if error["loc"]}
        rest = {key: value for key, value in data.items() if key not in wrong}
        try:
            pattern = Pattern.model_validate({"return": {"trends": "COUNT(*)"}, "within": "1 day"} | rest)
        except ValidationError:
            return None, errors
    pattern._source = source
    if from_file:
        errors.extend(_file_checks(pattern, source, Path(str(query)).stem))
    errors.extend(_name_checks(pattern, source))
    return pattern, errors


def _file_checks(pattern: Pattern, source: Source, stem: str) -> list[TrendlakeError]:
    errors: list[TrendlakeError] = []
    for key in ("name", "source"):
        if key not in source.data:
            errors.append(BadValueError(f"'{key}' is missing", place=source.place(())))
    if "name" in source.data and pattern.name != stem:
        errors.append(
            BadValueError(f"name '{pattern.name}' is not the file's: expected '{stem}'", place=source.place(("name",)))
        )
    return errors


def _name_checks(pattern: Pattern, source: Source) -> list[TrendlakeError]:
    errors: list[TrendlakeError] = []
    taken: dict[str, str] = dict.fromkeys(RESERVED_COLUMNS, "a column of every results table")
    for index, name in enumerate(pattern.group_by):
        if name.lower() in taken:
            errors.append(BadValueError(f"'{name}' is {taken[name.lower()]}", place=source.place(("group_by", index))))
        taken[name.lower()] = "a group column already"
    for name in pattern.returns:
        for column in (name, f"{name}_log10"):
            if column.lower() in taken:
                place = source.place(("return", name), key=True)
                errors.append(BadValueError(f"'{column}' is {taken[column.lower()]}", place=place))
            taken[column.lower()] = "a measure already (or its _log10 companion)"
    slide = pattern.slide or pattern.within
    if pattern.within > 100_000 * slide:
        errors.append(
            BadValueError(
                "more than 100,000 windows overlap at each moment",
                place=source.place(("slide",)),
                hint="make slide longer or within shorter",
            )
        )
    return errors


def _explain(source: Source, error: Any) -> TrendlakeError:
    """A pydantic error as ours, with its place."""
    path = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in Pattern.model_fields.items()]
        word = str(path[-1])
        return UnknownKeyError(
            f"unknown key '{word}'", place=source.place(path, key=True), hint=did_you_mean(word, known)
        )
    if error["type"] == "missing":
        return BadValueError(f"'{path[-1]}' is missing", place=source.place(path[:-1]))
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, parse.TextError):
        place = source.place(path, offset=cause.offset, width=cause.width)
        return BadValueError(cause.message, place=place, hint=cause.hint)
    message = str(cause) if cause is not None else str(error["msg"])
    name = ".".join(str(part) for part in path)
    if error["type"] == "string_pattern_mismatch":
        message = "only letters, digits and _ (name and source: lower case), beginning with a letter"
    choices = error.get("ctx", {}).get("expected")
    hint = None
    if error["type"] == "literal_error" and isinstance(choices, str):
        hint = did_you_mean(str(error.get("input")), [c.strip(" '") for c in choices.replace(" or ", ",").split(",")])
    return BadValueError(f"{name}: {message}", place=source.place(path), hint=hint)
