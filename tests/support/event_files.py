"""Contracts of small sources, and files of events for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trendlake.pipelines.contracts.contract import Contract, load_contract

LOGICAL = {"string": "string", "timestamp": "timestamp", "date": "date", "boolean": "boolean"}
WHOLE = ("tinyint", "smallint", "int", "bigint")
TYPES = ("string", *WHOLE, "float", "double", "decimal(20,2)", "boolean", "date", "timestamp")
"""A column of each sort that a contract may have."""


def contract_text(columns: Mapping[str, str], own: Mapping[str, Any] | None = None, **table: Any) -> str:
    """A contract of the source `ev` with `id`, `at` and `columns` (name -> Spark type), as JSON. `own`: keys of a
    column, by its name; `table`: custom properties of the table."""
    roles = {"id": "event_id", "at": "event_time"}
    properties = []
    for name, kind in ({"id": "string", "at": "timestamp"} | dict(columns)).items():
        logical = LOGICAL.get(kind, "integer" if kind in WHOLE else "number")
        item: dict[str, Any] = {"name": name, "logicalType": logical, "physicalType": kind, **(own or {}).get(name, {})}
        if name in roles:
            item |= {"required": True, "customProperties": [{"property": "eventRole", "value": roles[name]}]}
        properties.append(item)
    custom = [{"property": name, "value": value} for name, value in {"eventType": "E", **table}.items()]
    schema = {"name": "ev", "customProperties": custom, "properties": properties}
    document = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "ev",
        "version": "1",
        "status": "draft",
        "schema": [schema],
    }
    return json.dumps(document, indent=1)


def contract_of(
    folder: Path, columns: Mapping[str, str], own: Mapping[str, Any] | None = None, **table: Any
) -> Contract:
    """As `contract_text`, read from a file in `folder`."""
    file = folder / "ev.yaml"
    file.write_text(contract_text(columns, own, **table))
    return load_contract(file)
