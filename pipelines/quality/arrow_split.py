"""The split of a table that this process holds, without Spark: rows that keep the contract, rows that break it.

The same rows as `pipelines.quality.quarantine` sets apart (test_random_rules.py). A rule whose verdict is
not certainly Spark's (`pipelines.quality.local_rules`) is not judged, and named: nobody is left to think it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.events.array_types import Bools, Int8s, Int64s
from cep_core.events.arrays import arrow, numbers
from cep_core.events.codes import group_codes
from cep_core.events.normalise import canonical
from pipelines.contracts.column_names import REASONS
from pipelines.contracts.contract import Contract
from pipelines.contracts.rule_text import reason_of, repeat_reasons
from pipelines.contracts.rules import Rule, unique_rules
from pipelines.errors import LocalUnsupportedError
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import DIFFER, EQUAL, OLDER, repeats

JUDGED = 1_000_000
"""Rows that are judged in this process: 4 s and some 600 MB. On two cores Spark takes 6 to 10 times as long, even where
no row is bad."""


@dataclass(frozen=True)
class Split:
    """`broken`: for each row the first rule it breaks, as its place among the contract's rules; -1 for a good row.
    `keeping`: which rows keep a rule of single rows, by its name. `repeats`: why a row that repeats a key does not
    count (`pipelines.quality.local_uniqueness`); 0 for any other. `unjudged`: names of rules that would set rows apart
    and were not judged."""

    broken: Int64s
    keeping: Mapping[str, Bools]
    repeats: Int8s
    unjudged: tuple[str, ...]

    def with_reasons(self, contract: Contract, places: Int64s, rows: pa.Table) -> pa.Table:
        """`rows`, which lie at `places` and break a rule of `contract`, with `REASONS`: all rules that each breaks, in
        words, and the first of them."""
        single = [(reason_of(rule), self.keeping[rule.name]) for rule in contract.rules if rule.name in self.keeping]
        reasons = [
            _repeats_as(contract.rules[self.broken[place]], int(self.repeats[place]))
            if self.repeats[place]
            else "; ".join(reason for reason, keeps in single if not keeps[place])
            for place in places
        ]
        first = [contract.rules[rule].name for rule in self.broken[places]]
        for name, texts in zip(REASONS, (reasons, first), strict=True):
            rows = rows.append_column(name, pa.array(texts, pa.string()))
        return rows


def whole(parted: Split) -> Split:
    """`parted`, where no rule is left to Spark. Raises LocalUnsupportedError."""
    if parted.unjudged:
        raise LocalUnsupportedError(f"rules that Spark judges: {', '.join(parted.unjudged)}")
    return parted


def split(table: pa.Table, contract: Contract) -> Split:
    """`table` has the contract's columns in its types; others are behind them, as ingestion puts them."""
    alone = split_alone(table, contract)
    unjudged = list(alone.unjudged)
    for rule in unique_rules(contract.rules):
        rows = np.flatnonzero(alone.broken < 0)
        try:
            rows, why = _repeated(table, rule, rows)
        except pa.ArrowException:
            unjudged.append(rule.name)
        else:
            alone.broken[rows], alone.repeats[rows] = contract.rules.index(rule), why
    return replace(alone, unjudged=tuple(unjudged))


def split_alone(table: pa.Table, contract: Contract) -> Split:
    """As `split`, by the rules of single rows."""
    broken = np.full(table.num_rows, -1)
    keeping: dict[str, Bools] = {}
    unjudged = []
    for number, rule in enumerate(contract.rules):
        if not rule.quarantines or rule.kind == "unique":
            continue
        valid = kept_rows(rule, table, contract)
        if valid is None:
            unjudged.append(rule.name)
        else:
            keeping[rule.name] = valid
            broken[(broken < 0) & ~valid] = number
    return Split(broken, keeping, np.zeros(table.num_rows, np.int8), tuple(unjudged))


def _repeated(table: pa.Table, rule: Rule, rows: Int64s) -> tuple[Int64s, Int8s]:
    """Of `rows`, good so far, those that repeat a key and do not count, and why. Raises ArrowException for columns that
    cannot be compared."""
    keys = [canonical(table.column(name)) for name in rule.columns]
    if len(keys) == 1:  # a single column's NULL is no key
        rows = rows[numbers(pc.is_valid(keys[0]))[rows]]
    codes = group_codes([key.take(arrow(rows)) for key in keys], len(rows))
    why = repeats(table, rows, codes, rule)
    return rows[why > 0], why[why > 0]


def _repeats_as(rule: Rule, why: int) -> str:
    reasons = repeat_reasons(rule)
    return {EQUAL: reasons.equal, OLDER: reasons.older, DIFFER: reasons.differ}[why]
