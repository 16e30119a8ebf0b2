"""Running an automaton over a table of events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.automaton.compile.encode import Assembly
from trendlake.cep_core.automaton.compile.plan import AutomatonPlan
from trendlake.cep_core.automaton.kernels.arguments import FINAL, FIRST, LAST, REGISTER
from trendlake.cep_core.automaton.run.events import Stream, Values
from trendlake.cep_core.automaton.run.memory import OverflowedAt, drive
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.columns import Columns, columns_of
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.events.schema import TIME_TYPE

ALWAYS = (-(2**63), 2**63 - 1)


def run_automaton(
    plan: AutomatonPlan, events: pa.Table | Columns, windows: range | None = None, watermark: int | None = None
) -> pa.Table:
    """Results (`plan.result_schema`) over `events`, of all partitions, in any order; of the runs that begin in
    `windows` only, if given.

    `window_end` arcs fire where `first.time + within` has been reached by the latest event of all or by `watermark`
    (microseconds since the epoch). A caller that asks for windows may give a part of the events: then `watermark` alone
    says what is reached, and where it is not given, the windows' end is.
    Raises BadEventsError for events without the columns, times or ids they need, and where a whole number overflows.
    """
    starts, reached = ALWAYS, -(2**63) if watermark is None else watermark
    if windows is not None:
        if len(windows) == 0:
            return plan.result_schema.empty_table()
        end = plan.windows.end(windows[-1])
        owned = plan.windows.end(windows[0]) - 2 * plan.within, end - plan.within
        starts = (ALWAYS[0], end) if plan.non_overlap else owned
        reached = plan.windows.end(windows[-1]) if watermark is None else watermark
    columns = columns_of(events)
    if columns.length == 0:
        return plan.result_schema.empty_table()
    stream = Stream(plan, columns)
    if windows is None:
        reached = max(reached, int(stream.time.max()))
    ran = run_stream(stream, starts, reached)
    if plan.non_overlap:
        ran = replace(ran, rows=_apart(ran))
        if windows is not None:
            begun = stream.time[ran.rows[:, FIRST]]
            ran = replace(ran, rows=ran.rows[(begun >= owned[0]) & (begun < owned[1])])
    return _table(ran)


def _apart(ran: Ran) -> Int64s:
    """The rows of the runs that do not overlap: of a partition the one that ends first, of several the one that begins
    first, then the same of those that begin after it. Rows of one first and last event stay together."""
    rows, partition = ran.rows, ran.stream.partition
    order = np.lexsort([rows[:, FIRST], rows[:, LAST], partition[rows[:, FIRST]]])
    chosen = np.zeros(len(rows), bool)
    pair, before, end = (-1, -1), -1, -1
    columns = partition[rows[order, FIRST]].tolist(), rows[order, FIRST].tolist(), rows[order, LAST].tolist()
    for at, part, first, last in zip(order.tolist(), *columns, strict=True):
        if part != before:
            before, end = part, -1
        if first > end:
            pair, end = (first, last), last
        chosen[at] = (first, last) == pair
    return rows[chosen]


@dataclass(frozen=True)
class Ran:
    """The output of a run of the kernel. `rows`: int64 (first, last, state, register, mask of NULLs), positions in
    `stream`.

    `log` and `nodes`: partial runs and their shared sets of firsts, where they were asked for.
    """

    stream: Stream
    values: Values
    rows: Int64s
    log: Int64s
    nodes: Int64s


def run_stream(
    stream: Stream,
    starts: tuple[int, int] = ALWAYS,
    reached: int | None = None,
    *,
    intervals: bool = True,
    keep: bool = False,
) -> Ran:
    """`run_automaton` before it is a table. `reached`: microseconds, by default the latest event's. `intervals`:
    ignored events leave runs where they are (False: each makes a copy). `keep`: log every partial run."""
    assembly = assembled(stream.plan)
    values = Values(stream, assembly)
    reached = int(stream.time.max()) if reached is None else reached
    try:
        rows, log, nodes = drive(stream, values, assembly, starts, reached, intervals=intervals, keep=keep)
    except OverflowedAt as overflow:
        raise _overflowed(assembly, stream, overflow) from None
    if assembly.ends.any():
        rows = np.unique(rows, axis=0)  # two arcs may end in one row
    return Ran(stream, values, rows, log, nodes)


def assembled(plan: AutomatonPlan) -> Assembly:
    """The plan's tables, made once for a plan object."""
    assembly: Assembly | None = plan.__dict__.get("_assembly")
    if assembly is None:
        assembly = plan.__dict__["_assembly"] = Assembly(plan)
    return assembly


def _overflowed(assembly: Assembly, stream: Stream, overflow: OverflowedAt) -> BadEventsError:
    plan = stream.plan
    index = assembly.row_of.index(overflow.row)
    arc = plan.arcs[index]
    event = stream.columns.raw(plan.schema.event_id)[int(stream.rows[overflow.event])].as_py()
    names = f"{plan.states[arc.source]} -> {plan.states[arc.target]}"
    return BadEventsError(
        f"a whole number overflows on arc {index + 1} ({names}) at event {event!r}",
        hint="give the field a wider type, or the arc a condition that keeps it small",
    )


def _table(ran: Ran) -> pa.Table:
    plan, stream, rows = ran.stream.plan, ran.stream, ran.rows
    first, last = stream.rows[rows[:, FIRST]], stream.rows[rows[:, LAST]]
    schema = plan.result_schema
    columns = [_shown(stream.columns.raw(name).take(first)) for name in plan.partition_by]
    columns += [stream.columns.taken(plan.schema.event_id, rows) for rows in (first, last)]
    columns.append(pa.DictionaryArray.from_arrays(rows[:, FINAL].astype(np.int32), list(plan.states)).cast(pa.string()))
    for k in range(len(plan.register)):
        null = (rows[:, -1] >> k) & 1 == 1
        columns.append(ran.values.decoded(k, rows[:, REGISTER + k], null))
    columns.append(pa.array(stream.time[rows[:, LAST]]).cast(TIME_TYPE))
    columns.append(pa.array(stream.time[rows[:, FIRST]] + plan.within).cast(TIME_TYPE))
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _shown(column: Any) -> Any:
    """A partition's values as results show them: as they are read, of doubles (a NaN is a NULL, -0.0 is 0.0) and
    decimals (see `plan.key_type`)."""
    real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    return normalise(column) if real else column
