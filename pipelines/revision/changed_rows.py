"""The changes of a source between two versions, found in this process: the same as those of
`pipelines.revision.change_feed`.

Where no key is repeated the change feed tells all: each row is judged alone. Where one may be, a row that comes or goes
decides about others, and both versions are read and judged whole: they are small, or Spark does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int8s
from trendlake.cep_core.events.arrays import arrow, numbers, repeated
from trendlake.pipelines.contracts.column_names import REASONS
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import CHANGE, TableHere, table_here
from trendlake.pipelines.lake.road import refuse, refuse_more
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.revision.matching import summed
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.rules.split import Split, split_alone
from trendlake.pipelines.rules.unique import EQUAL, OLDER, exact_codes
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.runs.run import Run

WHY = "__trendlake_why"


@dataclass(frozen=True)
class ChangedRows:
    """Of `source` at the newer version: how many kinds of `rows` came or went since the older one; the `good` ones that
    did, the contract's columns and `NET`; the `bad` ones, whole, that break the contract now and did not before, with
    `REASONS`, counted in `broken`. `source_rows`: all of it, known wherever some of these are lost. `unique`: whether
    none of the rows in the published windows repeats a key in the newer version. `every`: all good rows of it; None
    where these are known without reading keys."""

    source: TableHere
    source_rows: int
    rows: int
    good: pa.Table
    bad: pa.Table
    broken: Broken
    unique: bool
    every: pa.Table | None


def changed_rows(run: Run, task: Task, most: int, most_in_feed: int | None = None) -> ChangedRows:
    """The rows of the run's one table that came and went since its version in `task.after`. Raises NotHereError, also
    where more than `most` rows are to be held; the change feed may have `most_in_feed`, the same if it is None."""
    contract, path = run.contract, run.warehouse.source(run.contract.name)
    source = table_here(run.lake, path, task.sources.at(run.key).version)
    after = task.after.at(run.key).version
    if contract.documents is not None:
        source.refuse_large_feed(after)
    names = [item.name for item in contract.columns]
    net = net_changes(source.feed(names, after, most_in_feed or most), names).combine_chunks()
    rows, keyed = net.num_rows, unique_rules(contract.rules)
    alone = split_alone(net, contract)
    good = net.filter(arrow(alone.broken < 0))
    every, unique = None, True
    if keyed and not (task.unique and len(keyed) == 1 and not _meets(source, good, contract, keyed[0])):
        now, parted = all_parted(run, source, most)
        then, parted_then = all_parted(run, table_here(run.lake, path, after), most)
        every, unique = now.filter(arrow(parted.broken < 0)), not parted.repeats.any()
        good = difference_of(every, then.filter(arrow(parted_then.broken < 0)), names)
        of_each = bad_rows(now, parted, contract), bad_rows(then, parted_then, contract)
        bad = difference_of(*of_each, [*names, *REASONS, WHY])
    else:
        bad = bad_rows(net, alone, contract)
    bad = bad.filter(pc.greater(bad[NET], 0))
    bad = bad.take(arrow(np.repeat(np.arange(bad.num_rows), numbers(bad[NET].combine_chunks()))))
    more = len(source.schema.names) > len(names)
    refuse({"rows for the quarantine with columns which the contract does not have": more and bad.num_rows > 0})
    repeats = int(np.isin(numbers(bad[WHY].combine_chunks()), (EQUAL, OLDER)).sum())
    broken = Broken(Counter(bad["rule"].to_pylist()), repeats)
    bad = bad.select([*names, *REASONS])
    return ChangedRows(source, source.counted, rows, good, bad, broken, unique, every)


def bad_rows(rows: pa.Table, parted: Split, contract: Contract, among: Bools | None = None) -> pa.Table:
    """Those (of `among`) that break the contract, with `REASONS` and, in `WHY`, the code of `Split.repeats`."""
    breaks = parted.broken >= 0
    places = np.flatnonzero(breaks if among is None else breaks & among)
    bad = parted.with_reasons(contract, places, rows.take(arrow(places)))
    why: Int8s = parted.repeats[places]
    return bad.append_column(WHY, arrow(why))


def difference_of(now: pa.Table, then: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows whose counts in the two bags differ, with `NET`. Raises NotHereError."""
    bags = [rows.append_column(NET, repeated(sign, rows.num_rows)) for rows, sign in ((now, 1), (then, -1))]
    return summed(pa.concat_tables(bags), tuple(names))


def net_changes(feed: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows that came more often than they went, or less, each once, with `NET`."""
    came = pc.is_in(feed[CHANGE], pa.array(["insert", "update_postimage"]))
    signs = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return summed(feed.select(list(names)).append_column(NET, signs), tuple(names))


def _meets(source: TableHere, good: pa.Table, contract: Contract, rule: Rule) -> bool:
    """Whether a row that came may repeat a key, where none was repeated. One that comes for another of its key and
    time, as when a price is corrected, repeats none. Raises NotHereError."""
    place = list(dict.fromkeys(filter(None, (*rule.columns, contract.event_time))))
    fresh = summed(good, tuple(place))
    fresh = fresh.filter(pc.greater(fresh[NET], 0)).select(list(rule.columns))
    if len(rule.columns) == 1:  # a single column's NULL is no key
        fresh = fresh.drop_null()
    if not fresh.num_rows:
        return False
    refuse_more(source.counted, limits.KEYS_COMPARED, "keys")
    present = source.rows_with(rule.columns, fresh[rule.columns[0]].combine_chunks(), limits.KEYS_COMPARED)
    both = pa.concat_tables([present, fresh])
    codes = exact_codes(both, both.column_names)
    shared = np.isin(codes[: present.num_rows], codes[present.num_rows :])
    return len(np.unique(codes[: present.num_rows][shared])) < int(shared.sum())
