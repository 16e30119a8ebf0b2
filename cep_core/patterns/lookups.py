"""`lookup`: columns of reference tables as attributes of events.

Here is what a file may say; `cep_core.lookups` checks it against the columns of the events and of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.yaml.source import Path_, Source

_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ONE_NAME = "a column's name, or {name in the pattern: column of the table}"


def _key(value: object) -> tuple[tuple[str, str], ...]:
    """(column of the events, column of the table) of each part of a key."""
    if isinstance(value, str) and value:
        return ((value, value),)
    if isinstance(value, Mapping) and value and all(isinstance(one, str) and one for one in value.values()):
        return tuple((str(name), column) for name, column in value.items())
    raise ValueError("expected a column such as customer_id, or {name in the events: column of the table}")


def _column(value: object) -> tuple[str, str]:
    """(attribute, column of the table)."""
    name: Any = value
    column: Any = value
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, column),) = value.items()
    if not isinstance(name, str) or not isinstance(column, str) or not column:
        raise ValueError(f"expected {_ONE_NAME}")
    if not _ATTRIBUTE.fullmatch(name):
        raise ValueError(
            "an attribute has letters, digits and _, and begins with no digit: {attribute: column} renames"
        )
    return name, column


_NAMES = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
_TEXT = {"type": "string", "minLength": 1}
Key = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_key), WithJsonSchema({"anyOf": [_TEXT, _NAMES]})]
Column = Annotated[
    tuple[str, str], BeforeValidator(_column), WithJsonSchema({"anyOf": [_TEXT, {**_NAMES, "maxProperties": 1}]})
]
TableName = Annotated[str, Field(pattern=r"^(results/)?[a-z][a-z0-9_]{0,63}$")]


class ShareModel(BaseModel):
    """The events without a row that a run may have."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    most: Annotated[float, Field(ge=0, le=1)]
    """The largest share of a run's events without a row, such as 0.01: nothing is published above it."""


class LookupModel(BaseModel):
    """Columns of a reference table that become attributes of the events with its key."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    table: TableName
    """The reference table: data_contracts/<table>.yaml, or results/<pattern>."""
    key: Key
    """The column that events and table share, or {name in the events: column of the table}, one or several."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    """The columns that become attributes; {attribute: column of the table} gives one another name."""
    valid_from: Annotated[str, Field(min_length=1)] | None = None
    """A DATE or TIMESTAMP column: from when on a row holds. Without it the table is current: a row holds always."""
    valid_to: Annotated[str, Field(min_length=1)] | None = None
    """A DATE or TIMESTAMP column: from when on a row no longer holds; else until the next row of its key."""
    as_of: Annotated[str, Field(min_length=1)] | None = None
    """The DATE or TIMESTAMP column of the events with the time at which a row is to hold; else their time."""
    of: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The event types that get the attributes; else all."""
    missing: ShareModel | None = None
    """The events without a row that a run may have: {most: 0.01}."""
    most_windows: Annotated[int, Field(ge=1)] | None = None
    """The most windows that changes of the table may make a revision compute."""


def mistakes(lookups: Mapping[str, LookupModel], source: Source) -> list[TrendlakeError]:
    """The keys that mean nothing without another."""
    errors: list[TrendlakeError] = []
    for name, one in lookups.items():
        for key, value in (("valid_to", one.valid_to), ("as_of", one.as_of)):
            if value is not None and one.valid_from is None:
                path: Path_ = ("lookup", name, key)
                hint = "valid_from: the column from when on a row holds"
                place = source.place(path, key=True)
                errors.append(BadValueError(f"{key} without valid_from", place=place, hint=hint))
    return errors
