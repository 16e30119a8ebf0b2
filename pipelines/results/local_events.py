"""Good events of a source that this process reads and judges by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cep_core.events.array_types import Bools
from cep_core.events.arrays import arrow, repeated
from pipelines.contracts.contract import Contract
from pipelines.delta.local_reader import ROWS, Condition, TableHere, inside
from pipelines.errors import LocalUnsupportedError
from pipelines.quality import quarantine as q
from pipelines.quality.arrow_split import split, split_alone
from pipelines.runs.run import Run
from pipelines.spark.frames import frame_of


def good_events(
    run: Run, source: TableHere, slices: Sequence[tuple[int, int]], most: int, only: Condition | None = None
) -> pa.Table:
    """The good ones of `events_in`. Raises LocalUnsupportedError."""
    events = events_in(run, source, slices, most, only)
    return events.filter(arrow(are_good(run, events)))


def events_in(
    run: Run, source: TableHere, slices: Sequence[tuple[int, int]], most: int, only: Condition | None = None
) -> pa.Table:
    """The rows in `slices` of time, the contract's columns; with `only` those that it is true of. Raises
    LocalUnsupportedError, also where they are more than `most`."""
    contract = run.contract
    return source.rows([item.name for item in contract.columns], contract.event_time, slices, most, only)


def good_events_of_all(run: Run, source: TableHere, slices: Sequence[tuple[int, int]], most: int) -> pa.Table:
    """As `good_events`, where a row in `slices` may repeat the key of any other: the whole table is judged. Raises
    LocalUnsupportedError, also where it has more than `ROWS` rows."""
    contract = run.contract
    if source.row_count is None or source.row_count > ROWS:
        raise LocalUnsupportedError("keys that are repeated in a table of many rows")
    rows = source.every([item.name for item in contract.columns], ROWS).combine_chunks()
    rows = rows.filter(arrow(are_good(run, rows)))
    apart = split(rows, contract)
    if apart.unjudged:
        raise LocalUnsupportedError(f"rules that Spark judges: {', '.join(apart.unjudged)}")
    good = rows.filter(arrow(apart.broken < 0))
    good = good.filter(inside(good, contract.event_time, slices))
    if good.num_rows > most:
        raise LocalUnsupportedError("many rows")
    return good


def are_good(run: Run, rows: pa.Table) -> Bools:
    """Which rows keep the rules of single rows. No row is dropped on this process's word alone: Spark is shown those
    that break a rule, and where it keeps one of them, the work is Spark's. Raises LocalUnsupportedError."""
    parted = split_alone(rows.combine_chunks(), run.contract)
    if parted.unjudged:
        raise LocalUnsupportedError(f"rules that Spark judges: {', '.join(parted.unjudged)}")
    good = parted.broken < 0
    dropped = rows.filter(arrow(~good))
    if dropped.num_rows and not q.keeping(frame_of(run.spark, dropped), run.contract.rules).isEmpty():
        raise LocalUnsupportedError("rows that Spark keeps")
    return good


def typed(contract: Contract, event_type: str, rows: pa.Table) -> pa.Table:
    """The rows with their type, where the contract names one for all."""
    if contract.constant_type is None:
        return rows
    return rows.append_column(event_type, repeated(contract.constant_type, rows.num_rows))
