"""JSON Schemas of the files people write, for their editors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

CUSTOM_VALUES: Mapping[str, dict[str, Any]] = {
    "eventType": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "eventRole": {"enum": ["event_id", "event_time", "event_type", "document", "sequence"]},
    "quarantineTolerance": {"type": "number", "minimum": 0, "maximum": 1},
    "corrections": {"const": "replace"},
    "derive": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Columns that every pattern over the source has: a name and an expression over an event's.",
    },
    "nullWords": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Words that mean NULL in files of events; without it NA, null and the like, in columns that are "
        "no texts.",
    },
    "idColumns": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "uniqueItems": True,
        "description": "The columns that ingestion makes the event id of: several, or that of the event time.",
    },
    "timeFormat": {
        "type": "string",
        "minLength": 1,
        "examples": ["iso8601", "unix_seconds", "unix_millis", "%m/%d/%Y %H:%M"],
        "description": "How files write the times of the column; without it ISO 8601. Of a table of documents: "
        "iso8601, rfc822 or epoch_seconds.",
    },
    "documentPath": {
        "type": "string",
        "minLength": 1,
        "examples": ["//item", "/rss/channel/item", "//*:entry"],
        "description": "The elements of an XML file that become documents of their own; without it the root.",
    },
    "idPath": {
        "type": "string",
        "minLength": 1,
        "examples": ["guid", "@id"],
        "description": "The id of a document, as a path from its element.",
    },
    "timePath": {
        "type": "string",
        "minLength": 1,
        "examples": ["pubDate", "*:updated"],
        "description": "The time of a document, as a path from its element.",
    },
    "timeZone": {
        "type": "string",
        "minLength": 1,
        "examples": ["UTC", "America/New_York"],
        "description": "The IANA time zone of times that state no offset; without it UTC.",
    },
}
"""The allowed values of the custom properties that Trendlake reads."""


def _pattern() -> dict[str, Any]:
    from trendlake.cep_core.json_schema import pattern_schema

    return pattern_schema()


def _contract() -> dict[str, Any]:
    from trendlake.cep_core.json_schema import DIALECT
    from trendlake.pipelines.contracts.odcs import Document
    from trendlake.pipelines.contracts.properties import PROPERTIES

    schema = Document.model_json_schema(by_alias=True)
    custom = schema["$defs"]["CustomProperty"]
    custom["properties"]["property"]["examples"] = sorted({*PROPERTIES["table"], *PROPERTIES["column"]})
    custom["allOf"] = [
        {"if": {"properties": {"property": {"const": name}}}, "then": {"properties": {"value": value}}}
        for name, value in CUSTOM_VALUES.items()
    ]
    return {"$schema": DIALECT, "title": "A data contract"} | schema


def _tests() -> dict[str, Any]:
    from pydantic import TypeAdapter

    from trendlake.cep_core.json_schema import DIALECT
    from trendlake.pipelines.authoring.pattern_tests import PatternTest

    return {"$schema": DIALECT, "title": "Tests of a pattern"} | TypeAdapter(tuple[PatternTest, ...]).json_schema()


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"pattern": _pattern, "contract": _contract, "tests": _tests}


def schema_of(name: str) -> dict[str, Any]:
    """Raises TrendlakeError for a name there is not."""
    from trendlake.cep_core.errors import TrendlakeError, did_you_mean

    if name not in SCHEMAS:
        raise TrendlakeError(f"there is no schema '{name}': {', '.join(SCHEMAS)}", hint=did_you_mean(name, SCHEMAS))
    return SCHEMAS[name]()


def schema_text(name: str) -> str:
    """The schema as a file of its own. Raises as `schema_of`."""
    return json.dumps(schema_of(name), indent=2) + "\n"
