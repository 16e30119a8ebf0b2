"""The judgement of `check_source` on few rows, in this process: which rows of a run's windows break the contract.

Spark plans several jobs for it, which take seconds, however few the rows. What is said here is what the jobs would say;
where a key may be repeated, or a rule is Spark's alone to judge, `LocalUnsupportedError` leaves it to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cep_core.events.array_types import Bools
from cep_core.events.arrays import arrow, numbers, valid
from pipelines.check import Check
from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import Rule
from pipelines.delta.local_log import local_errors
from pipelines.delta.local_reader import ROWS, TableHere, inside
from pipelines.errors import LocalUnsupportedError
from pipelines.quality.great_expectations import judge_truth_values
from pipelines.quality.key_index import hashes_of, occurrences
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact_codes

DOCUMENTS = 10_000
"""In a table of up to so many documents all are judged; in a larger one only those of the run's windows."""


@dataclass(frozen=True)
class Judged:
    """Of `rows` rows, none of which repeats a key: the check of each rule of the contract; the `bad` ones, with all
    columns of the table, and the number of them by the first rule that each breaks. `times`: of all good rows of the
    table, whatever the windows, int64, microseconds; None of a table of more rows than are read here."""

    rows: int
    checks: list[Check]
    bad: pa.Table
    rules: Counter[str]
    times: pa.Array | None


def judge_small(table: TableHere, contract: Contract, span: tuple[int, int], indexes: Path) -> Judged:
    """The rows of `table` in the time range `span` (half-open, microseconds) and those without a time. `indexes`: the
    folder of key indexes, by which a table of many rows is asked for the keys. Raises LocalUnsupportedError unless it
    is certain of each of these rows which rules it breaks, and that it repeats no key."""
    if contract.documents is not None:
        table.refuse_large()
    rules, columns = contract.rules, [item.name for item in contract.columns]
    if not all(rule.quarantines for rule in rules if rule.kind == "unique"):
        raise LocalUnsupportedError("keys that may be repeated")
    large = table.row_count is None or table.row_count > (ROWS if contract.documents is None else DOCUMENTS)
    if large and not table.all_have(contract.event_time):
        raise LocalUnsupportedError("rows without a time, whose files are not known")
    with local_errors():
        every = _rows(table, columns, contract.event_time, span, large).combine_chunks()
        alone = [rule for rule in rules if rule.kind not in ("unique", "row_count")]
        truth = {rule.name: _rows_keeping(rule, every, contract) for rule in alone}
        good = np.ones(every.num_rows, np.bool_)
        for rule in rules:
            if rule.quarantines and rule.name in truth:
                good &= truth[rule.name]
        time = every[contract.event_time].combine_chunks()
        asked = numbers(inside(every, contract.event_time, [span]).combine_chunks()) | ~valid(time)
        keyed = good | asked  # a bad row's key counts for the checks, if not for the quarantine
        for rule in rules:
            if rule.kind == "unique" and _repeats(rule, every.filter(arrow(keyed)), asked[keyed]):
                raise LocalUnsupportedError("a key is repeated")
            if rule.kind == "unique" and large and _elsewhere(rule, every, table, indexes):
                raise LocalUnsupportedError("a key may be repeated")
        times = None if large else time.filter(arrow(good)).cast(pa.int64())
        bad = asked & ~good
        set_apart = table.none()
        if bad.any():
            set_apart = _rows(table, table.schema.names, contract.event_time, span, large).filter(arrow(bad))
        breakable = [rule.name for rule in rules if rule.quarantines and rule.name in truth]
        first = Counter(next(name for name in breakable if not truth[name][row]) for row in np.flatnonzero(bad))
    count = int(asked.sum())
    truth = {name: rows[asked] for name, rows in truth.items()}
    truth |= {rule.name: np.ones(count, np.bool_) for rule in rules if rule.kind == "unique"}
    return Judged(count, judge_truth_values(truth, rules, contract.name, count), set_apart, first, times)


def _rows(table: TableHere, names: Sequence[str], time: str, span: tuple[int, int], large: bool) -> pa.Table:
    """All rows, of a `large` table those in the span; in the same order whatever `names` are."""
    return table.rows(names, time, [span], ROWS) if large else table.every(names, ROWS)


def _rows_keeping(rule: Rule, rows: pa.Table, contract: Contract) -> Bools:
    truth = kept_rows(rule, rows, contract)
    if truth is None:
        raise LocalUnsupportedError(f"a rule that Spark judges: {rule.name}")
    return truth


def _elsewhere(rule: Rule, rows: pa.Table, table: TableHere, indexes: Path) -> bool:
    """Whether a row of `table` that is none of `rows`, which are of `table`, may have a key of theirs."""
    if len(rule.columns) == 1:
        rows = rows.filter(rows[rule.columns[0]].is_valid())
    counts = occurrences(indexes, table, rule.columns, hashes_of(rows, rule.columns))
    return bool((counts > 1).any())


def _repeats(rule: Rule, rows: pa.Table, asked: Bools) -> bool:
    """Whether a row that is asked about shares its key with another of `rows`."""
    codes = exact_codes(rows, rule.columns)
    if len(rule.columns) == 1:  # a single column's NULL is no key
        there = valid(rows[rule.columns[0]].combine_chunks())
        codes, asked = codes[there], asked[there]
    distinct, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return bool(len(distinct) and (counts[places][asked] > 1).any())
