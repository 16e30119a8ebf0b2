"""XML files, taken on as a source: the first contract, checked against the first file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.authoring.scaffold import Roles, common_properties, write_new_contract
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.ingest.readers.xml_files import read_documents, xml_files
from trendlake.pipelines.project.paths import Project


def new_source_of_documents(
    project: Project, name: str, sample: Path, roles: Roles, document_path: str | None, time_format: str | None
) -> tuple[Path, str]:
    """A contract for the source `name`, whose documents are in the XML files at `sample`; and what to tell the user.
    `roles`: paths of id and time. Nothing is written where the first file cannot be read by it.

    Raises ProjectError, SourceFileError, ContractErrors (of the paths).
    """
    (first, *_) = xml_files(sample)
    said = {
        "documentPath": document_path,
        "idPath": roles.event_id,
        "timePath": roles.event_time,
        "timeFormat": time_format,
    }
    contract = _contract(name, {key: value for key, value in said.items() if value is not None})
    path = write_new_contract(project, name, contract)
    try:
        count = read_documents(first, load_contract(path)).num_rows
    except TrendlakeError:
        path.unlink()
        raise
    if not count:
        path.unlink()
        hint = "an element without a prefix has no namespace; //*:entry is one of any"
        raise TrendlakeError(f"{first} has no element {document_path}", hint=hint)
    return path, f"{first}: {plural(count, 'document')}"


def _contract(name: str, said: dict[str, str]) -> dict[str, Any]:
    properties: list[dict[str, Any]] = [
        {
            "name": "document_id",
            "logicalType": "string",
            "required": True,
            "customProperties": [{"property": "eventRole", "value": "event_id"}],
            "primaryKey": True,
            "primaryKeyPosition": 1,
            "unique": True,
        },
        {
            "name": "document_time",
            "logicalType": "timestamp",
            "required": True,
            "customProperties": [{"property": "eventRole", "value": "event_time"}],
        },
        {
            "name": "document",
            "logicalType": "string",
            "required": True,
            "customProperties": [{"property": "eventRole", "value": "document"}],
        },
    ]
    custom = common_properties()
    custom.extend({"property": key, "value": value} for key, value in said.items())
    table = {"name": name, "physicalType": "table", "customProperties": custom, "properties": properties}
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": f"source-{name}",
        "version": "1.0.0",
        "name": name,
        "status": "draft",
        "schema": [table],
        "slaProperties": [{"property": "latency", "value": 1, "unit": "d"}],
    }
