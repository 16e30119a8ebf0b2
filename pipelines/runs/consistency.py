"""When a window is published, by the pattern's `consistency` (CEDR's levels).

`strong`: once the watermark has passed its end, so that no event that keeps the contract's latency can change it;
`middle`: when a run asks for it, and corrected by every revision; `weak`: when a run asks for it, and left at that.
The watermark is the newest event time of a version of the source, less the contract's latency; events later than the
commit of the version and `maxFuture` of the contract are ignored. It is a function of the version and the contract,
whatever the clock says. (CEDR: Barga et al. 2007, section 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.windows import BEGINNING, END, clock_text
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.sources import SOURCE
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import NotHere, answer_of, either, tried
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.runs.events import OfSource, are_good, events_in
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.watermark import future_limit, watermark, watermark_at
from trendlake.pipelines.spark.columns import column, earliest

FUTURE = "future_events"
"""The check that counts events of the far future."""
EARLIEST, LATEST = -(2**63), 2**63 - 1
"""Microseconds: before and after every event."""
SOME_ROWS = 1000
"""About how many rows are read at first, to know the newest good one."""
Own: TypeAlias = Callable[[Run, tuple[int, int] | None], int]
"""The watermark of the one table of a run, microseconds; `span`: as of `watermark`."""


def last_ready(run: Run, sources: Versions) -> int | None:
    """The last window that may be published of these versions; None: any may."""
    if run.pattern.consistency != "strong":
        return None
    return last_complete(run, least_watermark(run, sources))


def last_complete(run: Run, reached: int) -> int:
    """The last window that ends at or before `reached`, a watermark in microseconds; with consistency `strong`, whose
    rows depend on no event from then on."""
    windows = run.plan.windows
    return windows.complete(reached) if run.pattern.consistency == "strong" else windows.after(reached) - 1


def least_watermark(run: Run, sources: Versions, span: tuple[int, int] | None = None) -> int:
    """The watermark of these versions, microseconds: of several tables the least. `span`: as of `watermark`. Raises
    StepOrderError, as `future_limit`."""
    return least_by(run, _of_versions(sources), span)


def least_by(run: Run, own: Own, span: tuple[int, int] | None = None) -> int:
    """As `least_watermark`, by the watermark of each table by itself."""
    reached = min(_watermarks(run, own, span).values())
    return reached if span is None or not run.sources.united else max(span[0], min(span[1], reached))


def watermarks(run: Run, sources: Versions) -> dict[str, int]:
    """The watermark of each table, by its key: a table that may be idle counts as at least so far behind the largest
    of all. Raises StepOrderError."""
    return _watermarks(run, _of_versions(sources), None)


def _watermarks(run: Run, own: Own, span: tuple[int, int] | None) -> dict[str, int]:
    """It takes all times to know the largest one of all: where a table may be idle `span` is ignored."""
    near = span if all(table.idle_us is None for table in run.sources.tables) else None
    return _with_idle(run, {part.key: own(part, near) for part in run.parts})


def _of_versions(sources: Versions) -> Own:
    return lambda part, near: watermark_of(part, sources.at(part.key).version, near)


def _with_idle(run: Run, own: Mapping[str, int]) -> dict[str, int]:
    """The watermark of each table by its own events, and by those of all where it may be idle."""
    newest, reached = max(own.values()), dict[str, int]()
    for table in run.sources.tables:
        least = own[table.key] if table.idle_us is None else newest - table.idle_us
        reached[table.key] = max(own[table.key], least)
    return reached


def least_watermark_here(run: Run, sources: Versions) -> int | None:
    """As `least_watermark`, by this process; None where a table has no event. Raises NotHereError."""
    own: dict[str, int] = {}
    for part in run.parts:
        version = sources.at(part.key).version
        newest = newest_good(part, version, (EARLIEST, limit_of(part, version) + 1))
        if newest is None:
            return None
        own[part.key] = newest - part.lateness
    return min(_with_idle(run, own).values())


def of_table(part: Run, check: Check) -> Check:
    """A check of the one table of a run; of a pattern with `sources` it names the table."""
    if part.key == SOURCE:
        return check
    return replace(check, observed=f"{part.key}: {check.observed}", data={**check.data, "source": part.key})


def watermark_check(run: Run, reached: Mapping[str, int]) -> Check:
    """The check that lists the watermark of each table, and which one holds the pattern. `reached`: of `watermarks`."""
    least = min(reached.values())
    observed = ", ".join(f"{key} {_moment(at)}" for key, at in reached.items())
    holds = " and ".join(key for key, at in reached.items() if at == least)
    data = {"watermarks": dict(reached), "watermark": least}
    return Check("watermark", True, observed, f"the least of all, that of {holds}", data=data)


def watermark_of(run: Run, version: int, span: tuple[int, int] | None = None) -> int:
    """The watermark of a version of the run's one table, microseconds; `span`: as of `watermark`. Raises
    StepOrderError, as `future_limit`."""
    limit, time = limit_of(run, version), run.contract.event_time
    near = EARLIEST if span is None else span[0], limit + 1
    return either(
        lambda: watermark_at(newest_good(run, version, near), run.lateness, span),
        lambda: watermark(_good(run, version), time, run.lateness, limit, span),
    )


def limit_of(run: OfSource, version: int) -> int:
    """As `future_limit`, of the run's source."""
    return future_limit(run.lake, run.lake.warehouse.source(run.contract.name), version, run.contract.future_us)


