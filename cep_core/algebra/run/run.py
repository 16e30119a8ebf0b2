"""Running a plan of kind algebra over a table of events: operator by operator, each a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cep_core.algebra.compile import nodes as n
from cep_core.algebra.compile.plan import AlgebraPlan
from cep_core.algebra.run.context import Context
from cep_core.algebra.run.events import Source
from cep_core.algebra.run.fold import fold_stream
from cep_core.algebra.run.next import next_stream
from cep_core.algebra.run.singles import filtered, selected
from cep_core.algebra.run.tables import Table, Words, as_real, distinct
from cep_core.algebra.run.totals import aggregated
from cep_core.errors import TooManyMatchesError
from cep_core.events.arrays import arrow
from cep_core.events.columns import Columns
from cep_core.events.schema import TIME_TYPE
from cep_core.language.unparse import moment


def run_algebra(plan: AlgebraPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all partitions, in any order; of `windows` only, if
    given. Raises BadEventsError, TooManyMatchesError, WindowTooLargeError."""
    if windows is not None:
        if not len(windows):
            return plan.result_schema.empty_table()
        name = plan.schema.event_time
        columns = columns.within(name, *plan.windows.span(windows)) if columns.has(name) else columns
    source = Source(plan, columns)
    context = Context(plan, source)
    table = _rows(context)
    table = table.take(np.flatnonzero(table.end - table.start < plan.within))
    if windows is not None:
        _, low, high = plan.owned(windows)
        table = table.take(np.flatnonzero((table.end >= low) & (table.end < high)))
    table = distinct(table)
    _limited(plan, source, table)
    return _result(plan, source, table)


def _rows(context: Context) -> Table:
    """The stream of the last operator. A stream is kept as long as an operator still reads it."""
    plan = context.plan
    uses = [0] * len(plan.nodes)
    for node in plan.nodes:
        for place in n.inputs(node):
            uses[place] += 1
    streams: dict[int, Table] = {}
    for place, node in enumerate(plan.nodes):
        context.place = place
        streams[place] = _stream(context, node, streams)
        for read in n.inputs(node):
            uses[read] -= 1
            if not uses[read]:
                streams.pop(read, None)
    return streams[len(plan.nodes) - 1]


def _stream(context: Context, node: n.Node, streams: dict[int, Table]) -> Table:
    match node:
        case n.Base():
            return context.source.base(node)
        case n.Filter():
            return filtered(context, node, streams[node.source])
        case n.Select():
            return distinct(selected(context, node, streams[node.source]))
        case n.Aggregate():
            table = streams[node.source]
            return aggregated(context, node, distinct(table) if n.counts_events(node) else table)
        case n.Union():
            return _union(context, node, streams[node.left], streams[node.right])
        case n.Next():
            return next_stream(context, node, streams[node.left], streams[node.right])
        case n.Fold():
            return fold_stream(context, node, streams[node.left], streams[node.right])


def _union(context: Context, node: n.Union, left: Table, right: Table) -> Table:
    kinds = [dict(n.attributes_of(context.plan.nodes[place])) for place in (node.left, node.right)]
    columns: dict[str, Words] = {}
    for name, family in node.attributes:
        pairs = [table.columns[name] for table in (left, right)]
        words = [as_real(w, kind[name]) if family == "double" else w for (w, _), kind in zip(pairs, kinds, strict=True)]
        columns[name] = np.concatenate(words), np.concatenate([null for _, null in pairs])
    part, start, end = (
        np.concatenate(pair)
        for pair in ((left.part, right.part), (left.start, right.start), (left.end, right.end))
    )  # fmt: skip
    return Table(part, start, end, columns)


def _limited(plan: AlgebraPlan, source: Source, table: Table) -> None:
    """Raises TooManyMatchesError where a partition has as many rows in a pane as the limit."""
    if len(table) < plan.limit:
        return
    keys, counts = np.unique(np.stack([table.part, table.end // plan.pane], axis=1), axis=0, return_counts=True)
    for (part, pane), count in zip(keys.tolist(), counts.tolist(), strict=True):
        if count >= plan.limit:
            first = int(source.first[part])
            named = [f"{name} = {source.columns.raw(name)[first].as_py()!r}" for name in plan.partition_by]
            start, end = moment(pane * plan.pane), moment((pane + 1) * plan.pane)
            raise TooManyMatchesError(
                f"{', '.join(named) or 'the whole stream'}: limit_per_partition, {plan.limit:,} rows, is reached in "
                f"[{start}, {end})",
                hint="give NEXT or FOLD more conditions, shorten within, or raise the limit",
            )


def _result(plan: AlgebraPlan, source: Source, table: Table) -> pa.Table:
    schema = plan.result_schema
    columns = []
    for name in plan.partition_by:
        raw = source.columns.raw(name)
        real = pa.types.is_floating(raw.type) or pa.types.is_decimal(raw.type)
        column = (source.column(name) if real else raw).take(arrow(source.first))
        columns.append(column.take(arrow(table.part)))
    columns += [arrow(times).cast(TIME_TYPE) for times in (table.start, table.end)]
    for name, family in plan.attributes:
        columns.append(source.decoded(table.columns[name], family, schema.field(name).type))
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)
