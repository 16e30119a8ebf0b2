"""An event id made of other columns, or of the event time alone.

`{property: idColumns, value: [carrier, flight, day]}` of the column `event_id`. No file has that
column: ingestion makes it of the others (`pipelines.ingest.readers.event_ids`).
"""

from __future__ import annotations

from trendlake.cep_core.errors import BadValueError, TrendlakeError, did_you_mean
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.odcs import Document, Property

ID_COLUMNS = "idColumns"
KINDS = ("string", "integer", "date", "timestamp", "boolean")
"""Types whose values have one text each."""


def id_columns_of(document: Document, source: Source, errors: list[TrendlakeError]) -> tuple[str, ...]:
    """The columns that an event's id is made of, in their order; none if it is a column of the files. Mistakes are
    added to `errors`."""
    properties = {item.name: item for item in document.table.properties}
    columns: tuple[str, ...] = ()
    for index, item in enumerate(document.table.properties):
        for number, custom in enumerate(item.custom_properties):
            if custom.property != ID_COLUMNS:
                continue
            fault = _fault(item, custom.value, properties)
            if fault is None:
                columns = tuple(custom.value)
                continue
            message, hint = fault
            place = source.place(("schema", 0, "properties", index, "customProperties", number, "value"))
            errors.append(BadValueError(message, place=place, hint=hint))
    return columns


def _fault(item: Property, value: object, properties: dict[str, Property]) -> tuple[str, str | None] | None:
    if item.custom("eventRole") != "event_id" or item.logical_type != "string":
        return f"{ID_COLUMNS} is for the column of type string with the role event_id", None
    names = [*value] if isinstance(value, list) else []
    times = [name for name, item in properties.items() if item.custom("eventRole") == "event_time"]
    texts = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    if not texts or (len(names) < 2 and names != times):
        hint = "such as [carrier, flight, day]; the column of the event time may stand alone"
        return f"{ID_COLUMNS} is a list of two or more columns, not {value!r}", hint
    others = [name for name in properties if name != item.name]
    for name in names:
        if name not in others:
            return f"{ID_COLUMNS}: there is no other column '{name}'", did_you_mean(name, others)
        if properties[name].logical_type not in KINDS:
            kind = properties[name].logical_type
            return f"{ID_COLUMNS}: column '{name}' is a {kind}; expected {', '.join(KINDS)}", None
    return None
