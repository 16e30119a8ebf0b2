"""The check of a computation that tells how much of the order of events rests on their ids alone."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.derived import one_table
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.total_order import ordered_by_id
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural

ID_ORDER = "id_order"


def id_order(
    plan: AnyPlan,
    events: pa.Table | Mapping[str, pa.Table],
    windows: range | None = None,
    reference: Mapping[str, pa.Table] | None = None,
) -> Check | None:
    """The check of the events (of several tables by name) in `windows` (None: of all); None where ids decide nothing.
    It is no failure: rows are the same each time, and other ids would give others. `reference`: the tables of
    lookups."""
    try:
        asked = plan.columns if plan.parts_of_order is not None else ()
        count = ordered_by_id(plan, one_table(events, plan.schema, asked), windows, reference)
    except TrendlakeError:  # of a derived column: the plan's own rows report it, and other plans go on
        return None
    if not count:
        return None
    observed = f"ids alone order {plural(count, 'pair')} of neighbours of one time"
    return Check(ID_ORDER, True, observed, "a column of the source with the role sequence", data={"pairs": count})
