"""Times and run ids on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from trendlake.cep_core.events.windows import BEGINNING, END
from trendlake.pipelines.errors import BadTimeError


def micros_of(text: str, option: str) -> int:
    """An ISO 8601 time, UTC where it says no zone, as microseconds since the epoch. Raises BadTimeError, as for one
    outside the years 1 to 9999."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadTimeError(
            f"{option} {text!r} is no ISO 8601 time", hint="such as 2013-01-01 or 2013-01-01T09:00:00Z"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    if not BEGINNING <= micros <= END:
        raise BadTimeError(f"{option} {text!r} is, in UTC, outside the years 1 to 9999")
    return micros


def manual_run_id(prefix: str) -> str:
    """A run id for what a person starts: `manual_20130102T030405_678`."""
    return f"{prefix}_{datetime.now(UTC):%Y%m%dT%H%M%S_%f}"[:-3]
