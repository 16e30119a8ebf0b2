"""The JSON documents that `--json` prints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.terminal.hints import as_typed

if TYPE_CHECKING:
    from trendlake.pipelines.runs.stage import Record

FAULT = "FAULT"
"""The code of an internal error."""


def of_error(error: TrendlakeError) -> dict[str, Any]:
    """Code, message, place and hint of an error; for an error with several parts, each part under `errors`."""
    from trendlake.pipelines.redaction import redacted

    place = error.place and {"file": error.place.file, "line": error.place.line, "column": error.place.column}
    hint, message = error.hint and as_typed(redacted(error.hint)), as_typed(redacted(error.message))
    document: dict[str, Any] = {"code": error.code, "message": message, "place": place, "hint": hint}
    several: tuple[TrendlakeError, ...] = getattr(error, "errors", ())
    return document | ({"errors": [of_error(one) for one in several]} if several else {})


def of_any_error(error: Exception) -> dict[str, Any]:
    """As `of_error`; of an internal error the code is FAULT."""
    from trendlake.pipelines.error_text import in_words
    from trendlake.pipelines.redaction import redacted

    if isinstance(error, TrendlakeError):
        return of_error(error)
    return {"code": FAULT, "message": redacted(in_words(error)), "place": None, "hint": None}


def of_record(record: Record) -> dict[str, Any]:
    """The run record of a stage, with the keys of `trendlake runs --json`."""
    from trendlake.cep_core.events.windows import moment

    document = dataclasses.asdict(record)
    document["checks"] = [check.as_json() for check in record.checks]
    document["basis"] = None if record.basis is None else record.basis.as_json()
    document["status"] = "succeeded" if document.pop("succeeded") else "failed"
    for name in ("interval_from", "interval_to"):
        document[name] = None if document[name] is None else moment(document[name])
    return document
