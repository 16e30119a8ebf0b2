"""Times and run ids on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trendlake.jobs.terminal.lines import say

if TYPE_CHECKING:
    from trendlake.cep_core import Pattern


def micros_of(text: str, option: str) -> int:
    """An ISO 8601 time, UTC where it says no zone, as microseconds since the epoch. Raises BadTimeError, as for one
    outside the years 1 to 9999."""
    from trendlake.pipelines.runs.intervals import LocalTimes

    return LocalTimes().micros(text, option)


def interval_of(pattern: Pattern, since: str, until: str, *, remark: bool = True) -> tuple[int, int]:
    """`--from` and `--to` of a command for a pattern, microseconds since the epoch: without an offset on the clock of
    its time zone. Prints which moment is meant by a time that the clock skips or shows twice. Raises BadTimeError."""
    from trendlake.pipelines.runs.intervals import LocalTimes, refuse_empty

    times = LocalTimes.of(pattern)
    start, end = times.micros(since, "--from"), times.micros(until, "--to")
    refuse_empty(start, end)
    for text, option in ((since, "--from"), (until, "--to")) if remark else ():
        if (said := times.remark(text, option)) is not None:
            say(said)
    return start, end


def manual_run_id(prefix: str) -> str:
    """A run id for what a person starts: `manual_20130102T030405_678`."""
    return f"{prefix}_{datetime.now(UTC):%Y%m%dT%H%M%S_%f}"[:-3]
