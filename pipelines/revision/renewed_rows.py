"""The rows that changed events make where a window holds everything before it: read and computed around these, as
far as it takes.

The events of the units that changed are read from shortly before the changes to shortly after them. Where that does not
say at which event of a unit the computation can begin, or where it comes to what is published already, more events of
the unit are read, and at last all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.windows import BEGINNING, END
from trendlake.cep_core.kind import Renewal
from trendlake.cep_core.plan import owner
from trendlake.cep_core.sharing.changes import renewal_of, renewed
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere, inside, table_here
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.windows import Stretch, shown_unit, united
from trendlake.pipelines.revision.changed_units import units_of
from trendlake.pipelines.revision.rewrite import Published
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.rules.split import typed
from trendlake.pipelines.runs.events import good_events
from trendlake.pipelines.runs.run import Run

WIDER = 4
"""Each time so many times as far is read."""
ATTEMPTS = 4
"""Before all events are read."""

Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class RenewedRows:
    """`rows` (`plan.result_schema`) in place of those `published`, all in the windows `touched`."""

    rows: pa.Table
    published: Published
    touched: tuple[Stretch, ...]


def renewed_rows(run: Run, task: Task, results: int, source: TableHere, seen: pa.Table) -> RenewedRows | None:
    """For the events of `seen` (columns of the plan) that came or went, and version `results` of the results. None
    where all rows of their units are to be computed. Raises NotHereError."""
    plan, renewal, kind = run.plan, renewal_of(run.plan), run.plan.schema.event_type
    if renewal is None:
        return None
    left = typed(run.contract, kind, seen.filter(seen[run.contract.event_time].is_valid()))
    changed, time, slices = left, plan.owned(range(1))[0], [slice_of(plan, *one) for one in task.published]
    table = table_here(run.lake, run.warehouse.results(run.name), results)
    fresh, old, near = list[pa.Table](), list[pa.Table](), 0
    for reach in _reaches(renewal, run):
        span = _around(run, left, reach)
        among = units_of(run, left).among if shown_unit(plan) else None
        whole = BEGINNING if span[0] is None else span[0], END + 1 if span[1] is None else span[1]
        events = typed(run.contract, kind, good_events(run, source, [whole], limits.REVISED, among))
        end = _last_end(renewal, run, whole[1])
        published = table.near_time(time, [(whole[0], end)])
        rows = published.rows(table.schema.names, time, [(whole[0], end)], limits.REVISED, among)
        shown = rows.filter(inside(rows, time, slices))
        try:
            answer = renewed(plan, events.select(list(plan.columns)), left, shown, span)
        except TrendlakeError as error:
            raise NotHereError(str(error)) from error
        fresh.append(answer.rows)
        old.append(shown.filter(arrow(answer.replaced)))
        near += rows.num_rows
        left = left.filter(arrow(answer.left))
        if not left.num_rows:
            break
    fresh_rows = pa.concat_tables(fresh)
    if near + fresh_rows.num_rows > renewal.limit(plan):  # of a pane, of which not all rows are known
        return None
    fresh_rows, gone = fresh_rows.filter(inside(fresh_rows, time, slices)), pa.concat_tables(old)
    ends = [_ends(one[name]) for one, name in ((fresh_rows, time), (gone, time), (changed, run.contract.event_time))]
    windows = _windows(run, task, [one for one in ends if one is not None])
    return RenewedRows(fresh_rows, Published(table, time, gone, near), windows)


def _reaches(renewal: Renewal, run: Run) -> Iterator[int | None]:
    """How far around changes is read, one time after the other; at last everything."""
    reach = renewal.reach(run.plan)
    yield from (reach * WIDER**n for n in range(ATTEMPTS))
    yield None


def _around(run: Run, changed: pa.Table, reach: int | None) -> Ends:
    ends = _ends(changed[run.contract.event_time])
    if reach is None or ends is None:
        return None, None
    start, end = ends[0] - reach, ends[1] + reach + 1
    return None if start <= BEGINNING else start, None if end > END else end


def _last_end(renewal: Renewal, run: Run, end: int) -> int:
    """Before it rows end that begin before `end`."""
    ahead = renewal.ahead(run.plan)
    return END + 1 if ahead is None else min(end + ahead, END + 1)


def _ends(times: pa.ChunkedArray) -> Stretch | None:
    """The first and the last of them."""
    ends = pc.min_max(times.cast(pa.int64())).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


def _windows(run: Run, task: Task, times: list[Stretch]) -> tuple[Stretch, ...]:
    """The published windows of all `times`."""
    first, last = (owner(run.plan, end) for end in (min(one for one, _ in times), max(one for _, one in times)))
    both = [(max(a, first), min(b, last) + 1) for a, b in task.published if a <= last and b >= first]
    return tuple(united(both, last=True))
