"""When a window is published, by the pattern's `consistency` (CEDR's levels).

`strong`: once the watermark has passed its end, so that no event that keeps the contract's latency can change it;
`middle`: when a run asks for it, and corrected by every revision; `weak`: when a run asks for it, and left at that.
The watermark is the newest event time of a version of the source, less the contract's latency: a function of the
version and the contract, whatever the clock says. (CEDR: Barga et al. 2007, section 2.)
"""

from __future__ import annotations

from pyspark.sql import functions as sf

from pipelines import quarantine as q
from pipelines.steps.run import Run
from pipelines.warehouse import read_at
from pipelines.watermark import BEGINNING


def last_ready(run: Run, version: int) -> int | None:
    """The last window that may be published of a version of the source; None: any may."""
    if run.pattern.consistency != "strong":
        return None
    windows, passed = run.plan.windows, time_of(run, version)
    return (passed - windows.origin - windows.within) // windows.slide


def time_of(run: Run, version: int) -> int:
    """How far time has come in a version of the source, microseconds: the newest good row's, less what `strong` waits
    for late ones; where there is no good row, not at all."""
    source = read_at(run.spark, run.warehouse.source(run.contract.name), version)
    good = q.good_rows(q.annotate(source, run.contract.rules, unique=False))
    newest = good.agg(sf.max(sf.unix_micros(q.column(run.contract.event_time)))).collect()[0][0]
    return BEGINNING if newest is None else int(newest) - run.lateness


def ready(windows: range, last: int | None) -> range:
    """Of consecutive windows those up to `last`."""
    return windows if last is None else range(windows.start, max(windows.start, min(windows.stop, last + 1)))
