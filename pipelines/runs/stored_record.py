"""The JSON texts in a run record, as any version of Trendlake has written them. A text that none has written names its
record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trendlake.pipelines.check import Check, checks_of
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.runs.basis import Basis

Row = Mapping[str, Any]
"""Values of a record by the table's columns; a column that the table lacks may be absent."""
Read = TypeVar("Read")
_WRONG = (ValueError, TypeError, LookupError, AttributeError)


def name_of(row: Row) -> str:
    """`the record of publish of falling, run r1`."""
    stage, pattern, source = (row.get(name) for name in ("stage", "pattern", "source"))
    return f"the run record of {stage} of {pattern or source}, run {row.get('run_id')}"


def checks_in(row: Row) -> list[Check]:
    """The checks; none for NULL. Raises RecordDamagedError."""
    return _read(row, "checks", checks_of)


def note_in(row: Row) -> Mapping[str, Any] | None:
    """The note; None for NULL. Raises RecordDamagedError."""
    return _read(row, "note", lambda text: _object(text) if text else None)


def basis_in(row: Row) -> Basis | None:
    """The basis; None for NULL. Raises RecordDamagedError."""
    return _read(row, "basis", lambda text: Basis.from_json(_object(text)) if text else None)


def sources_in(row: Row) -> dict[str, dict[str, Any]] | None:
    """The tables of a pattern with `sources`; None for NULL. Raises RecordDamagedError."""
    return _read(row, "sources", lambda text: _object(text) if text else None)


def damage_of(row: Row) -> str:
    """The fault of a record, in words; empty if it has none."""
    unnamed = [name for name in ("run_id", "stage", "status") if row.get(name) is None]
    if unnamed:
        return f"{name_of(row)}, is damaged: its column `{unnamed[0]}` is NULL"
    for read in (checks_in, note_in, basis_in, sources_in):
        try:
            read(row)
        except RecordDamagedError as error:
            return error.message
    return ""


def _read(row: Row, column: str, parse: Callable[[Any], Read]) -> Read:
    try:
        return parse(row.get(column))
    except _WRONG as error:
        raise RecordDamagedError(
            f"{name_of(row)}, is damaged: its column `{column}` is not what Trendlake writes ({error})",
            hint="repeat that step or revision under the same run id: a new record takes the place of this one",
        ) from error


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object was expected, not {text[:60]!r}")
    return value
