"""`sources` and `ties` of a pattern file: the tables of events, by the pattern's types.

    sources:
      Order: orders
      Payment: {source: payments, columns: {customer: cust, note: null}}
      Ticket: {source: support, type: opened, idle: 1 day}
    ties: [payments, orders, support]

`cep_core.patterns.united` checks them against the tables' schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from trendlake.cep_core.errors import BadValueError, NotSupportedError, TrendlakeError
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.tables import ROLES
from trendlake.cep_core.language.parse import parse_duration
from trendlake.cep_core.language.unparse import duration
from trendlake.cep_core.plan import ANY
from trendlake.cep_core.yaml.source import Source

_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_TABLE = r"^(results/)?[a-z][a-z0-9_]{0,63}$"
BY_SEQUENCE = "sequence"
"""The word of `ties` for events that one counter numbers."""


def _duration(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("expected a duration such as 10 minutes")
    return parse_duration(value)


_Name = Annotated[str, Field(pattern=_NAME)]
_Table = Annotated[str, Field(pattern=_TABLE)]
_Idle = Annotated[
    int | None, BeforeValidator(_duration), WithJsonSchema({"type": "string", "examples": ["10 minutes", "1 day"]})
]


class SourceModel(BaseModel):
    """The events of one type."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    source: _Table
    """The table: data_contracts/<source>.yaml; or results/<pattern>, another pattern's results."""
    type: str | None = None
    """The value of the table's event type; the type's name where none is stated."""
    columns: dict[_Name, str | None] = Field(default_factory=dict)
    """Names here of the table's columns, {customer: cust}; null declares a column absent: NULL for these events."""
    idle: _Idle = None
    """A table without new events counts as at least so long before the newest event of all tables; without it, the
    pattern waits for the table."""


def _entry(value: object) -> object:
    return {"source": value} if isinstance(value, str) else value


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("expected a table, or a mapping with source")
    return value


_SHORT = {"type": "string", "pattern": _TABLE}
_LONG = {
    "type": "object",
    "properties": {
        "source": _SHORT,
        "type": {"type": "string"},
        "columns": {
            "type": "object",
            "propertyNames": {"pattern": _NAME},
            "additionalProperties": {"type": ["string", "null"]},
        },
        "idle": {"type": "string", "examples": ["1 day"]},
    },
    "required": ["source"],
    "additionalProperties": False,
}
_SOURCES = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": _NAME},
    "additionalProperties": {"anyOf": [_SHORT, _LONG]},
    "examples": [{"Order": "orders", "Payment": {"source": "payments", "columns": {"customer": "cust"}}}],
}
Sources = Annotated[
    dict[_Name, Annotated[SourceModel, BeforeValidator(_entry), BeforeValidator(_not_null)]],
    Field(min_length=1),
    WithJsonSchema(_SOURCES),
]
"""Tables by type."""


def _ties(value: Any) -> tuple[str, ...] | str | None:
    if value is None:
        return None
    if value == BY_SEQUENCE:
        return BY_SEQUENCE
    names = list(value) if isinstance(value, list | tuple) else []
    if not names or not all(isinstance(one, str) and re.match(_TABLE, one) for one in names):
        raise ValueError("expected all tables in their order, or `sequence`")
    return tuple(names)


Ties = Annotated[
    Any,
    AfterValidator(_ties),
    WithJsonSchema(
        {
            "anyOf": [{"const": BY_SEQUENCE}, {"type": "array", "minItems": 1, "items": _SHORT}],
            "examples": [["payments", "orders"], BY_SEQUENCE],
        }
    ),
]
"""The order of tables, `sequence`, or None."""


def source_mistakes(
    kind: str, source: str | None, sources: Mapping[str, SourceModel] | None, ties: Any, document: Source
) -> list[TrendlakeError]:
    """The contradictions that need no schema."""
    errors: list[TrendlakeError] = []

    def report(error: TrendlakeError, *path: str | int, key: bool = False) -> None:
        error.place = document.place(path, key=key)
        errors.append(error)

    if sources is None:
        if ties is not None and document.data.get("sources") is None:
            report(BadValueError("ties are of several tables", hint="`sources` names them"), "ties", key=True)
        return errors
    if kind == "xml_join":
        report(NotSupportedError("kind xml_join reads one source of documents", hint="use source"), "sources", key=True)
    if source is not None:
        hint = "`sources` alone names all tables"
        report(BadValueError("a pattern has `source` or `sources`, not both", hint=hint), "sources", key=True)
    if ANY in sources:
        message = f"{ANY} stands for every type in a pattern: no type has this name"
        report(BadValueError(message, hint="name the type differently"), "sources", ANY, key=True)
    idle: dict[str, int | None] = {}
    rows: dict[tuple[str, str], str] = {}
    for name, entry in sources.items():
        for column in entry.columns:
            if same_name(column) in ROLES:
                message = f"'{column}' is a column that every event has"
                report(BadValueError(message, hint="choose another name"), "sources", name, "columns", column, key=True)
        before = idle.setdefault(entry.source, entry.idle)
        if before != entry.idle:
            here, above = ("none" if one is None else duration(one) for one in (entry.idle, before))
            message = f"idle of {entry.source} is {here} here and {above} above"
            path = ("sources", name) if entry.idle is None else ("sources", name, "idle")
            report(BadValueError(message, hint="state the same in both"), *path)
        if entry.type is not None:
            other = rows.setdefault((entry.source, entry.type), name)
            if other != name:
                report(same_rows(other, name, entry.source), "sources", name, key=True)
    if isinstance(ties, tuple):
        errors += _of_ties(ties, sorted({entry.source for entry in sources.values()}), document)
    return errors


def _of_ties(ties: tuple[str, ...], tables: list[str], document: Source) -> list[TrendlakeError]:
    missing = [name for name in tables if name not in ties]
    if missing:
        message = f"ties lists {_and(ties)}, not {_and(missing)}"
        return [BadValueError(message, place=document.place(("ties",)), hint="list all tables, or none")]
    for at, name in enumerate(ties):
        place = document.place(("ties", at))
        if name not in tables:
            return [BadValueError(f"ties lists {name}, which is no table of `sources`", place=place)]
        if name in ties[:at]:
            return [BadValueError(f"ties lists {name} twice", place=place)]
    return []


def same_rows(one: str, other: str, table: str) -> BadValueError:
    """The error of two types that are the same rows."""
    message = f"'{one}' and '{other}' are the same rows of {table}"
    first, second = one[0].lower(), other[0].lower()
    first, second = (first, second) if first != second else ("a", "b")
    return BadValueError(message, hint=f"one type, two variables: {one} {first}, {one} {second}")


def _and(names: tuple[str, ...] | list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
