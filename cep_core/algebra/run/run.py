"""Running a plan of kind algebra over a table of events: operator by operator, each a table."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.events import Source
from trendlake.cep_core.algebra.run.results import limited, owned, read_for, result_of
from trendlake.cep_core.algebra.run.streams import stream_of
from trendlake.cep_core.algebra.run.tables import Table
from trendlake.cep_core.events.columns import Columns


def run_algebra(plan: AlgebraPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all partitions, in any order; of `windows` only, if
    given. Raises BadEventsError, TooManyMatchesError, WindowTooLargeError."""
    if windows is not None and not len(windows):
        return plan.result_schema.empty_table()
    source = Source(plan, read_for(plan, columns, windows))
    context = Context(plan, source)
    table = context.distinct(len(plan.nodes) - 1, owned(plan, _rows(context), windows))
    limited(plan, source, table)
    return result_of(plan, source, table)


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
        streams[place] = stream_of(context, node, streams)
        for read in n.inputs(node):
            uses[read] -= 1
            if not uses[read]:
                streams.pop(read, None)
    return streams[len(plan.nodes) - 1]
