"""Names of the columns of a source's table: what Delta takes, what is reserved, and what the quarantine needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.events.names import reserved, same_name
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.odcs import Property
from trendlake.pipelines.errors import SourceFileError

NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")
"""Characters that Delta refuses in the names of a table's columns (without column mapping)."""
REASONS = ("reason", "rule")
ADDED = (*REASONS, "run_id", "source_version", "quarantined_at")
"""Columns the quarantine table has in addition to those of the source."""
ID, RUNS, SINCE = OPEN = ("quarantine_id", "quarantine_runs", "quarantine_since")
"""Columns of an open row in addition to its own (`pipelines.ingest.open_rows`): 16 hex digits of a hash of the
contract's columns, how many runs have quarantined it, when the first did."""


def bad_name(item: Property, source: Source, path: Path_) -> Iterator[TrendlakeError]:
    """A column's name that cannot be read, written down, or stored."""
    fault = name_fault(item.name)
    if fault is not None:
        yield BadValueError(fault, place=source.place((*path, "name")), hint=f"such as {usable_name(item.name)}")


def name_fault(name: str, *, quarantined: bool = False, merged: bool = False) -> str | None:
    """The fault in a column's name, if any. `quarantined`: of a table whose rows may be quarantined; `merged`: of a
    table that ingestion writes, not other programs."""
    if not name.strip() or not name.isprintable() or len(name) > 255:
        return "a column's name is 1 to 255 characters that can be printed"
    wrong = sorted(set(name) & NOT_IN_NAMES)
    if wrong:
        shown = " or ".join("space" if char == " " else f"'{char}'" for char in wrong)
        return f"column '{name}': Delta tables take no {shown} in a column's name"
    whose = reserved(name, merged=merged)
    if whose is not None:
        return f"column '{name}' is {whose}"
    if quarantined and same_name(name) in (*ADDED, *OPEN):
        return f"column '{name}' is a name the quarantine table needs"
    return None


def usable_name(name: str) -> str:
    """A name like this one that tables take."""
    plain = re.sub(r"\W+", "_", name).strip("_")[:255] or "value"
    return plain if name_fault(plain, quarantined=True, merged=True) is None else f"source_{plain}"


def save_with_commas(names: Sequence[str]) -> str | None:
    """A hint for a CSV file of one column whose name shows that another sign separates cells."""
    separator = next((char for char in ";\t|" if len(names) == 1 and char in names[0]), None)
    if separator is None:
        return None
    return f"its cells are separated by {'a tab' if separator == chr(9) else repr(separator)}: save it with commas"


def refuse_column_names(path: Path, names: Sequence[str]) -> None:
    """Raises SourceFileError for a column of a file that no source's table can have."""
    hint = save_with_commas(names)
    if hint is not None:
        raise SourceFileError(f"{path} has one column, '{names[0].expandtabs(1)}'", hint=hint)
    for name in names:
        fault = name_fault(name, quarantined=True, merged=True)
        if fault is not None:
            raise SourceFileError(f"{path}: {fault}", hint=f"rename it in the file, such as {usable_name(name)}")
