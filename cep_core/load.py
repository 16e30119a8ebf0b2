"""From a pattern file to its model: the kind chooses the model, every mistake is reported with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from trendlake.cep_core.errors import (
    MAX_ERRORS,
    BadValueError,
    FileUnreadableError,
    NotSupportedError,
    PatternErrors,
    TextError,
    TrendlakeError,
    UnknownKeyError,
    YamlSyntaxError,
    did_you_mean,
    in_words_of_yaml,
)
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.language.tree_builder import NoFixedLengthError
from trendlake.cep_core.patterns.expectations import ExpectationModel
from trendlake.cep_core.patterns.lookups import LookupModel, ShareModel
from trendlake.cep_core.patterns.model import FamilyPattern, Pattern
from trendlake.cep_core.patterns.parameters import Parameters
from trendlake.cep_core.patterns.sources import SourceModel
from trendlake.cep_core.yaml.source import Source, from_data, parse_yaml, plain, read_yaml

NESTED: Mapping[str, type[BaseModel]] = {
    "expect": ExpectationModel,
    "sources": SourceModel,
    "lookup": LookupModel,
    "lookup.missing": ShareModel,
}
"""The models of the values of keys that files of every kind have; of keys in such values too."""


Query = str | PathLike[str] | Mapping[str, Any] | Pattern
"""A pattern file's path, YAML text (of several lines), a mapping of the same shape, or a pattern that is loaded."""


def load_pattern(query: Query) -> Pattern:
    """The pattern of a query.

    Raises PatternErrors with every mistake of the file's shape (unknown keys, bad values, syntax of durations).
    `compile_plan` checks the contents of the pattern and the conditions; `compile_query` does both at once.
    """
    pattern, errors = read_pattern(query)
    if errors or pattern is None:
        raise PatternErrors(errors)
    return pattern


def read_pattern(query: Query, rows: Parameters | None = None) -> tuple[Pattern | None, list[TrendlakeError]]:
    """The pattern and the mistakes of its shape; a family of these `rows` instead of its own `for_each`, where they are
    given. With mistakes, the pattern is what is left of it when they are put aside, so that the rest can be checked
    too; None when too little is left."""
    try:
        source = _source_of(query)
    except (FileUnreadableError, YamlSyntaxError, BadValueError) as error:
        return None, [error]
    if not isinstance(source.data, Mapping):
        return None, [BadValueError("a pattern file is a mapping of keys", place=source.place(()))]
    data = plain(source.data)
    if rows is not None:
        data.pop("for_each", None)
    kind, errors = _kind(data, source)
    if kind is None:
        return None, errors
    entry = KINDS[kind]
    data["kind"] = kind
    try:
        pattern = entry.model.model_validate(data)
    except ValidationError as failure:
        errors.extend(_explain(source, kind, error) for error in failure.errors()[: MAX_ERRORS + 2])
        wrong = {str(error["loc"][0]) for error in failure.errors() if error["loc"]}
        rest = {key: value for key, value in data.items() if key not in wrong}
        try:
            pattern = entry.model.model_validate({**entry.instead, **rest})
        except ValidationError:
            return None, errors
    pattern._source = source
    if rows is not None:
        if isinstance(pattern, FamilyPattern):
            pattern._given = rows
        else:
            errors.append(NotSupportedError(f"kind {kind} has no for_each", place=source.place(("kind",))))
    if isinstance(query, PathLike) or (isinstance(query, str) and "\n" not in query):
        errors.extend(_file_checks(pattern, source, Path(query).stem))
    errors.extend(pattern.mistakes())
    return pattern, errors


def _source_of(query: Query) -> Source:
    """The document of a query. Raises FileUnreadableError, YamlSyntaxError, BadValueError."""
    if isinstance(query, Pattern):
        return query.document
    if isinstance(query, str) and "\n" in query:
        return parse_yaml(query, "<pattern>")
    return read_yaml(fspath(query)) if isinstance(query, str | PathLike) else from_data(query)


