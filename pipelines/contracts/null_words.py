"""The words that mean NULL in files: those a contract declares, else the usual ones.

`customProperties: [{property: nullWords, value: [NA, "-"]}]` of the table is for all its columns, of a column for that
column alone. Without it a column of texts has none: there only an unquoted empty cell is NULL, so that Namibia's `NA`
and the surname `Null` stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.odcs import CustomProperty, Document

NULL_WORDS = "nullWords"
"""The custom property of a table or of a column."""
USUAL = ("NA", "N/A", "n/a", "#N/A", "null", "NULL", "Null", "None", "none", "\\N")
"""NULL in columns that hold no texts, where the contract declares no words; an empty cell there is NULL always."""
Words = Mapping[str, tuple[str, ...]]
"""Column -> the words declared for it."""


def null_words_of(document: Document, source: Source, errors: list[TrendlakeError]) -> Words:
    """The words of each column that the document declares any for; mistakes are added to `errors`."""
    table = document.table
    everywhere = _declared(table.custom_properties, source, ("schema", 0), errors)
    words = {}
    for index, item in enumerate(table.properties):
        own = _declared(item.custom_properties, source, ("schema", 0, "properties", index), errors)
        declared = everywhere if own is None else own
        if declared is not None:
            words[item.name] = declared
    return words


def _declared(
    properties: tuple[CustomProperty, ...], source: Source, path: Path_, errors: list[TrendlakeError]
) -> tuple[str, ...] | None:
    """The words of one `nullWords`, None where it is not given."""
    for index, custom in enumerate(properties):
        if custom.property != NULL_WORDS:
            continue
        if isinstance(custom.value, list) and all(isinstance(word, str) for word in custom.value):
            return tuple(custom.value)
        place = source.place((*path, "customProperties", index, "value"))
        hint = 'put quotes around each, as in [NA, "null", "-"]; [] for none'
        errors.append(BadValueError(f"{NULL_WORDS} is a list of texts, not {custom.value!r}", place=place, hint=hint))
    return None
