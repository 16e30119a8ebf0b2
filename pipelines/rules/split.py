"""The split of rows by a contract: rows that keep it, rows that break it, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.array_types import Bools, Int8s, Int64s
from trendlake.cep_core.events.arrays import arrow, repeated
from trendlake.pipelines.contracts.column_names import REASONS
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rule_text import reason_of, repeat_reasons
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.rules.keep import keep
from trendlake.pipelines.rules.unique import DIFFER, EQUAL, OLDER, has_key, key_codes, repeats


@dataclass(frozen=True)
class Split:
    """`broken`: for each row the first rule it breaks, as its place among the contract's rules; -1 for a good row.
    `keeping`: which rows keep a rule of single rows, by its name. `repeats`: why a row that repeats a key does not
    count (`pipelines.rules.unique`); 0 for any other."""

    broken: Int64s
    keeping: Mapping[str, Bools]
    repeats: Int8s

    def with_reasons(self, contract: Contract, places: Int64s, rows: pa.Table) -> pa.Table:
        """`rows`, which are at `places` and break a rule of `contract`, with `REASONS`: all rules that each breaks, in
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


def split(table: pa.Table, contract: Contract) -> Split:
    """`table` has the contract's columns in its types; others are behind them, as ingestion puts them."""
    alone = split_alone(table, contract)
    for rule in unique_rules(contract.rules):
        rows = np.flatnonzero((alone.broken < 0) & has_key(table, rule))
        why = repeats(table, rows, key_codes(table.select(rule.columns).take(arrow(rows)), rule), rule)
        rows = rows[why > 0]
        alone.broken[rows], alone.repeats[rows] = contract.rules.index(rule), why[why > 0]
    return alone


def split_alone(table: pa.Table, contract: Contract) -> Split:
    """As `split`, by the rules of single rows."""
    broken = np.full(table.num_rows, -1)
    keeping: dict[str, Bools] = {}
    for number, rule in enumerate(contract.rules):
        if rule.quarantines and rule.kind != "unique":
            keeping[rule.name] = keeps = keep(rule, table)
            broken[(broken < 0) & ~keeps] = number
    return Split(broken, keeping, np.zeros(table.num_rows, np.int8))


def typed(contract: Contract, event_type: str, rows: pa.Table) -> pa.Table:
    """The rows with their type, where the contract names one for all."""
    if contract.constant_type is None:
        return rows
    return rows.append_column(event_type, repeated(contract.constant_type, rows.num_rows))


def needed(plan: AnyPlan, contract: Contract, good: pa.Table) -> pa.Table:
    """Of good rows of a plan's one table what it reads: its columns and its event types."""
    kind = plan.schema.event_type
    good = typed(contract, kind, good)
    if plan.event_types is not None:
        good = good.filter(pc.is_in(good[kind], pa.array(plan.event_types, pa.string())))
    return good.select(list(plan.columns))


def _repeats_as(rule: Rule, why: int) -> str:
    reasons = repeat_reasons(rule)
    return {EQUAL: reasons.equal, OLDER: reasons.older, DIFFER: reasons.differ}[why]
