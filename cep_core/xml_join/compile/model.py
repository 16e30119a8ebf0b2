"""The keys of a pattern file of kind xml_join."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, Pattern

OWN_COLUMNS = ("answer_id", "query", "left_id", "right_id", "start", "end")
RESERVED_COLUMNS = PROVENANCE_COLUMNS | set(OWN_COLUMNS)
"""Columns every results table of kind xml_join has: no column of `return` may take their names."""

QUERY_KEYS = ("left", "right", "operator", "where", "within", "return")
"""Keys of one query."""

_BLOCK = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
_QUERY: dict[str, Any] = {
    "left": {
        **_BLOCK,
        "description": "A tree pattern: the main variable is an absolute path, //book; each other one a "
        "path from a variable above, $book/title.",
    },
    "right": {**_BLOCK, "description": "The tree pattern of the other document."},
    "operator": {"type": "string", "description": "followed_by: the right document is later. join: either may be."},
    "where": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "Equalities of values, all of which hold: $author = $blogger.",
    },
    "within": {
        "type": "string",
        "examples": ["7 days", "unbounded"],
        "description": "How far apart the two documents are at most, inclusive.",
    },
    "return": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Columns: $v, normalize-space($v) or node($v).",
    },
}
_QUERIES = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "type": "object",
        "properties": _QUERY,
        "required": ["left", "right", "operator", "where", "within"],
        "additionalProperties": False,
    },
}
_EACH = {
    "anyOf": [
        {"type": "string", "examples": ["topics.csv"]},
        {"type": "array", "items": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}},
    ]
}


class QueryModel(BaseModel):
    """One query under `queries`: two blocks, and how their documents are joined."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    left: Annotated[Any, WithJsonSchema(_QUERY["left"])] = None
    right: Annotated[Any, WithJsonSchema(_QUERY["right"])] = None
    operator: Annotated[Any, WithJsonSchema(_QUERY["operator"])] = None
    where: Annotated[Any, WithJsonSchema(_QUERY["where"])] = None
    within: Annotated[Any, WithJsonSchema(_QUERY["within"])] = None
    returns: Annotated[Any, WithJsonSchema(_QUERY["return"])] = Field(alias="return", default=None)


class XmlJoinPattern(Pattern):
    """Queries of kind xml_join, as an analyst wrote them. `check` reads their contents: texts may hold fields of
    `each`, and every mistake has its place."""

    kind: Literal["xml_join"] = "xml_join"
    namespaces: dict[str, str] = Field(default_factory=dict)
    """Prefixes of names in paths; "" is the namespace of element names without a prefix."""
    left: Annotated[Any, WithJsonSchema(_QUERY["left"])] = None
    """A tree pattern: the main variable is an absolute path, //book; each other one a path from a variable above."""
    right: Annotated[Any, WithJsonSchema(_QUERY["right"])] = None
    """The tree pattern of the other document."""
    operator: Annotated[Any, WithJsonSchema(_QUERY["operator"])] = None
    """followed_by: the right document is later. join: either may be."""
    where: Annotated[Any, WithJsonSchema(_QUERY["where"])] = None
    """Equalities of values that must all hold: $author = $blogger."""
    within: Annotated[Any, WithJsonSchema(_QUERY["within"])] = None
    """How far apart the two documents are at most, inclusive; or unbounded."""
    returns: Annotated[Any, WithJsonSchema(_QUERY["return"])] = Field(alias="return", default=None)
    """Columns: $v, normalize-space($v) or node($v)."""
    queries: Annotated[Any, WithJsonSchema(_QUERIES)] = None
    """Many queries by name, each with the keys left, right, operator, where, within and return."""
    each: Annotated[Any, WithJsonSchema(_EACH)] = None
    """Rows that fill {field} in the queries: a list of mappings, or the name of a CSV file next to this file."""
    limit_per_document: Annotated[int, Field(ge=1)] = 1_000_000
    """More answers of one query that end with one document are an error."""

    @property
    def groups(self) -> tuple[str, ...]:
        return ("query",)
