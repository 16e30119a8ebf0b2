"""The windows that a run takes for which no interval is given: the complete ones after the last published one.

A window is complete when the newest good event of the source is not before its end; with consistency `strong`, when the
allowed lateness has passed too. Windows before the last published one that no run has published (gaps) are not taken:
`pipelines.revision.repairs` names them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendlake.cep_core.events.windows import BEGINNING
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.runs.consistency import last_complete, least_watermark, oldest_good
from trendlake.pipelines.runs.intervals import interval_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions


@dataclass(frozen=True)
class NextWindows:
    """`windows`: those that a run takes; `published`: the last published window, None if there is none; `before`: if
    none is published, the complete windows before `windows`, from the source's oldest good event on; `reached`: the
    source's watermark, microseconds, None if it has no good event."""

    windows: range
    published: int | None
    before: range
    reached: int | None

    def of(self, run: Run) -> Run:
        """The same run, of the interval of `windows`, which are some."""
        start, end = interval_of(run.plan.windows, self.windows[0], self.windows[-1])
        return replace(run, start_us=start, end_us=end)


def next_windows(run: Run, ledger: Ledger, sources: Versions) -> NextWindows:
    """`sources`: the newest versions. Raises StepOrderError, as `least_watermark`."""
    reached = least_watermark(run, sources)
    published = last_published(ledger)
    if reached == BEGINNING:
        return NextWindows(range(0), published, range(0), None)
    last = last_complete(run, reached)
    if published is not None:
        return NextWindows(range(published + 1, max(published, last) + 1), published, range(0), reached)
    oldest = oldest_good(run, sources)
    first = last if oldest is None else run.plan.windows.after(oldest)
    if last < first:
        return NextWindows(range(0), None, range(0), reached)
    return NextWindows(range(last, last + 1), None, range(first, last), reached)


def last_published(ledger: Ledger) -> int | None:
    """The last window that shows a version of the source, in whatever form of the pattern."""
    return max((segment.last for segment in ledger.segments if segment.sources is not None), default=None)
