"""The functions that run plans of kind trends (see `cep_core.kind.Kind`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.trends.compile.form import MEMBER, with_members
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.run.lasting_events import run_lasting
from trendlake.cep_core.trends.run.run import run_lanes, run_plan

__all__ = ["run", "run_lanes", "run_members"]


def run(plan: Plan, events: Columns, windows: range | None, watermark: int | None) -> pa.Table:
    """Results do not depend on the watermark."""
    return run_plan(plan, events, windows) if plan.interval_start is None else run_lasting(plan, events, windows)


def run_members(
    form: Plan, columns: Columns, members: Sequence[tuple[Int64s, UInt64s]], windows: range | None
) -> list[pa.Table]:
    """The results of each member: `members` are its rows of `columns`, ascending, and the variables that may bind each
    (uint64, a bit each), where the conditions of `form` are still to be asked.

    The member that a row is for is one more column of the partition key and of the groups. No row depends on other
    partitions than its own (`cep_core.trends.run.run`), so each member has the rows that it has alone."""
    rows, may = (np.concatenate([member[i] for member in members]) for i in range(2))
    number = np.repeat(np.arange(len(members)), [len(member[0]) for member in members])
    table = run_plan(with_members(form), columns.chosen(rows).extended(MEMBER, arrow(number)), windows, may)
    owner = numbers(table.column(MEMBER).combine_chunks())
    table = table.drop_columns([MEMBER])
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        owner, table = owner[order], table.take(arrow(order))
    ends = np.searchsorted(owner, np.arange(len(members) + 1)).tolist()
    return [table.slice(low, high - low) for low, high in pairwise(ends)]
