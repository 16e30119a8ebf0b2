"""Columns that every pattern over a source has, each computed of the columns of an event.

`{property: derive, value: {net: price * size - fee, hour: hour(at)}}` of the table. Times are read in UTC: a pattern
with a `time_zone` derives its own. Nothing stores them.
"""

from __future__ import annotations

from collections.abc import Mapping

from trendlake.cep_core.derived import derived_column
from trendlake.cep_core.errors import BadValueError, TextError, TrendlakeError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import Derived, family
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.column_names import name_fault
from trendlake.pipelines.contracts.odcs import Document

DERIVE = "derive"


def derived_columns_of(
    document: Document, source: Source, types: Mapping[str, str], errors: list[TrendlakeError]
) -> tuple[Derived, ...]:
    """The columns in the order written. `types`: name -> type of the columns of an event. Mistakes are added to
    `errors`."""
    columns: tuple[Derived, ...] = ()
    for index, custom in enumerate(document.table.custom_properties):
        if custom.property != DERIVE:
            continue
        path: Path_ = ("schema", 0, "customProperties", index)
        texts = custom.value
        if not isinstance(texts, dict) or not all(isinstance(x, str) for one in texts.items() for x in one):
            message = f"derive is a mapping of names to expressions, not {texts!r}"
            hint = "such as {net: price * size - fee}"
            errors.append(BadValueError(message, place=source.place((*path, "value")), hint=hint))
        elif any(item.custom("eventRole") == "document" for item in document.table.properties):
            message = "a source of documents has no columns to derive from"
            errors.append(BadValueError(message, place=source.place((*path, "property"))))
        else:
            columns = _columns(texts, source, (*path, "value"), types, errors)
    return columns


def _columns(
    texts: Mapping[str, str], source: Source, path: Path_, types: Mapping[str, str], errors: list[TrendlakeError]
) -> tuple[Derived, ...]:
    names = TakenNames((*types, *PROVENANCE_COLUMNS), "a column of the source, or of every result")
    families = {name: family(kind) for name, kind in types.items()}
    columns = []
    for name, text in texts.items():
        taken = names.take(name, "a derived column already")
        fault = f"'{name}' is {taken}" if taken else name_fault(name)
        if fault is not None:
            errors.append(BadValueError(fault, place=source.place((*path, name), key=True)))
        try:
            columns.append(derived_column(name, parse_condition(text), families))
        except TextError as error:
            place = source.place((*path, name), offset=error.offset, width=max(1, error.width))
            errors.append(BadValueError(error.message, place=place, hint=error.hint))
    return tuple(columns)
