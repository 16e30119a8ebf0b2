"""The split of a table that this process holds, without Spark: rows that keep the contract, rows that break it.

The same rows as `pipelines.quality.quarantine` sets apart (test_random_rules.py). A rule whose verdict is
not certainly Spark's (`pipelines.quality.local_rules`) is not judged, and named: nobody is left to think it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.events.array_types import Int64s
from cep_core.events.arrays import arrow, numbers
from cep_core.events.codes import group_codes
from pipelines.contracts.contract import Contract
from pipelines.contracts.rules import Rule, unique_rules
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact, repeated_rows


@dataclass(frozen=True)
class Split:
    """`broken`: for each row the first rule it breaks, as its place among the contract's rules; -1 for a good row.
    `unjudged`: names of rules that would set rows apart and were not judged."""

    broken: Int64s
    unjudged: tuple[str, ...]


def split(table: pa.Table, contract: Contract) -> Split:
    """`table` has the contract's columns in its types; others are behind them, as ingestion puts them."""
    alone = split_alone(table, contract)
    unjudged = list(alone.unjudged)
    for rule in unique_rules(contract.rules):
        rows = np.flatnonzero(alone.broken < 0)
        try:
            alone.broken[_repeated(table, rule, rows)] = contract.rules.index(rule)
        except pa.ArrowException:
            unjudged.append(rule.name)
    return Split(alone.broken, tuple(unjudged))


def split_alone(table: pa.Table, contract: Contract) -> Split:
    """As `split`, by the rules of single rows."""
    broken = np.full(table.num_rows, -1)
    unjudged = []
    for number, rule in enumerate(contract.rules):
        if not rule.quarantines or rule.kind == "unique":
            continue
        valid = kept_rows(rule, table, contract)
        if valid is None:
            unjudged.append(rule.name)
        else:
            broken[(broken < 0) & ~valid] = number
    return Split(broken, tuple(unjudged))


def _repeated(table: pa.Table, rule: Rule, rows: Int64s) -> Int64s:
    """Of `rows`, good so far, those that repeat a key and do not count. Raises ArrowException for columns that cannot
    be compared."""
    keys = [exact(table.column(name)) for name in rule.columns]
    if len(keys) == 1:  # a single column's NULL is no key
        rows = rows[numbers(pc.is_valid(keys[0]))[rows]]
    codes = group_codes([key.take(arrow(rows)) for key in keys], len(rows))
    return repeated_rows(table, rows, codes, rule)
