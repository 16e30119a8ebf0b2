"""From the last stream to the table of results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.run.events import Source
from trendlake.cep_core.algebra.run.tables import Table
from trendlake.cep_core.errors import TooManyMatchesError
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.cep_core.language.unparse import moment


def read_for(plan: AlgebraPlan, columns: Columns, windows: range | None) -> Columns:
    """The events on which the rows of `windows` (not empty; None: all) depend."""
    name = plan.schema.event_time
    return columns if windows is None or not columns.has(name) else columns.within(name, *plan.windows.span(windows))


def owned(plan: AlgebraPlan, table: Table, windows: range | None) -> Table:
    """The rows of the last stream that are shorter than `within`, and of `windows`."""
    wanted = table.end - table.start < plan.within
    if windows is not None:
        _, low, high = plan.owned(windows)
        wanted &= (table.end >= low) & (table.end < high)
    return table if wanted.all() else table.take(wanted)


def limited(plan: AlgebraPlan, source: Source, table: Table) -> None:
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


def result_of(plan: AlgebraPlan, source: Source, table: Table) -> pa.Table:
    """Rows as `plan.result_schema` says."""
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
