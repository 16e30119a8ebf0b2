"""The changed rows of the source that a pattern may match: it is computed again for those only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.sharing.changes import bindable
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.revision.source_changes import NET, SourceChanges
from trendlake.pipelines.rules.unique import exact_codes
from trendlake.pipelines.runs.run import Run


def columns_of(run: Run) -> tuple[str, ...]:
    """The columns of the source that the run's plan sees change; where an id is made of a key, also its."""
    contract = run.contract
    names = {*run.plan.columns, *(contract.key if contract.made_id else ())}
    return tuple(item.name for item in contract.columns if item.name in names)


def matching(run: Run, good: pa.Table, changes: SourceChanges, key: object) -> pa.Table:
    """Of good rows that came or went, with `NET`, those that differ in `columns_of` the run and that its plan may
    match: these columns, and `NET`. `key`: of `good` in `changes`. Raises NotHereError."""
    plan, contract = run.plan, run.contract
    names = columns_of(run)
    seen = changes.once(("seen", key, names), lambda: summed(good, names))
    if contract.made_id and plan.schema.event_id in plan.columns:  # a column that no row has
        return seen
    unique_ids = any(rule.columns == (plan.schema.event_id,) for rule in unique_rules(contract.rules))
    about = "columns", key, names, plan.schema.event_type
    events = changes.once(about, lambda: Columns(_events(seen, plan.schema.event_type, contract)))
    (rows,) = bindable([plan], events, unique_ids=unique_ids)
    return seen.take(arrow(rows))


def _events(seen: pa.Table, event_type: str, contract: Contract) -> pa.Table:
    rows = seen.drop_columns([NET])
    if contract.constant_type is None:
        return rows
    return rows.append_column(event_type, repeated(contract.constant_type, rows.num_rows))


def summed(rows: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The bag of rows over the columns `names`, each once, with `NET`, without what cancels out; -0.0 is 0.0, as to
    Spark. Raises NotHereError."""
    # lists cannot be compared
    codes = exact_codes(rows, names)
    size = int(codes.max(initial=-1)) + 1
    net, first = np.zeros(size, np.int64), np.full(size, rows.num_rows, np.int64)
    np.add.at(net, codes, numbers(rows[NET].combine_chunks()))
    np.minimum.at(first, codes, np.arange(rows.num_rows))
    left = np.flatnonzero(net)
    return rows.select(list(names)).take(arrow(first[left])).append_column(NET, arrow(net[left]))
