"""What `--json` prints: documents for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cep_core.errors import TrendlakeError

if TYPE_CHECKING:
    from pipelines.runs.stage import Record


def json_text(document: Any, indent: int | None) -> str:
    """Whole numbers with all their digits, times as ISO 8601 in UTC; a number that JSON has not is null."""
    return json.dumps(_plain(document), ensure_ascii=False, indent=indent)


def of_error(error: TrendlakeError) -> dict[str, Any]:
    """Code, message, place and hint; of several mistakes of a file each, under `errors`."""
    from pipelines.redaction import redacted

    place = error.place and {"file": error.place.file, "line": error.place.line, "column": error.place.column}
    hint = error.hint and redacted(error.hint)
    told: dict[str, Any] = {"code": error.code, "message": redacted(error.message), "place": place, "hint": hint}
    several: tuple[TrendlakeError, ...] = getattr(error, "errors", ())
    return told | ({"errors": [of_error(one) for one in several]} if several else {})


def of_record(record: Record) -> dict[str, Any]:
    """What a stage has written down, under the names that `trendlake runs --json` has for it."""
    from cep_core.events.windows import moment

    told = dataclasses.asdict(record)
    told["status"] = "succeeded" if told.pop("succeeded") else "failed"
    for name in ("interval_from", "interval_to"):
        told[name] = None if told[name] is None else moment(told[name])
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
