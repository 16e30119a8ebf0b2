"""Good events of a run's source that this process reads and judges by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import Condition, TableHere, inside
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import refuse_more
from trendlake.pipelines.rules.split import Split, split, split_alone


class OfSource(Protocol):
    """An object that knows a source and its contract, such as a run."""

    @property
    def lake(self) -> Lake: ...
    @property
    def contract(self) -> Contract: ...


def good_events(
    run: OfSource, source: TableHere, slices: Sequence[tuple[int, int]], most: int, only: Condition | None = None
) -> pa.Table:
    """The good ones of `events_in`. Raises NotHereError."""
    events = events_in(run, source, slices, most, only)
    return events.filter(arrow(are_good(run, events)))


def events_in(
    run: OfSource, source: TableHere, slices: Sequence[tuple[int, int]], most: int, only: Condition | None = None
) -> pa.Table:
    """The rows in `slices` of time, the contract's columns; with `only` those that it is true of. Raises
    NotHereError, also where they are more than `most`."""
    contract = run.contract
    return source.rows([item.name for item in contract.columns], contract.event_time, slices, most, only)


def good_events_of_all(run: OfSource, source: TableHere, slices: Sequence[tuple[int, int]], most: int) -> pa.Table:
    """As `good_events`, where a row in `slices` may repeat the key of any other: the whole table is judged. Raises
    NotHereError, also where it has more than `limits.READ` rows."""
    rows, parted = all_parted(run, source, limits.READ)
    rows = rows.filter(arrow(parted.broken < 0))
    rows = rows.filter(inside(rows, run.contract.event_time, slices))
    refuse_more(rows.num_rows, most, "rows")
    return rows


def all_parted(run: OfSource, source: TableHere, most: int) -> tuple[pa.Table, Split]:
    """The contract's columns of all rows of `source`, and which of them break the contract. Raises
    NotHereError, also where they are more than `most`."""
    contract = run.contract
    if contract.documents is not None:
        source.refuse_large()
    refuse_more(source.counted, most, "rows whose keys may be repeated")
    rows = source.every([item.name for item in contract.columns], most).combine_chunks()
    return rows, split(rows, contract)


def are_good(run: OfSource, rows: pa.Table) -> Bools:
    """Which rows keep the rules of single rows."""
    good: Bools = split_alone(rows.combine_chunks(), run.contract).broken < 0
    return good
