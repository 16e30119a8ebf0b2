"""How much of a total order rests on ids alone: where a pattern asks which event is the next one of its partition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trendlake.cep_core.derived import derive
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.codes import dense_ranks
from trendlake.cep_core.events.tables import EVENT_SOURCE, UNPLACED
from trendlake.cep_core.events.union import columns_read
from trendlake.cep_core.plan import AnyPlan


def ordered_by_id(
    plan: AnyPlan, events: pa.Table, windows: range | None = None, reference: Mapping[str, pa.Table] | None = None
) -> int:
    """How many events follow one of their partition that has their time and no lower `sequence`: only their ids say
    which of them comes first. Of the events in `windows` (None: of all); 0 where the pattern asks for no such order
    (`AnyPlan.parts_of_order`). `reference`: the tables of lookups by name."""
    parts = plan.parts_of_order
    if parts is None or events.num_rows < 2:
        return 0
    schema = plan.schema
    columns = columns_read(derive(events, schema, reference), schema)
    if windows:
        columns = columns.within(schema.event_time, *plan.windows.span(windows))
    keys = [columns.codes(parts).astype(np.int64), numbers(columns.column(schema.event_time))]
    if schema.sequence is not None:
        keys.append(columns.codes((schema.sequence,)).astype(np.int64))
        anywhere = columns.column(schema.sequence).is_null().to_numpy(zero_copy_only=False)
        if schema.tables is not None and not schema.tables.by_sequence:  # of its time and table
            keys[1] = dense_ranks(keys[1])[0] * np.int64(len(schema.tables.tables)) + columns.codes((EVENT_SOURCE,))
            anywhere = numbers(columns.column(UNPLACED))
    else:
        anywhere = np.zeros(columns.length, bool)
    order = np.lexsort([*reversed(keys[2:]), keys[1], keys[0]])
    same = np.ones(max(columns.length - 1, 0), bool)
    for key in keys[:2]:
        same &= key[order][1:] == key[order][:-1]
    for key in keys[2:]:
        same &= (key[order][1:] == key[order][:-1]) | anywhere[order][1:] | anywhere[order][:-1]
    return int(same.sum())