def _kind(data: Mapping[str, Any], source: Source) -> tuple[str | None, list[TrendlakeError]]:
    """The kind whose model the file is held against: the one it names, else the one it may have meant."""
    kind = data.get("kind", "trends")
    if isinstance(kind, str) and kind in KINDS:
        return kind, []
    place = source.place(("kind",))
    hint = did_you_mean(str(kind), KINDS)
    errors: list[TrendlakeError] = [
        BadValueError(f"unknown kind '{kind}'; supported kinds: {', '.join(sorted(KINDS))}", place=place, hint=hint)
    ]
    meant = next((name for name in KINDS if hint == f"did you mean '{name}'?"), None)
    return meant, errors


def _file_checks(pattern: Pattern, source: Source, stem: str) -> list[TrendlakeError]:
    errors: list[TrendlakeError] = []
    for key in ("name", "source"):
        if source.data.get(key) is None and (key != "source" or source.data.get("sources") is None):
            errors.append(BadValueError(f"'{key}' is missing", place=source.place(())))
    given = source.data.get("name")
    if isinstance(given, str) and given != stem:
        message = f"the name '{given}' is not that of the file: expected '{stem}'"
        errors.append(BadValueError(message, place=source.place(("name",))))
    return errors


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown_key(source: Source, kind: str, path: tuple[str | int, ...]) -> TrendlakeError:
    """A key that no file has, or that files of another kind have."""
    word = str(path[-1])
    place = source.place(path, key=True)
    others = [name for name, entry in KINDS.items() if word in _keys(entry.model)] if len(path) == 1 else []
    if others:
        message = f"'{word}' is a key of kind {' and '.join(others)}, not of kind {kind}"
        return UnknownKeyError(message, place=place)
    nested = {**NESTED, **KINDS[kind].nested}
    inner = ".".join(map(str, (path[0], *path[2:-1])))
    within = KINDS[kind].model if len(path) == 1 else nested.get(inner, nested.get(str(path[0])))
    known = _keys(within) if within else []
    return UnknownKeyError(f"unknown key '{word}'", place=place, hint=did_you_mean(word, known))


def _explain(source: Source, kind: str, error: Any) -> TrendlakeError:
    """A pydantic error as ours, with its place."""
    path = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        return _unknown_key(source, kind, path)
    if error["type"] == "missing":
        return BadValueError(f"'{path[-1]}' is missing", place=source.place(path[:-1]))
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, TextError):
        place = source.place(path, offset=cause.offset, width=cause.width)
        if isinstance(cause, NoFixedLengthError) and path == ("within",) and kind != "trends":
            message = f"within of kind {kind} is a length of time: {cause.message}"
            return NotSupportedError(message, place=place, hint="write days or hours")
        return BadValueError(cause.message, place=place, hint=cause.hint)
    message = in_words_of_yaml(error)
    name = ".".join(str(part) for part in path)
    if error["type"] == "string_pattern_mismatch":
        message = "only letters, digits and _ (name and source: lower case), beginning with a letter"
    choices = error.get("ctx", {}).get("expected")
    hint = None
    if error["type"] == "string_pattern_mismatch" and path == ("name",):
        plain = re.sub(r"[^a-z0-9_]+", "_", str(error.get("input")).lower()).lstrip("_0123456789")
        hint = f"write name: {plain}, and call the file {plain}.yaml" if plain else None
    if error["type"] == "string_pattern_mismatch" and path[0] in ("group_by", "partition_by"):
        text = str(error.get("input"))
        plain = re.sub(r"\W+", "_", text).strip("_").lower()
        hint = f"derive: {{{plain}: {text}}} and {path[0]}: [{plain}]" if "(" in text or " " in text else None
    if error["type"] == "literal_error" and isinstance(choices, str):
        hint = did_you_mean(str(error.get("input")), [c.strip(" '") for c in choices.replace(" or ", ",").split(",")])
    return BadValueError(f"{name}: {message}", place=source.place(path), hint=hint)
