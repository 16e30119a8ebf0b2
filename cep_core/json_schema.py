"""JSON Schema of pattern files, made from their models: editors complete and check by it.

It says what keys there are and of what form; what patterns and conditions say is `compile_query`'s to judge.
"""

from __future__ import annotations

from typing import Any

from trendlake.cep_core.kinds import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def pattern_schema() -> dict[str, Any]:
    """The schema of a pattern file of any kind: the kind it names decides; none named is kind trends."""
    definitions: dict[str, Any] = {}
    for name, kind in KINDS.items():
        schema = kind.model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        # a file says more than a query in a notebook
        schema["required"] = sorted({*schema.get("required", []), "name"})
        if "document" in kind.roles:  # documents are of one source
            schema["required"] = sorted({*schema["required"], "source"})
            for key in ("sources", "ties"):
                schema["properties"].pop(key)
        else:
            schema["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
        definitions[name] = schema
    choice: dict[str, Any] = {"$ref": "#/$defs/trends"}
    for name in KINDS:
        if name != "trends":
            named = {"properties": {"kind": {"const": name}}, "required": ["kind"]}
            choice = {"if": named, "then": {"$ref": f"#/$defs/{name}"}, "else": choice}
    kinds = {"properties": {"kind": {"enum": list(KINDS)}}}
    return {"$schema": DIALECT, "title": "A Trendlake pattern", "allOf": [kinds, choice], "$defs": definitions}
