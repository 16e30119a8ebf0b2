"""The verdicts of a contract's rules on a table in this process: those that Great Expectations gives, without it.

A small revision judges a few rows; to import Great Expectations for them takes longer than all else that it does. The
rows are counted by the same evaluator that decides the quarantine. test_great_expectations.py holds the verdicts
equal to those of Great Expectations.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cep_core.events.arrays import valid
from pipelines.check import Check
from pipelines.contracts.contract import Contract
from pipelines.contracts.rule_text import expected_of
from pipelines.contracts.rules import Rule
from pipelines.error_text import plural
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact_codes
from pipelines.quality.quarantine import is_good
from pipelines.spark.frames import frame_of


def judge_local(spark: SparkSession, table: pa.Table, contract: Contract) -> list[Check]:
    """A check for every rule of `contract`, as `great_expectations.judge`. Spark is asked about the rules that are only
    its to judge. Raises ArrowException where keys cannot be compared."""
    counts: dict[str, int] = {}
    sparks: list[Rule] = []
    for rule in contract.rules:
        if rule.kind == "row_count":
            counts[rule.name] = 0
        elif rule.kind == "unique":
            counts[rule.name] = _repeating(rule, table)
        elif (good := kept_rows(rule, table, contract)) is not None:
            counts[rule.name] = int(np.count_nonzero(~good))
        else:
            sparks.append(rule)
    counts |= _broken_on_spark(spark, table, sparks)
    return [rule_check(rule, table.num_rows, counts[rule.name]) for rule in contract.rules]


def rule_check(rule: Rule, rows: int, broken: int) -> Check:
    """The check of a rule that `broken` of `rows` rows break. Its data: `rows` and, unless it counts rows, `broken`."""
    data = {"rows": rows}
    if rule.kind == "row_count":
        value, observed = float(rows), plural(rows, "row")
    else:
        value = 100 * broken / rows if rule.limit.percent and rows else float(broken)
        of = plural(rows, "row")
        observed = f"{broken} of {of} break it" if broken else f"none of {of} breaks it"
        data["broken"] = broken
    return Check(rule.name, rule.limit.holds(value), observed, expected_of(rule), ", ".join(rule.columns) or None, data)


def _repeating(rule: Rule, table: pa.Table) -> int:
    """The rows that share their key with another."""
    codes = exact_codes(table, rule.columns)
    if len(rule.columns) == 1:  # a single column's NULL is no key
        codes = codes[valid(table.column(rule.columns[0]).combine_chunks())]
    _, counts = np.unique(codes, return_counts=True)
    return int(counts[counts > 1].sum())


def _broken_on_spark(spark: SparkSession, table: pa.Table, rules: list[Rule]) -> dict[str, int]:
    """Of a small table Spark's optimizer computes the answer itself, without a job: so it is collected as rows."""
    if not rules or not table.num_rows:
        return {rule.name: 0 for rule in rules}
    wanted = frame_of(spark, table).select(*[is_good(rule).alias(f"rule_{at}") for at, rule in enumerate(rules)])
    answers = wanted.collect()
    return {rule.name: sum(not row[at] for row in answers) for at, rule in enumerate(rules)}
