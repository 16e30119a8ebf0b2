"""OpenLineage events read back by OpenLineage's own classes, strictly: what they have no field for is refused."""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import attr
from openlineage.client import generated
from openlineage.client.event_v2 import RunEvent
from openlineage.client.generated.base import BaseFacet

from trendlake.pipelines.project.lineage_settings import File, Lineage

NAMES = [f"{generated.__name__}.{item.name}" for item in pkgutil.iter_modules(generated.__path__)]
CLASSES = {
    facet._get_schema(): facet
    for name in NAMES
    for facet in vars(importlib.import_module(name)).values()
    if isinstance(facet, type) and issubclass(facet, BaseFacet)
}
"""Every facet of the standard by the address of its schema."""
OPEN = {url for url in CLASSES if url.endswith(("/RunFacet", "/JobFacet", "/DatasetFacet"))}
"""The bare facets, to which others may add fields of their own."""


LINEAGE = Lineage(transport=File(type="file", log_file_path="lineage/events.ndjson"))
"""To a file under the state folder."""


def events(state: Path) -> list[dict[str, Any]]:
    """Those in that file, in their order."""
    return [json.loads(line) for line in (state / "lineage" / "events.ndjson").read_text().splitlines()]


def version(table: Mapping[str, Any]) -> int:
    """Of a dataset of an event."""
    return int(table["facets"]["version"]["datasetVersion"])


def read(event: Mapping[str, Any], *, others: bool = False) -> RunEvent:
    """The event by its class; with `others` it may have facets that the standard does not know. Raises TypeError or
    ValueError where it is not as the standard says."""
    return _read(event, RunEvent, others)


def _read(value: Any, wanted: Any, others: bool) -> Any:
    if wanted is Any:
        return value
    if get_origin(wanted) in (Union, types.UnionType):
        wanted = next(one for one in get_args(wanted) if (one is types.NoneType) == (value is None))
        return _read(value, wanted, others)
    if get_origin(wanted) is list:
        return [_read(item, get_args(wanted)[0], others) for item in value]
    if get_origin(wanted) is dict:
        return {name: _read(item, get_args(wanted)[1], others) for name, item in value.items()}
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return wanted(value)
    if attr.has(wanted):
        return _object(value, wanted, others)
    if not isinstance(value, (int, float) if wanted is float else wanted):
        raise TypeError(f"{value!r} is no {wanted}")
    return value


def _object(value: Mapping[str, Any], wanted: Any, others: bool) -> Any:
    if issubclass(wanted, BaseFacet):
        known = CLASSES.get(value["_schemaURL"])
        if known is None:
            if not others:
                raise ValueError(f"no facet of the standard has the schema {value['_schemaURL']}")
            return wanted()
        if not issubclass(known, wanted):
            raise TypeError(f"{known} is no {wanted}")
        if value["_schemaURL"] in OPEN:
            value = {name: item for name, item in value.items() if name.startswith("_")}
        wanted = known
    attr.resolve_types(wanted)
    fields = {item.name: item for item in attr.fields(wanted)}
    unknown = set(value) - set(fields)
    if unknown:
        raise TypeError(f"{wanted} has no {sorted(unknown)}")
    given = {name: item for name, item in value.items() if fields[name].init}
    return wanted(**{fields[name].alias: _read(item, fields[name].type, others) for name, item in given.items()})
