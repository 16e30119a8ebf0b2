"""The values of a file that the types of its columns do not take, as one error: where they are and how to correct
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.time_formats import (
    ISO,
    TIME_FORMAT,
    UNIX_MILLIS,
    UNIX_SECONDS,
    TimeFormat,
    format_fault,
)
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.common_formats import common_formats
from trendlake.pipelines.ingest.readers.refusals import SHOWN, BadCell, BadCellsError

COUNTED = 100_000
"""Bad values of a file; beyond them the rest of it is not read."""
EXAMPLE = datetime(2026, 1, 31, 9, 0, 0, 123456, UTC)
SINCE_1970 = {
    UNIX_SECONDS: "seconds since 1970, such as 1769850000.5",
    UNIX_MILLIS: "milliseconds since 1970, such as 1769850000500",
}

Where = Callable[[Sequence[int]], list[str]]
"""Rows of a file, ascending, from 0 -> the line or row of each, as an error names it."""


@dataclass(frozen=True)
class _BadValue:
    place: str
    column: str
    cell: BadCell


class BadValues:
    """Collects them block by block. `kinds`: the type of each column; `formats`: how its times are written; `repaired`:
    the file is one of `quarantine show`, whose times are ISO 8601 whatever the contract says."""

    def __init__(
        self,
        path: Path,
        contract: Contract,
        kinds: Mapping[str, pa.DataType],
        formats: Mapping[str, TimeFormat],
        *,
        repaired: bool,
    ) -> None:
        self._path = path
        self._contract = contract
        self._kinds = kinds
        self._formats = formats
        self._repaired = repaired
        self._first: list[_BadValue] = []
        self.count = 0

    def add(self, where: Where, before: int, errors: Sequence[tuple[str, BadCellsError]]) -> None:
        """Those of the block that came last, by column, `before` rows of the file before it."""
        self.count += sum(error.count for _, error in errors)
        cells = [(cell, name) for name, error in errors for cell in error.first]
        cells = sorted(cells, key=lambda one: one[0].row)[: SHOWN - len(self._first)]
        places = where([before + cell.row for cell, _ in cells])
        self._first += [_BadValue(place, name, cell) for place, (cell, name) in zip(places, cells, strict=True)]

    def check(self) -> None:
        """Raises SourceFileError if there is one: with the first `SHOWN`, the number of all, and how to correct
        them."""
        if not self._first:
            return
        lines = [self._line(value) for value in self._first]
        if len(lines) == 1:
            raise SourceFileError(f"{self._path}, {lines[0]}", hint=self._hint())
        number = f"more than {COUNTED:,} values" if self.count > COUNTED else plural(self.count, "value")
        first = "" if self.count == len(lines) else f"; the first {len(lines)} are"
        raise SourceFileError(
            f"{self._path}: {number} cannot be read{first}\n" + "\n".join(f"  {line}" for line in lines),
            hint=self._hint(),
        )

    def _line(self, value: _BadValue) -> str:
        kind, how = self._kinds[value.column], self._formats.get(value.column, TimeFormat())
        what = value.cell.reason or f"is no {in_words(kind, how)}"
        return f"{value.place}, column {value.column}: {value.cell.shown} {what}"

    def _hint(self) -> str:
        """How to correct the first value."""
        value = self._first[0]
        kind, how = self._kinds[value.column], self._formats.get(value.column, TimeFormat())
        if value.cell.reason:
            offset = "; a time with its offset, such as -05:00, needs no zone" if how.format == ISO else ""
            return f"correct the value, or timeZone under column {value.column} in {self._contract.file}{offset}"
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return "correct the file, or the column's type in the contract"
        if self._repaired:
            return "write it as `quarantine show` does, whatever format the contract declares for other files"
        texts = [one.cell.shown.strip("'") for one in self._first if one.column == value.column]
        date = pa.types.is_date(kind)
        formats = [one for one in common_formats(texts) if one != how.format and format_fault(one, date=date) is None]
        values = " or ".join(f'"{one}"' for one in formats) or "..."
        instead = "declare the format" if formats else "correct the file, or declare the format"
        place = f"under column {value.column} in {self._contract.file}"
        return f"{instead} {place}: customProperties: [{{property: {TIME_FORMAT}, value: {values}}}]"


def in_words(kind: pa.DataType, how: TimeFormat) -> str:
    """A column's type as an error names it: what its cells look like."""
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return f"whole number from {-most} to {most - 1}"
    if pa.types.is_decimal(kind):
        return f"number of at most {kind.precision - kind.scale} digits before and {kind.scale} after the point"
    if pa.types.is_floating(kind):
        return "number" if kind.bit_width == 64 else "number of type float"
    if pa.types.is_boolean(kind):
        return "true or false"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _time_in_words(kind, how)
    return "text"


def _time_in_words(kind: pa.DataType, how: TimeFormat) -> str:
    what = "date" if pa.types.is_date(kind) else "time"
    if how.is_unix:
        return f"number of {SINCE_1970[how.format]}"
    if how.format != ISO:
        return f"{what} of the format {how.format}, such as {EXAMPLE.strftime(how.format)}"
    return "date such as 2026-01-31" if what == "date" else "time such as 2026-01-31T09:00:00.123456Z"
