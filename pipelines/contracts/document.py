"""The file of a data contract as the standard has it (`pipelines.contracts.odcs`), and its mistakes in words, with
places."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trendlake.cep_core.errors import (
    MAX_ERRORS,
    BadValueError,
    FileUnreadableError,
    TrendlakeError,
    UnknownKeyError,
    YamlSyntaxError,
    did_you_mean,
    in_words_of_yaml,
)
from trendlake.cep_core.yaml.source import Source, plain, read_yaml
from trendlake.pipelines.contracts.odcs import Document, Node
from trendlake.pipelines.errors import ContractErrors
from trendlake.pipelines.project.paths import TABLE_NAME


def load_document(path: str | Path) -> tuple[Document, Source]:
    """The file as the standard has it; read once, for as long as it is not changed. Raises ContractErrors."""
    try:
        state = Path(path).stat()
    except OSError:
        return _read(path)  # which tells why
    return _loaded(str(path), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=100)
def _loaded(path: str, changed_ns: int, size: int) -> tuple[Document, Source]:
    return _read(path)


def _read(path: str | Path) -> tuple[Document, Source]:
    try:
        source = read_yaml(path)
    except (FileUnreadableError, YamlSyntaxError) as error:
        raise ContractErrors([error]) from None
    if not isinstance(source.data, Mapping):
        raise ContractErrors([BadValueError("a data contract is a mapping of keys", place=source.place(()))])
    try:
        document = Document.model_validate(plain(source.data))
    except ValidationError as failure:
        raise ContractErrors([_explain(source, error) for error in _own_errors(failure)[: MAX_ERRORS + 2]]) from None
    if not TABLE_NAME.fullmatch(document.table.name):
        message = f"'{document.table.name}' is no name of a table: a lower case letter, then those, digits and _"
        raise ContractErrors([BadValueError(message, place=source.place(("schema", 0, "name")))])
    if document.table.name != Path(path).stem:
        message = f"schema '{document.table.name}' is not the file's: expected '{Path(path).stem}'"
        raise ContractErrors([BadValueError(message, place=source.place(("schema", 0, "name")))])
    return document, source


def _own_errors(failure: ValidationError) -> list[Any]:
    """Without those that only follow from others: a list counts as too short when its items are wrong."""
    errors = failure.errors()
    places = {error["loc"] for error in errors}

    def follows(error: Any) -> bool:
        depth = len(error["loc"])
        return error["type"] == "too_short" and any(
            len(place) > depth and place[:depth] == error["loc"] for place in places
        )

    return [error for error in errors if not follows(error)]


def _explain(source: Source, error: Any) -> TrendlakeError:
    """A pydantic error as ours, with its place."""
    path = tuple(error["loc"])
    if error["type"] == "extra_forbidden":
        word, known = str(path[-1]), _known_keys(path[:-1])
        return UnknownKeyError(
            f"the standard (ODCS 3.1) has no key '{word}' here",
            place=source.place(path, key=True),
            hint=did_you_mean(word, known),
        )
    name = ".".join(str(part) for part in path)
    if error["type"] == "missing":
        return BadValueError(f"'{path[-1]}' is missing", place=source.place(path[:-1]))
    message = in_words_of_yaml(error)
    return BadValueError(f"{name}: {message}" if name else message, place=source.place(path))


def _known_keys(path: tuple[str | int, ...]) -> list[str]:
    """The keys the standard has on the mapping at `path`."""
    model: Any = Document
    for part in path:
        if isinstance(part, int):
            continue
        for item in model.model_fields.values():
            if item.alias == part:
                model = next((arg for arg in _arguments(item.annotation) if _is_node(arg)), None)
                break
        if model is None:
            return []
    return [item.alias or name for name, item in model.model_fields.items()]


def _arguments(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", ())
    return [annotation, *(nested for part in inner for nested in _arguments(part))]


def _is_node(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Node)
