"""The judgement of `check_source` on few rows, in this process: which rows of a run's windows break the contract.

Spark plans several jobs for it, which take seconds, however few the rows. The answers here are those that the jobs
would give; where a key may be repeated in rows that are not read, it is left to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere, inside
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.quality.key_index import hashes_of, occurrences
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.rules.great_expectations import judge_truth_values
from trendlake.pipelines.rules.keep import keep
from trendlake.pipelines.rules.split import Split, split
from trendlake.pipelines.rules.unique import DIFFER, EQUAL, not_repeating


@dataclass(frozen=True)
class Judged:
    """Of `rows` rows: the check of each rule of the contract; the `bad` ones, with all columns of the table and
    `REASONS`, counted in `broken`, and how many of them are `repeated`: quarantined because they repeat a key. `times`:
    of all rows of the table that keep the rules of single rows, whatever the windows, int64, microseconds; None of a
    table of more rows than are read here."""

    rows: int
    checks: list[Check]
    bad: pa.Table
    broken: Broken
    repeated: int
    times: pa.Array | None


def judge_small(table: TableHere, contract: Contract, span: tuple[int, int], indexes: Path) -> Judged | NotHere:
    """The rows of `table` in the time range `span` (half-open, microseconds) and those without a time. `indexes`: the
    folder of key indexes, by which a table of many rows is asked for the keys. An answer only where it is certain of
    each of these rows which rules it breaks."""
    if contract.documents is not None:
        table.refuse_large()
    rules, columns = contract.rules, [item.name for item in contract.columns]
    most = limits.JUDGED_WHOLE if contract.documents is None else limits.DOCUMENTS_JUDGED
    large = table.row_count is None or table.row_count > most
    if large and not table.all_have(contract.event_time):
        return NotHere("rows without a time, whose files are not known")
    every = _rows(table, columns, contract.event_time, span, large).combine_chunks()
    for rule in unique_rules(rules) if large else ():
        if _elsewhere(rule, every, table, indexes):
            return NotHere("a key may be repeated in rows that are not read")
    parted = split(every, contract)
    time = every[contract.event_time].combine_chunks()
    asked = numbers(inside(every, contract.event_time, [span]).combine_chunks()) | ~valid(time)
    bad = np.flatnonzero(asked & (parted.broken >= 0))
    if (parted.repeats[bad] == EQUAL).any() and len(table.schema.names) > len(columns):
        return NotHere("rows that may differ in columns which the contract does not have")
    set_apart = table.none()
    if len(bad):
        set_apart = _rows(table, table.schema.names, contract.event_time, span, large).take(arrow(bad))
    set_apart = parted.with_reasons(contract, bad, set_apart)
    times = None if large else time.filter(arrow(_alone_good(parted))).cast(pa.int64())
    truth = _truth_values(every, contract, parted, asked)
    why = parted.repeats[bad]
    broken = Broken(Counter(set_apart["rule"].to_pylist()), int(np.count_nonzero((why > 0) & (why != DIFFER))))
    count = int(asked.sum())
    checks = judge_truth_values(truth, rules, contract.name, count)
    return Judged(count, checks, set_apart, broken, int(np.count_nonzero(why)), times)


def _rows(table: TableHere, names: Sequence[str], time: str, span: tuple[int, int], large: bool) -> pa.Table:
    """All rows, of a `large` table those in the span; in the same order whatever `names` are."""
    return table.rows(names, time, [span], limits.JUDGED) if large else table.every(names, limits.JUDGED_WHOLE)


def _alone_good(parted: Split) -> Bools:
    """The rows that keep the rules of single rows."""
    return (parted.broken < 0) | (parted.repeats > 0)


def _truth_values(rows: pa.Table, contract: Contract, parted: Split, asked: Bools) -> dict[str, Bools]:
    """For each rule, by its name, whether each row that is asked about keeps it; in a rule of uniqueness their keys are
    compared with each other's, whatever else they break."""
    chosen, truth = rows.filter(arrow(asked)), {}
    for rule in contract.rules:
        if rule.kind == "unique":
            truth[rule.name] = not_repeating(rule, chosen, [0])
        elif rule.name in parted.keeping:
            truth[rule.name] = parted.keeping[rule.name][asked]
        elif rule.kind != "row_count":
            truth[rule.name] = keep(rule, chosen)
    return truth


def _elsewhere(rule: Rule, rows: pa.Table, table: TableHere, indexes: Path) -> bool:
    """Whether a row of `table` that is none of `rows`, which are of `table`, may have a key of theirs."""
    if len(rule.columns) == 1:  # a single column's NULL is no key
        rows = rows.filter(rows[rule.columns[0]].is_valid())
    hashes, own = np.unique(hashes_of(rows, rule.columns), return_counts=True)
    return bool((occurrences(indexes, table, rule.columns, hashes) > own).any())
