"""Rows that break the contract, counted by rule: every step that checks rows reports them in the same words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.quality.uniqueness import BROKEN, counted_broken

SET_APART = "set_apart"
"""The check that says how many rows break the contract, and which rules."""


@dataclass(frozen=True)
class Broken:
    """Rows that break the contract: how many, by the first `rules` that each breaks; of those, how many are `repeats`
    of a row that counts, which never count against the tolerance."""

    rules: Counter[str] = field(default_factory=Counter)
    repeats: int = 0

    @property
    def rows(self) -> int:
        return self.rules.total()

    @property
    def lost(self) -> int:
        """Those that count against the contract's tolerance."""
        return self.rows - self.repeats

    @property
    def by_rule(self) -> list[tuple[str, int]]:
        """The rules that most rows break come first; of equal ones, by name."""
        return sorted(self.rules.items(), key=lambda item: (-item[1], item[0]))

    def __add__(self, other: Broken) -> Broken:
        return Broken(self.rules + other.rules, self.repeats + other.repeats)

    def __str__(self) -> str:
        """`5 quarantined (id_unique 3, price_range 2), 3 of them repeats`."""
        if not self.rows:
            return "none quarantined"
        several = len(self.rules) > 1
        rules = ", ".join(f"{name} {count:,}" if several else name for name, count in self.by_rule)
        repeats = f", {self.repeats:,} of them repeats" if self.repeats else ""
        return f"{self.rows:,} quarantined ({rules}){repeats}"

    def check(self) -> Check:
        data = {"rows": self.rows, "repeats": self.repeats, "rules": dict(self.by_rule)}
        return Check(SET_APART, not self.rows, str(self), "none", data=data)


def broken_rows(contract: Contract) -> tuple[Column, Column]:
    """Of annotated rows the number of bad ones, and of those that repeat a key."""
    keyed = [rule.name for rule in contract.rules if rule.kind == "unique" and rule.quarantines]
    again = sf.count_if(sf.exists(BROKEN, lambda broken: broken["rule"].isin(keyed))) if keyed else sf.lit(0)
    return sf.count_if(sf.size(BROKEN) > 0), again


def broken_of(annotated: DataFrame) -> Broken:
    """The broken rows of an annotated frame, in one job."""
    rule = sf.get(BROKEN, sf.lit(0)).getField("rule")
    bad = annotated.where(sf.size(BROKEN) > 0).groupBy(rule.alias("rule"))
    counts = bad.agg(sf.count(sf.lit(1)), sf.count_if(~counted_broken())).collect()
    return Broken(Counter({row[0]: row[1] for row in counts}), sum(row[2] for row in counts))
