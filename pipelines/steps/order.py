"""The check of a computation that tells how much of the order of events rests on their ids alone."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.union import united
from trendlake.cep_core.total_order import ordered_by_id
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural

ID_ORDER = "id_order"


def _one_table(plan: AnyPlan, events: pa.Table | Mapping[str, pa.Table]) -> pa.Table:
    if plan.schema.tables is None or not isinstance(events, Mapping):
        return events
    return united(events, plan.schema.tables, plan.columns if plan.parts_of_order is not None else ())


def id_order(plan: AnyPlan, events: pa.Table | Mapping[str, pa.Table], windows: range | None = None) -> Check | None:
    """The check of the events (of several tables by name) in `windows` (None: of all); None where ids decide nothing.
    It is no failure: rows are the same each time, and other ids would give others."""
    try:
        count = ordered_by_id(plan, _one_table(plan, events), windows)
    except TrendlakeError:  # of a derived column: the plan's own rows report it, and other plans go on
        return None
    if not count:
        return None
    observed = f"ids alone order {plural(count, 'pair')} of neighbours of one time"
    return Check(ID_ORDER, True, observed, "a column of the source with the role sequence", data={"pairs": count})
