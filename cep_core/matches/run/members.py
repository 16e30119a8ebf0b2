"""Plans of one form run as one: the member that an event is for is one more column of the partition key.

All events of a match are of one partition, and no partition reads events of another, so each member has the rows that
it has alone. An event is repeated for each member that may bind it; that its id is its own is known of the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.expressions.columnar import true_where
from trendlake.cep_core.matches.compile.form import MEMBER, Form, with_members
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.results import result_table
from trendlake.cep_core.matches.run.run import Matches


def run_members(
    form: Form, columns: Columns, members: Sequence[tuple[Int64s, UInt64s]], windows: range | None
) -> list[pa.Table]:
    """The results of each member: `members` are its rows of `columns`, ascending, and the bindings that may take each
    (uint64, a bit each), where the conditions `form.left` are still to be asked."""
    rows, may = (np.concatenate([member[i] for member in members]) for i in range(2))
    number = np.repeat(np.arange(len(members)), [len(member[0]) for member in members])
    name = form.plan.schema.event_time
    if windows is not None:
        low, high = form.plan.windows.span(windows) if len(windows) else (0, 0)
        times = numbers(columns.column(name), low)[rows]
        inside = (times >= low) & (times < high)
        rows, may, number = rows[inside], may[inside], number[inside]
    plan = with_members(form.plan)
    chosen = columns.chosen(rows).extended(MEMBER, arrow(number))
    stream = Stream(plan, chosen, _asked(form, chosen, may))
    table = result_table(plan, stream, Matches(plan, stream, windows).chunks())
    owner = numbers(table.column(MEMBER).combine_chunks())
    table = table.drop_columns([MEMBER])
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        owner, table = owner[order], table.take(arrow(order))
    ends = np.searchsorted(owner, np.arange(len(members) + 1)).tolist()
    return [table.slice(low, high - low) for low, high in pairwise(ends)]


def _asked(form: Form, columns: Columns, may: UInt64s) -> UInt64s:
    """The bindings that may take each event, after the conditions that are left."""
    may = may.copy()
    for b, conditions in enumerate(form.left):
        bit = np.uint64(1 << b)
        for condition in conditions:
            asked = (may & bit) != 0
            holds = true_where(asked, condition, lambda read: columns.column(read.name))
            may[asked & ~holds] &= ~bit
    return may
