"""The judgement of `check_source` on a small table, in this process: the rows of a run's windows all keep the contract.

Spark plans several jobs for it, which take seconds, however few the rows. What is said here is what the jobs would say;
where a row breaks a rule, a key may be repeated, or a rule is Spark's alone to judge, `LocalUnsupportedError` leaves it
to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cep_core.events.array_types import Bools
from cep_core.events.arrays import arrow, numbers, valid
from pipelines.check import Check
from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import Rule
from pipelines.delta.local_reader import ROWS, TableHere, inside, local_errors
from pipelines.errors import LocalUnsupportedError
from pipelines.quality.great_expectations import judge_truth_values
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact_codes


@dataclass(frozen=True)
class Judged:
    """Of `rows` rows, all good: the check of each rule of the contract; and of all good rows of the table, whatever
    the windows, the `times`: int64, microseconds."""

    rows: int
    checks: list[Check]
    times: pa.Array


def judge_small(table: TableHere, contract: Contract, span: tuple[int, int]) -> Judged:
    """The rows of `table` in the time range `span` (half-open, microseconds) and those without a time. Raises
    LocalUnsupportedError unless all of them are good, and certainly so."""
    if table.row_count is None or table.row_count > ROWS:
        raise LocalUnsupportedError("a large table")
    rules = contract.rules
    if not all(rule.quarantines for rule in rules if rule.kind == "unique"):
        raise LocalUnsupportedError("keys that may be repeated")
    with local_errors():
        every = table.every([item.name for item in contract.columns], ROWS).combine_chunks()
        alone = [rule for rule in rules if rule.kind not in ("unique", "row_count")]
        truth = {rule.name: _rows_keeping(rule, every, contract) for rule in alone}
        good = np.ones(every.num_rows, np.bool_)
        for rule in rules:
            if rule.quarantines and rule.name in truth:
                good &= truth[rule.name]
        time = every[contract.event_time].combine_chunks()
        asked = numbers(inside(every, contract.event_time, [span]).combine_chunks()) | ~valid(time)
        if not good[asked].all():
            raise LocalUnsupportedError("rows for the quarantine")
        for rule in rules:
            if rule.kind == "unique" and _repeats(rule, every.filter(arrow(good)), asked[good]):
                raise LocalUnsupportedError("a key is repeated")
        times = time.filter(arrow(good)).cast(pa.int64())
    count = int(asked.sum())
    truth = {name: rows[asked] for name, rows in truth.items()}
    truth |= {rule.name: np.ones(count, np.bool_) for rule in rules if rule.kind == "unique"}
    return Judged(count, judge_truth_values(truth, rules, contract.name, count), times)


def _rows_keeping(rule: Rule, rows: pa.Table, contract: Contract) -> Bools:
    truth = kept_rows(rule, rows, contract)
    if truth is None:
        raise LocalUnsupportedError(f"a rule that Spark judges: {rule.name}")
    return truth


def _repeats(rule: Rule, rows: pa.Table, asked: Bools) -> bool:
    """Whether a row that is asked about shares its key with another of `rows`."""
    codes = exact_codes(rows, rule.columns)
    if len(rule.columns) == 1:  # a single column's NULL is no key
        there = valid(rows[rule.columns[0]].combine_chunks())
        codes, asked = codes[there], asked[there]
    distinct, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return bool(len(distinct) and (counts[places][asked] > 1).any())
