"""Rules of uniqueness: which row counts where several share a key and break no earlier rule, wherever in the table they
are.

- Where the contract names a `sequence`, the row of the highest counts; NULL is the lowest.
- Rows that are equal in all columns of the contract count as one.
- Where rows differ and no sequence says which counts, none does: all are quarantined. Their values never decide.

Whether a row counts depends on rows outside the range that a run reads. Were it judged by the range alone, a window's
rows would depend on how runs were cut, and a revision could not tell what a recomputation would give.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.rule_text import reason_of, repeat_reasons
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.spark.columns import column

BROKEN = "__trendlake_broken"
"""Column of an annotated table: the rules a row breaks, array of (rule, reason, tolerated); empty for a good row.
`tolerated`: the row repeats one that counts, and is no loss."""
INSIDE = "__trendlake_inside"
KEY = "__trendlake_key"
TOP, DIFFER, NUMBER = "__trendlake_top", "__trendlake_differ", "__trendlake_number"


def entry(rule: Rule, reason: Column | None = None, tolerated: Column | None = None) -> Column:
    """The entry of `BROKEN` for a row that breaks `rule`."""
    why = sf.lit(reason_of(rule)) if reason is None else reason
    spared = sf.lit(False) if tolerated is None else tolerated
    return sf.struct(sf.lit(rule.name).alias("rule"), why.alias("reason"), spared.alias("tolerated"))


def counted_broken() -> Column:
    """Whether an annotated row breaks a rule and counts against the contract's tolerance: one that only repeats a row
    which counts does not."""
    return sf.exists(BROKEN, lambda broken: ~broken["tolerated"])


def annotate_duplicates(frame: DataFrame, rules: Sequence[Rule], rest: DataFrame | None) -> DataFrame:
    """`frame` with the rows that repeat a key marked. `rest`: the rows of the table that `frame` does not hold; both
    with `BROKEN` by the rules of single rows."""
    every = frame.withColumn(INSIDE, sf.lit(True))
    if rest is not None:
        # Backwards: the last rule judges a row by others, which earlier rules must have judged. A row of `rest` that
        # comes twice changes nothing: one of its two copies has the place that it would have alone.
        for rule in reversed(rules):
            every = every.unionByName(related(rest, every, rule).withColumn(INSIDE, sf.lit(False)))
    for rule in rules:
        every = _marked(every, rule)
    return every.where(INSIDE).drop(INSIDE)


def related(rest: DataFrame, rows: DataFrame, rule: Rule) -> DataFrame:
    """The rows of `rest` that share the rule's key with one of `rows`; both with `BROKEN`, good rows only."""
    good = sf.size(BROKEN) == 0
    return _sharing(rest.where(good), rows.where(good), rule)


def _sharing(rest: DataFrame, rows: DataFrame, rule: Rule) -> DataFrame:
    """The rows of `rest` that share the rule's key with one of `rows`."""
    keys = rows.where(has_key(rule)).select(*[column(name).alias(f"{KEY}{i}") for i, name in enumerate(rule.columns)])
    same = [column(name).eqNullSafe(sf.col(f"{KEY}{i}")) for i, name in enumerate(rule.columns)]
    return rest.where(has_key(rule)).join(keys, same, "left_semi")


def has_key(rule: Rule) -> Column:
    """Whether the rule speaks of a row: a single column's NULL is no value, in a key of several it is one."""
    return column(rule.columns[0]).isNotNull() if len(rule.columns) == 1 else sf.lit(True)


def _comparable(frame: DataFrame) -> list[str]:
    """The columns whose values can be compared: not maps and variants, which are no columns of a contract."""
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return [name for name, kind in kinds.items() if not re.search(r"\b(map<|variant\b)", kind)]


def _marked(frame: DataFrame, rule: Rule) -> DataFrame:
    """Of the rows that share the key and break nothing else, every one but that which counts gets the reason."""
    kinds = dict(frame.dtypes)
    every = [name for name in _comparable(frame) if name not in (BROKEN, INSIDE)]
    values = sf.struct(*[column(name) for name in rule.compared or every])
    good = sf.size(BROKEN) == 0
    same = Window.partitionBy(*[column(name) for name in rule.columns], good)
    rank = sf.lit(0) if rule.sequence is None else column(rule.sequence)
    if rule.sequence is not None and kinds[rule.sequence] in ("float", "double"):
        rank = sf.when(~sf.isnan(rank), rank)
    ranked = frame.withColumn(TOP, rank.eqNullSafe(sf.max(rank).over(same)))
    top = sf.when(sf.col(TOP), values)
    order = [sf.col(TOP).desc(), *[column(name).asc_nulls_first() for name in every]]
    ranked = ranked.withColumns(
        {
            DIFFER: ~sf.min(top).over(same).eqNullSafe(sf.max(top).over(same)),
            NUMBER: sf.row_number().over(same.orderBy(*order)),
        }
    )
    differ, reasons = sf.col(DIFFER), repeat_reasons(rule)
    why = sf.when(differ, reasons.differ).when(sf.col(TOP), reasons.equal).otherwise(reasons.older)
    repeated = good & has_key(rule) & (differ | (sf.col(NUMBER) > 1))
    broken = sf.when(repeated, sf.array(entry(rule, why, ~differ))).otherwise(sf.col(BROKEN))
    return ranked.withColumn(BROKEN, broken).drop(TOP, DIFFER, NUMBER)