def future_events(run: Run, version: int, times: pa.Array | None = None) -> Check:
    """The check that counts the good rows of a version which the watermark ignores: how many, up to which time. They
    stay in the source, and count in the windows they are in. `times`: those of all good rows, int64, microseconds,
    where they are known."""
    limit = limit_of(run, version)
    rows, newest = _after(run, version, limit) if times is None else counted_after(times, limit)
    observed = f"{rows:,} row{'s' * (rows != 1)}" + (f" up to {_moment(newest)}" if newest is not None else "")
    expected = f"no event after {_moment(limit)}: `maxFuture` after the commit of version {version}"
    data = {"rows": rows, "newest": newest, "limit": limit, "source_version": version}
    return Check(FUTURE, not rows, observed, expected, run.contract.event_time, data)


def _after(run: Run, version: int, limit: int) -> tuple[int, int | None]:
    def by_spark() -> tuple[int, int | None]:
        time = column(run.contract.event_time)
        future = _good(run, version).where(time > sf.timestamp_micros(sf.lit(limit)))
        return tuple(future.agg(sf.count(sf.lit(1)), sf.max(sf.unix_micros(time))).collect()[0])

    return either(lambda: counted_after(good_times(run, version, (limit + 1, LATEST)), limit), by_spark)


def newest_good(run: OfSource, version: int, near: tuple[int, int]) -> int | None:
    """The last of `good_times`, without most of them: they are read from the last to the first, in ever longer
    stretches, until a row is good. A stretch of many rows is made shorter: one event of a far time says little of where
    the others are. Raises NotHereError, also where many rows have one time."""
    source = _source(run, version)
    count, first, last = source.extent(run.contract.event_time)
    if first is None or last is None:
        return None
    low, end = max(near[0], first), min(near[1], last + 1)
    stretch = 1 + (last - first) * SOME_ROWS // count
    while low < end:
        start = max(low, end - stretch)
        rows = tried(lambda near=(start, end): _rows_near(run, source, near))  # type: ignore[misc]
        if isinstance(rows, NotHere):
            if end - start == 1:
                return answer_of(rows)
            stretch = max(1, (end - start) // 16)
            continue
        newest: int | None = pc.max(_times(run, rows)).as_py()
        if newest is not None:
            return newest
        end, stretch = start, 4 * stretch
    return None


def oldest_good(run: Run, sources: Versions) -> int | None:
    """The moment, microseconds, at which the first good event of these versions begins; None if there is none. An event
    without an interval begins at its time."""
    oldest = [_oldest(part, sources.at(part.key).version) for part in run.parts]
    return min((time for time in oldest if time is not None), default=None)


def _oldest(run: Run, version: int) -> int | None:

    def here() -> int | None:
        rows = _rows_near(run, _source(run, version), (EARLIEST, LATEST))
        first = [pc.min(_times(run, rows, name)).as_py() for name in (run.contract.event_time, *run.begins)]
        return min((time for time in first if time is not None), default=None)

    def by_spark() -> int | None:
        first = _good(run, version).agg(sf.min(sf.unix_micros(earliest(run.contract.event_time, run.begins))))
        oldest: int | None = first.collect()[0][0]
        return oldest

    return either(here, by_spark)


def good_times(run: Run, version: int, near: tuple[int, int]) -> pa.ChunkedArray:
    """The event times, int64, microseconds, of the good rows of a version in `near`, which is half-open, as this
    process reads them: to plan and to start a job takes Spark longer. Raises NotHereError, also where many
    rows are near."""
    return _times(run, _rows_near(run, _source(run, version), near))


def _source(run: OfSource, version: int) -> TableHere:
    return table_here(run.lake, run.lake.warehouse.source(run.contract.name), version)


def _rows_near(run: OfSource, source: TableHere, near: tuple[int, int]) -> pa.Table:
    source.refuse_large_search(run.contract.event_time, [near])
    return events_in(run, source, [near], limits.READ)


def _times(run: OfSource, rows: pa.Table, name: str | None = None) -> pa.ChunkedArray:
    """The times, or those in another column, of the good rows."""
    return rows.filter(arrow(are_good(run, rows)))[name or run.contract.event_time].cast(pa.int64())


def counted_after(times: pa.Array, limit: int) -> tuple[int, int | None]:
    """How many of `times` are after `limit`, and the latest of those."""
    after = times.filter(pc.greater(times, limit))
    latest: int | None = pc.max(after).as_py()
    return len(after), latest


def _good(run: Run, version: int) -> DataFrame:
    source = read_at(run.lake, run.lake.warehouse.source(run.contract.name), version)
    return q.keeping(source, run.contract.rules)


def _moment(micros: int) -> str:
    if micros == BEGINNING:
        return "no event"
    return clock_text(micros, " ") if micros <= END else "a time after the year 9999"


def ready(windows: range, last: int | None) -> range:
    """Of consecutive windows those up to `last`."""
    return windows if last is None else range(windows.start, max(windows.start, min(windows.stop, last + 1)))
