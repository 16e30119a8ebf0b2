"""What `--json` prints: one document, for programs."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import typer


def print_json(document: Any) -> None:
    typer.echo(json.dumps(_plain(document), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    """Whole numbers with all their digits, times as ISO 8601 in UTC; a number that JSON has not is null."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
